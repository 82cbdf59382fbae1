"""The beat of an entity server to the map: its own thread, its own loop, its own link.

It carries the main loop's last tick: while that hangs nothing is sent, so the lease ends and the users find
another server; a main loop that is only busy looks alive. Discovery's beat is the SDK's and says less: that
this process exists, not that it may serve.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from roost.binding.partition import ACTIVE_LIMIT
from roost.binding.scripts import Beaten, Ended, Unknown
from roost.binding.service import Bindings
from roost.core.errors import RoostError
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.servers.entity.carrying import Carrying
from roost.servers.entity.lease import Lease, usable_s

log = logging.getLogger("roost.entity")

TICK_S = 0.25
HUNG_SHARE = 0.5
"""Of the lease: a main loop that has not turned for so long hangs."""
PATIENCE_SHARE = 0.5
"""Of the interval, that a beat waits for its answer: there is time for another before the lease is over."""
LEFT_SHARE = 0.5
"""Of what is left of the lease when a beat is due, that it waits at most: the rest is for the database."""
RETRY_SHARE = 0.2
"""Of the interval, after a beat that failed."""
STOP_S = 5.0

OpenBindings = Callable[[], AbstractAsyncContextManager[Bindings]]
"""Called in the thread of the beat, on its loop."""


def patience_s(lease_ms: int, beat_ms: int) -> float:
    """How long a beat waits for its answer."""
    return min(beat_ms / 1000 * PATIENCE_SHARE, (usable_s(lease_ms) - beat_ms / 1000) * LEFT_SHARE)


class Beating:
    """What is sent, and what came of it."""

    def __init__(
        self,
        type_: str,
        me: Callable[[], Owner],
        leases: Sequence[Lease],
        capacity: int,
        version: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now`: the clock of the leases."""
        self._type = type_
        self._me = me
        self._leases = leases
        self._version = version
        self._now = now
        self.owner: Owner | None = None
        """Who beat last."""
        self.capacity = capacity
        """What the map may place here; the host's own cap stands whatever this says."""
        self.active: list[list[str]] = [[] for _ in leases]
        """Users by partition whom the next beat names; the main loop fills it."""
        self.ticked_at = time.monotonic()
        self.beats = 0
        self.failures = 0

    async def beat(self, bindings: Bindings) -> bool:
        """One beat to every partition; raises if one of them was not taken, False: none was sent."""
        hung_s = time.monotonic() - self.ticked_at
        if hung_s > bindings.settings.lease_ms / 1000 * HUNG_SHARE:
            log.warning("no beat: the main loop hangs", extra={"seconds": round(hung_s, 1)})
            return False
        me = self._me()
        if me != self.owner:
            for lease in self._leases:
                lease.begin_again()
            self.owner = me
        ways = (self._one(bindings, me, number) for number in range(len(self._leases)))
        results = await asyncio.gather(*ways, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                self.failures += 1
                raise result
        return True

    async def _one(self, bindings: Bindings, me: Owner, number: int) -> None:
        lease, settings = self._leases[number], bindings.settings
        active, self.active[number] = self.active[number], []
        sent_at = self._now()
        async with asyncio.timeout(patience_s(settings.lease_ms, settings.beat_ms)):
            answer = await bindings.beat(
                self._type,
                me,
                capacity=self.capacity,
                version=self._version,
                partition=number,
                active=active,
            )
        match answer:
            case Beaten(ttl_ms):
                lease.renewed(sent_at, ttl_ms)
            case Unknown():
                lease.renewed(sent_at, settings.lease_ms)
            case Ended():
                lease.end()
        self.beats += 1


async def beat_or_carry(beating: Beating, bindings: Bindings, carrying: Carrying | None) -> bool:
    """One beat; a lease in the database where it is not taken. False: look again soon."""
    try:
        is_sent = await beating.beat(bindings)
    except (RoostError, TimeoutError) as error:
        log.warning("beat not taken", extra={"reason": str(error) or "no answer in time"})
        if carrying is not None and beating.owner is not None:
            await carrying.carry_on(beating.owner)
        return False
    return carrying is None or not is_sent or await carrying.settle()


class BeatThread:
    """Runs a `Beating`; `start`, then `stop`."""

    def __init__(
        self,
        beating: Beating,
        open_bindings: OpenBindings,
        interval_s: float,
        loops: Loops,
        carrying: Carrying | None = None,
    ) -> None:
        self._beating = beating
        self._open = open_bindings
        self._interval_s = interval_s
        self._carrying = carrying
        self._looping = loops.loop("entity-beat", essential=True)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="roost-entity-beat", daemon=True)
        self._bindings: Bindings | None = None
        self._stack = contextlib.AsyncExitStack()

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, STOP_S)

    def _run(self) -> None:
        task = self._loop.create_task(self._looping.keep_running(self._step))
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end(task))
            self._loop.close()

    async def _step(self) -> None:
        if self._bindings is None:
            self._bindings = await self._stack.enter_async_context(self._open())
        is_settled = await beat_or_carry(self._beating, self._bindings, self._carrying)
        await asyncio.sleep(self._interval_s * (1.0 if is_settled else RETRY_SHARE))

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if self._carrying is not None:
            await self._carrying.close()
        await self._stack.aclose()


class RollCall:
    """Names users for the beats in turn, so that the map does not forget those who stay for long."""

    def __init__(self, beating: Beating, users: Callable[[], Sequence[tuple[str, int]]]) -> None:
        """`users`: everybody here, with their partitions."""
        self._beating = beating
        self._users = users
        self._last = ""

    async def step(self) -> None:
        users = sorted(self._users())
        later = [pair for pair in users if pair[0] > self._last][:ACTIVE_LIMIT] or users[:ACTIVE_LIMIT]
        for number in range(len(self._beating.active)):
            self._beating.active[number] = [user for user, partition in later if partition == number]
        self._last = later[-1][0] if later else ""


@asynccontextmanager
async def ticking(beating: Beating, loops: Loops) -> AsyncIterator[None]:
    """While the block runs, the main loop says that it turns."""

    async def tick() -> None:
        beating.ticked_at = time.monotonic()

    task = asyncio.create_task(loops.keep_running("entity-tick", tick, pause_s=TICK_S))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
