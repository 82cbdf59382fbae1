"""Random faults, one after another, under players who count: order, once, and what was acknowledged stays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import ClassVar

import msgspec
import pytest

from roost.binding.scripts import Bound, Placed
from roost.core.errors import RoostError
from roost.sdk.entity import Durability, Journal, WriteBack, WriteThrough
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=50)


class Written(Counter):
    durability: ClassVar[Durability] = WriteThrough()


class Behind(Counter):
    durability: ClassVar[Durability] = WriteBack(ms=200)


Fault = Callable[[], Awaitable[None]]


class Chaos:
    """Three servers, and a gate's logic for each player."""

    def __init__(self, town: Town, entity: type[Counter], seed: int) -> None:
        self.town = town
        self.entity = entity
        self.random = random.Random(seed)
        self.houses: dict[str, House] = {}
        self.results: dict[str, list[int]] = {}
        self.seen: dict[str, int] = {}

    async def open(self, server_id: str) -> None:
        self.houses[server_id] = await self.town.open(server_id, self.entity, stall_ms=200)

    async def play(self, user: str, messages: int) -> None:
        for sequence in range(1, messages + 1):
            async with asyncio.timeout(30):
                while (result := await self._try(user, sequence)) is None:
                    await asyncio.sleep(0.002)
            self.results.setdefault(user, []).append(result)

    async def _try(self, user: str, sequence: int) -> int | None:
        try:
            found = await self.town.bindings.resolve(TYPE, user, seen=self.seen.get(user, 0))
            if not isinstance(found, Bound | Placed) or found.server_id not in self.houses:
                return None
            self.seen[user] = max(self.seen.get(user, 0), found.epoch)
            house = self.houses[found.server_id]
            answer = await house.put(user, "up", sequence, oldest=sequence, epoch=found.epoch)
        except RoostError:
            return None
        if answer.code is not Code.OK or answer.epoch < self.seen[user]:
            assert answer.code not in (Code.FAILED, Code.REFUSED, Code.BAD_REQUEST), answer.message
            return None
        self.seen[user] = answer.epoch
        return int(msgspec.msgpack.decode(answer.payload)[0])

    # -- faults

    async def crash(self) -> None:
        """kill -9 of one, whose death is known at once; another of that name starts."""
        server_id = self.random.choice(list(self.houses))
        house = self.houses.pop(server_id)
        await house.crash()
        await self.town.bury(house)
        await self.open(server_id)

    async def lapse(self) -> None:
        house = self.random.choice(list(self.houses.values()))
        house.lapse()
        await asyncio.sleep(0.01)
        await house.beat()

    async def takes_over(self) -> None:
        """One is paused for longer than its lease, as the others see it, and wakes."""
        server_id, house = self.random.choice(list(self.houses.items()))
        house.lapse()
        await self.town.bury(house)
        await asyncio.sleep(0.02)
        await house.beat()  # it hears that its life is over, and lets everybody go
        await house.crash()
        del self.houses[server_id]
        await self.open(server_id)

    async def store_away(self) -> None:
        """One loses the store for longer than its lease and carries on by the database; the others do not."""
        house = self.random.choice(list(self.houses.values()))
        others = [other for other in self.houses.values() if other is not house]
        house.link.is_cut = True
        await self.town.leases_end(house, beating=others)
        await asyncio.sleep(0.02)
        house.link.is_cut = False
        await house.settles()

    async def forgets_some(self) -> None:
        """The map loses grants, as in a failover."""
        for key in await self.town.store.call("KEYS", "bind:user*", key=b""):
            if self.random.random() < 0.5:
                await self.town.store.call("DEL", key, key=key)
        for house in self.houses.values():
            await house.host.healer.reassert_all()

    async def forgets_the_journal(self) -> None:
        """Of those who have a living owner: with a crash at once what it had is lost, as documented."""
        for key in await self.town.store.call("KEYS", "*journal*", key=b""):
            user = key.decode().rpartition(":")[2]
            if any(self._holds(house, user) for house in self.houses.values()):
                await self.town.store.call("DEL", key, key=key)
        for house in self.houses.values():
            for session in list(house.host.sessions.values()):
                house.host.journal.again(session)
        await asyncio.sleep(0.02)

    async def moves(self) -> None:
        """Somebody is moved to another server; what becomes of it, the players do not notice."""
        source, target = self.random.sample(list(self.houses.values()), 2)
        if source.users:
            await source.move(target, self.random.choice(source.users), maxBlockMs=300)

    async def moves_while(self) -> None:
        """A move, and another fault in its midst."""
        moving = asyncio.create_task(self.moves())
        await asyncio.sleep(self.random.random() * 0.02)
        await self.random.choice([self.crash, self.lapse, self.takes_over, self.forgets_some])()
        await asyncio.wait([moving], timeout=10)
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)

    def _holds(self, house: House, user: str) -> bool:
        session, residence = house.host.sessions.get(user), house.host.residence
        return (
            session is not None
            and session.is_open
            and residence.is_held(session.partition)
            and residence.is_current(session)
        )

    async def releases(self) -> None:
        house = self.random.choice(list(self.houses.values()))
        for session in list(house.host.sessions.values()):
            session.used_at = 0.0
        await house.host.release_idle()


async def played(chaos: Chaos, faults: list[Fault], messages: int = 150) -> None:
    """Twelve players through these faults; each hears every number once, in order."""
    for server_id in ("501", "502", "503"):
        await chaos.open(server_id)
    playing = [asyncio.create_task(chaos.play(f"u{n}", messages)) for n in range(12)]

    async def all_play() -> bool:
        """On a slow machine the first leases would be over before the first fault beats."""
        for house in chaos.houses.values():
            await house.step()
        return len(chaos.results) == 12

    await eventually(all_play, "everybody plays")
    while not all(task.done() for task in playing):
        await chaos.random.choice(faults)()
        await asyncio.sleep(chaos.random.random() * 0.05)
    await asyncio.gather(*playing)
    assert all(found == list(range(1, messages + 1)) for found in chaos.results.values()), chaos.results


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5))]
)
@pytest.mark.parametrize("entity", [Journaled, Written])
async def test_g9_nothing_is_lost_doubled_or_reordered(town: Town, entity: type[Counter], seed: int) -> None:
    chaos = Chaos(town, entity, seed)
    faults: list[Fault] = [
        chaos.crash,
        chaos.lapse,
        chaos.takes_over,
        chaos.store_away,
        chaos.forgets_some,
        chaos.forgets_the_journal,
        chaos.releases,
        chaos.moves,
        chaos.moves_while,
    ]
    await played(chaos, faults)


@pytest.mark.parametrize("seed", range(3))
async def test_g9_servers_that_lose_the_store_in_turn_lose_nothing_of_write_back(
    town: Town, seed: int
) -> None:
    """Only crashes may cost what was acknowledged within the window, and there is none."""
    chaos = Chaos(town, Behind, seed)
    await played(chaos, [chaos.store_away, chaos.store_away, chaos.releases, chaos.moves])
