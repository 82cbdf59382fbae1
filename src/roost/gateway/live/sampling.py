"""How things are: the numbers of every capability, read once for all who look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

from roost.api.overview import (
    Attention,
    HomeNumbers,
    JobNumbers,
    OrderNumbers,
    Overview,
    PlatformHealth,
    ServerNumbers,
    WorldNumbers,
)
from roost.app import Platform
from roost.binding.drain.model import Job
from roost.core.errors import StoreError
from roost.gateway.live import attention
from roost.gateway.live.fleet import FleetTable
from roost.gateway.live.leaders import Leaders
from roost.gateway.live.rates import Rates
from roost.gateway.live.sentences import Told, iso, of_shard
from roost.lanes.scripts import Shard
from roost.lanes.views import is_owned, status_of
from roost.store import scopes
from roost.waitingroom.model import WorldBoard
from roost.waitingroom.views import eta_of
from roost.waitingroom.worlds import World

READ_TIMEOUT_S = 2.0
SELDOM = 5
"""What changes seldom is read at every fifth look: leaders, and shards where there was never an owner."""
JOBS = 10
SHOWN_AFTER_END_S = 600.0
MOVED = ("moved",)
"""Cause of a grant that a planned move ended with."""
PLACED = ("new", "return", "failover")
"""Causes of those by which users came to a server."""

Read = TypeVar("Read")


class Sampler:
    """Looks at everything; remembers from look to look what rates and changes need."""

    def __init__(
        self,
        platform: Platform,
        fleet: FleetTable,
        tell: Callable[[Told], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` hears of what no feed has: shards that change hands."""
        self._platform = platform
        self._fleet = fleet
        self._tell = tell
        self._clock = clock
        self._rates = Rates()
        self._leaders = Leaders(platform.store, partial(_led, platform))
        self._led: dict[str, str | None] = {}
        self._looks = 0
        self._shards: dict[int, Shard] = {}
        self._owners: dict[int, str] | None = None

    async def look(self) -> Overview:
        """As things are now; without its recent events."""
        self._rates.look(self._clock())
        parts: tuple[list[WorldNumbers], HomeNumbers, list[Job] | None, OrderNumbers]
        is_away = self._platform.store.answering_since() is None
        if is_away:
            worlds = [WorldNumbers(world.name) for world in self._platform.worlds.all()]
            parts = worlds, HomeNumbers(), None, OrderNumbers()
        else:
            parts = await self._read()
        self._looks += 1
        worlds, homes, drains, orders = parts
        jobs = [_job_numbers(job) for job in drains or ()]
        if drains is not None and homes.users is not None:
            homes.moving = sum(job.left for job in drains if job.is_moving)
        servers, health = self._fleet.numbers(), self._health(is_away)
        needs = self._attention(worlds, servers, jobs, orders, health)
        at = iso(int(time.time() * 1e6))
        return Overview(at, worlds, servers, homes, jobs, orders, health, list(needs), [])

    async def _read(self) -> tuple[list[WorldNumbers], HomeNumbers, list[Job] | None, OrderNumbers]:
        worlds, homes, jobs, orders, _ = await asyncio.gather(
            asyncio.gather(*(self._world(world) for world in self._platform.worlds.all())),
            _known(self._homes(), HomeNumbers()),
            _known(self._jobs(), None),
            _known(self._orders(), OrderNumbers()),
            _known(self._look_for_leaders(), None),
        )
        return list(worlds), homes, jobs, orders

    # -- capabilities

    async def _world(self, world: World) -> WorldNumbers:
        board = await _known(world.room.board.get(), None)
        if board is None:
            return WorldNumbers(world.name)
        numbers = _world_numbers(world.name, board)
        numbers.issued_per_second = self._rates.of(f"issued {world.name}", numbers.issued_total or 0)
        numbers.entered_per_second = self._rates.of(f"consumed {world.name}", numbers.consumed_total or 0)
        return numbers

    async def _homes(self) -> HomeNumbers:
        bindings = self._platform.bindings
        wanted = [(type_, one) for type_ in bindings.types for one in bindings.partitions]
        boards = await asyncio.gather(*(one.board(type_) for type_, one in wanted))
        grants = [board.grants(type_) for (type_, _), board in zip(wanted, boards, strict=True)]
        moved, placed = (
            sum(found.get(cause, 0) for found in grants for cause in causes) for causes in (MOVED, PLACED)
        )
        return HomeNumbers(
            sum(board.bindings for board in boards),
            moves_per_second=self._rates.of("moved", moved),
            placed_per_second=self._rates.of("placed", placed),
        )

    async def _jobs(self) -> list[Job]:
        since = time.time() - SHOWN_AFTER_END_S
        found = await self._platform.drains.list(JOBS)
        return [job for job in found if not job.is_over or job.ended_at > since]

    async def _orders(self) -> OrderNumbers:
        if self._looks % SELDOM == 0 or any(shard.epoch for shard in self._shards.values()):
            self._shards = await self._platform.lanes.owners()
        owned = {number: shard for number, shard in self._shards.items() if is_owned(shard)}
        self._tell_changes({number: shard.server for number, shard in owned.items()})
        if not any(shard.epoch for shard in self._shards.values()):
            return OrderNumbers(shards=len(self._shards), owned=0)
        statuses = {number: status_of(shard.status) for number, shard in owned.items()}
        rejected = {owned[n].server: sum(status.rejected.values()) for n, status in statuses.items()}
        return OrderNumbers(
            shards=len(self._shards),
            owned=len(owned),
            depth=sum(status.depth for status in statuses.values()),
            accepted_per_second=round(sum(status.rate for status in statuses.values()), 1),
            rejected_per_second=self._rates.of("rejected", sum(rejected.values())),
            violations=sum(status.violations for status in statuses.values()),
        )

    def _tell_changes(self, owners: dict[int, str]) -> None:
        former, self._owners = self._owners, owners
        if former is None:
            return
        now = int(time.time() * 1e6)
        for number in sorted(former.keys() | owners.keys()):
            was, is_now = former.get(number, ""), owners.get(number, "")
            if was != is_now:
                self._tell(of_shard(now, number, is_now, was))

    # -- the platform itself

    async def _look_for_leaders(self) -> None:
        if self._looks % SELDOM == 0:
            self._led = await self._leaders.look()

    def _health(self, is_away: bool) -> PlatformHealth:
        failing = [loop.name for loop in self._platform.store.loops.all() if loop.failing_since is not None]
        return PlatformHealth("away" if is_away else "ok", sorted(failing), self._led)

    def _attention(
        self,
        worlds: list[WorldNumbers],
        servers: ServerNumbers,
        jobs: list[JobNumbers],
        orders: OrderNumbers,
        health: PlatformHealth,
    ) -> Iterator[Attention]:
        lost = sum(bool(shard.epoch) and not is_owned(shard) for shard in self._shards.values())
        yield from attention.of_health(health)
        yield from attention.of_servers(servers, self._fleet.named("suspect"))
        yield from attention.of_worlds(worlds)
        yield from attention.of_jobs(jobs)
        yield from attention.of_orders(orders, lost)


def _led(platform: Platform) -> dict[str, scopes.Scope]:
    partitions = platform.bindings.partitions
    return {
        **{f"world {world.name}": world.room.scope for world in platform.worlds.all()},
        **{f"bindings {one.number}": one.scope for one in partitions},
        "drains": scopes.drain(),
    }


async def _known(reading: Awaitable[Read], otherwise: Read) -> Read:
    """What was read; where the store does not tell in time, what stands for "nobody knows"."""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await reading
    except (StoreError, TimeoutError):
        return otherwise


def _world_numbers(name: str, board: WorldBoard) -> WorldNumbers:
    return WorldNumbers(
        name,
        mode=board.mode,
        waiting=board.waiting,
        present=board.waiting,
        away=board.away,
        tickets=board.offers,
        held=board.held,
        inside=board.inside,
        capacity=board.capacity,
        free=board.free,
        consumed_total=board.number("consumed"),
        expired_total=board.number("expired"),
        issued_total=board.number("issued"),
        eta_seconds=eta_of(board, time.time() * 1e6),
        message=board.message,
    )


def _job_numbers(job: Job) -> JobNumbers:
    eta = job.eta_s
    return JobNumbers(
        job.id,
        job.state,
        job.sources,
        job.counts.get("moved", 0),
        job.counts.get("users", 0),
        round(job.rate_now, 1),
        None if eta is None else round(eta),
    )
