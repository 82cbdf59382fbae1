"""Which shards this process owns: a lease for each, taken, renewed, and handed over in good order.

A shard has an owner while somebody renews its lease; who takes it over fences the former owner by the first
entry in the log, so the lease only keeps two from trying. Servers own the shards that the assignment gives
them; one that another should have is handed over: nothing new is taken, what was executed is written, the
lease is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import msgspec

from roost.core.clock import Clock, SystemClock
from roost.core.errors import RoostError
from roost.core.lease import MAX_STEP_MS, Tenure
from roost.lanes.clock import IdClock
from roost.lanes.ids import MAX_AHEAD_MS, SHARDS
from roost.lanes.scripts import Held, Leading, ShardScripts
from roost.lanes.shard import Shard

log = logging.getLogger("roost.lanes")

STEP_S = 1.0
"""Time between two looks at every shard: a lease of six seconds is renewed four times."""

GIVE_UP_AFTER = 3
"""Takeovers of a shard that fail in a row before it is left to other servers."""

FIRST_PAUSE_S = 8.0
"""For how long then: others have to see that the shard is nobody's. Twice as long the next time."""

MAX_PAUSE_S = 30.0
"""No longer, since there may be no other server: what failed here may work again."""


@dataclass(slots=True)
class Failing:
    """A shard that this server should own, and fails to take over."""

    reason: str = ""
    times: int = 0
    """Under the present grant."""
    pause_s: float = FIRST_PAUSE_S
    until: float = 0.0
    """It is left to others until then, by our clock."""


class Keeper(Protocol):
    """What runs the shards that are owned."""

    async def take_over(
        self, number: int, holder: str, leading: Leading, former: Shard | None
    ) -> Shard | None:
        """Bring it back from its log and serve it; None: somebody else has it by now.

        `former`: ours until the store forgot the lease; its memory is worth more than a log that lost it.
        """

    async def hand_over(self, shard: Shard) -> None:
        """Take nothing new, and return when everything is written."""

    def lost(self, shard: Shard, why: str) -> None:
        """It is another's, or may be."""

    def status(self, shard: Shard) -> dict[str, object]:
        """What operators see of it."""


class Ownership:
    """The leases of one order server. `wanted` says which shards it should own at this moment."""

    def __init__(
        self,
        scripts: Callable[[int], ShardScripts],
        keeper: Keeper,
        wanted: Callable[[], Awaitable[Collection[int]]],
        ids: IdClock,
        *,
        server: str,
        address: str,
        ttl_ms: int,
        clock: Clock | None = None,
    ) -> None:
        self.holder = f"{server}-{secrets.token_hex(6)}"
        self.owned: dict[int, Shard] = {}
        self.owners: dict[int, Held] = {}
        """Of the shards that others own, as last heard."""
        self._scripts = [scripts(number) for number in range(SHARDS)]
        self._keeper = keeper
        self._wanted = wanted
        self._ids = ids
        self._server = server
        self._address = address
        self._ttl_ms = ttl_ms
        self._clock = clock or SystemClock()
        self._tenures: dict[int, Tenure] = {}
        self._epochs: dict[int, int] = {}
        self._former: dict[int, Shard] = {}
        """Shards that were ours until the store forgot it, or was away for too long. Their memory counts
        again if nobody has written since, so they are taken back, and handed over only then."""
        self._expired: dict[int, Shard] = {}
        """Those whose lease has to be given up, so that the next grant has another epoch."""
        self._free_since: dict[int, float] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}
        self._leaving: dict[int, asyncio.Task[None]] = {}
        self.failing: dict[int, Failing] = {}
        self.takeovers = 0
        self.takeover_faults = 0

    def address_of(self, number: int) -> str:
        """Where the owner of a shard takes commands; empty: nobody knows."""
        held = self.owners.get(number)
        return held.address if held is not None else ""

    def holds(self, number: int) -> bool:
        """Whether nobody else can own it at this moment, by our own clock."""
        tenure = self._tenures.get(number)
        return tenure is not None and tenure.holds(self._clock.monotonic())

    def free_s(self) -> dict[int, float]:
        """By shard for how long nobody has owned it, of those that this server should not own."""
        now = self._clock.monotonic()
        return {number: now - since for number, since in self._free_since.items()}

    async def step(self) -> None:
        """One look at every shard. A takeover or hand-over that takes long goes on beside the next ones.

        Whatever fails in it, a lease that is over ends.
        """
        try:
            await self._look_at_all()
        finally:
            self._expire()

    async def leave(self) -> None:
        """Hand everything over: the server ends."""
        for starting in self._starting.values():
            starting.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        for number in list(self.owned):
            self._begin_leaving(number)
        await asyncio.gather(*self._leaving.values(), return_exceptions=True)

    async def _look_at_all(self) -> None:
        wanted = frozenset(await self._wanted())
        looks = await asyncio.gather(
            *(self._look(number, number in wanted) for number in range(SHARDS)), return_exceptions=True
        )
        if changing := (*self._starting.values(), *self._leaving.values()):
            await asyncio.wait(changing, timeout=STEP_S)
        for fault in (*looks, *_ended(self._starting), *_ended(self._leaving)):
            if isinstance(fault, BaseException):
                raise fault

    async def _look(self, number: int, is_wanted: bool) -> None:
        if number in self._starting or number in self._leaving:
            if number in self._starting:
                await self._campaign(number)
            return
        shard = self.owned.get(number)
        if shard is not None and not shard.serves:
            await self._give_up(number, shard)
        if number in self.owned and not is_wanted:
            self._begin_leaving(number)
        elif number in self.owned or number in self._former or self._should_try(number, is_wanted):
            if number in self._expired:
                await self._end_expired(number)
            leading = await self._campaign(number)
            if leading is not None and number not in self.owned:
                self._starting[number] = asyncio.create_task(self._begin(number, leading))
        else:
            if number in self._tenures:
                await self._resign(number)
            await self._ask(number)

    def _should_try(self, number: int, is_wanted: bool) -> bool:
        """Whether to take it over, and not to leave it to others for a while because that keeps failing.

        What only our memory has is left to nobody: others would find the log as the store has lost it.
        """
        failing = self.failing.get(number)
        if not is_wanted:
            self.failing.pop(number, None)
        elif failing is not None:
            return failing.times < GIVE_UP_AFTER and self._clock.monotonic() >= failing.until
        return is_wanted

    async def _resign(self, number: int) -> None:
        """Give up a grant under which the shard was never served: none of its ids was used."""
        epoch = str(self._epochs[number])
        await self._scripts[number].resign(holder=self.holder, epoch=epoch, high_water_ms=0)
        self._tenures.pop(number, None)
        if (failing := self.failing.get(number)) is not None:
            said = {"shard": number, "reason": failing.reason, "pause_s": failing.pause_s}
            log.error("takeovers keep failing: the shard is left to other servers for a while", extra=said)
            failing.times, failing.until = 0, self._clock.monotonic() + failing.pause_s
            failing.pause_s = min(failing.pause_s * 2, MAX_PAUSE_S)

    async def _campaign(self, number: int) -> Leading | None:
        """Renew or take the lease; None: it is another's."""
        self._free_since.pop(number, None)
        asked_at = self._clock.monotonic()
        shard = self.owned.get(number)
        status = self._keeper.status(shard) if shard is not None else {}
        # Also of a shard that is not served yet: its first ids may come before the next renewal.
        high_water = self._ids.now_ms(asked_at) + self._ttl_ms + MAX_AHEAD_MS
        epoch = self._epochs.get(number)
        answer = await self._scripts[number].campaign(
            holder=self.holder,
            epoch=str(epoch or ""),
            ttl_ms=self._ttl_ms,
            max_step_ms=MAX_STEP_MS,
            address=self._address,
            server=self._server,
            status=msgspec.json.encode(status).decode(),
            high_water_ms=high_water,
        )
        if isinstance(answer, Held):
            self.owners[number] = answer
            self._former.pop(number, None)
            self.failing.pop(number, None)
            self._lose(number, f"{answer.server} owns it")
            return None
        if shard is not None and answer.epoch != shard.epoch:
            self._former[number] = shard
            self._lose(number, "the store has forgotten its lease")
        self.owners.pop(number, None)
        self._epochs[number] = answer.epoch
        self._tenures[number] = Tenure(self.holder, answer.epoch, asked_at, self._ttl_ms)
        if number == min(self._tenures):  # one anchor a step, whatever the number of shards
            self._ids.anchor(answer.now_us // 1000, (asked_at + self._clock.monotonic()) / 2)
        return answer

    async def _begin(self, number: int, leading: Leading) -> None:
        """`former` is given up only for a shard: an attempt that fails is repeated with it."""
        try:
            shard = await self._keeper.take_over(number, self.holder, leading, self._former.get(number))
        except Exception as error:
            self.takeover_faults += 1
            failing = self.failing.setdefault(number, Failing())
            failing.reason, failing.times = str(error), failing.times + 1
            raise
        self.failing.pop(number, None)
        if shard is None:
            return
        if self._epochs.get(number) == leading.epoch:
            self._former.pop(number, None)
            self.owned[number] = shard
            self.takeovers += 1
        else:
            self._former[number] = shard
            self._keeper.lost(shard, "the store forgot its lease meanwhile")

    async def _end_expired(self, number: int) -> None:
        """What was sent under its epoch may still arrive; after the next owner's first entry it cannot."""
        shard = self._expired[number]
        await self._scripts[number].resign(
            holder=self.holder, epoch=str(shard.epoch), high_water_ms=shard.ids.high_water_ms
        )
        del self._expired[number]

    async def _give_up(self, number: int, shard: Shard) -> None:
        """Nothing can be appended under this epoch any more: take the shard over anew, or let others."""
        if shard.commits.keeps_memory:
            self._former[number] = shard
        self._expired[number] = shard
        self._lose(number, "its log takes no more")
        await self._end_expired(number)

    def _begin_leaving(self, number: int) -> None:
        leaving = self._leaving.get(number)
        if leaving is None or leaving.done():
            self._leaving[number] = asyncio.create_task(self._hand_over(number, self.owned[number]))

    async def _hand_over(self, number: int, shard: Shard) -> None:
        """The lease is renewed until everything is written: until then it is nobody else's."""
        writing = asyncio.create_task(self._keeper.hand_over(shard))
        try:
            while not (await asyncio.wait([writing], timeout=STEP_S))[0]:
                with contextlib.suppress(RoostError):
                    await self._campaign(number)
            await writing
        finally:
            writing.cancel()
        self.owned.pop(number, None)
        self._tenures.pop(number, None)
        self._expired[number] = shard
        await self._end_expired(number)

    async def _ask(self, number: int) -> None:
        seen = await self._scripts[number].look(max_step_ms=MAX_STEP_MS)
        if seen.left_ms > 0:
            self.owners[number] = Held(seen.holder, seen.epoch, seen.address, seen.server)
            self._free_since.pop(number, None)
        else:
            self.owners.pop(number, None)
            self._free_since.setdefault(number, self._clock.monotonic())

    def _expire(self) -> None:
        for number, shard in list(self.owned.items()):
            if not self.holds(number):
                self._former[number] = shard
                self._expired[number] = shard
                self._lose(number, "its lease is over")

    def _lose(self, number: int, why: str) -> None:
        shard = self.owned.pop(number, None)
        self._tenures.pop(number, None)
        if shard is not None:
            log.warning("shard lost", extra={"shard": number, "reason": why})
            self._keeper.lost(shard, why)


def _ended(tasks: dict[int, asyncio.Task[None]]) -> list[BaseException | None]:
    """The faults of those that have ended; they are forgotten."""
    ended = [number for number, task in tasks.items() if task.done()]
    return [task.exception() for number in ended if not (task := tasks.pop(number)).cancelled()]
