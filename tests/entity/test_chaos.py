"""Random faults, one after another, under players who count: order, once, and what was acknowledged stays."""

from __future__ import annotations

import asyncio
import random
from typing import ClassVar

import msgspec
import pytest

from roost.binding.scripts import Bound, Placed
from roost.core.errors import RoostError
from roost.sdk.entity import Durability, Journal, WriteThrough
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import TYPE, Counter, House, Town


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=50)


class Written(Counter):
    durability: ClassVar[Durability] = WriteThrough()


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

    async def forgets_some(self) -> None:
        """The map loses grants, as in a failover."""
        for key in await self.town.store.call("KEYS", "bind:user*", key=b""):
            if self.random.random() < 0.5:
                await self.town.store.call("DEL", key, key=key)
        for house in self.houses.values():
            await house.host.healer.reassert_all()

    async def forgets_the_journal(self) -> None:
        for key in await self.town.store.call("KEYS", "*journal*", key=b""):
            await self.town.store.call("DEL", key, key=key)
        for house in self.houses.values():
            for session in list(house.host.sessions.values()):
                house.host.journal.again(session)
        await asyncio.sleep(0.02)

    async def releases(self) -> None:
        house = self.random.choice(list(self.houses.values()))
        for session in list(house.host.sessions.values()):
            session.used_at = 0.0
        await house.host.release_idle()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("entity", [Journaled, Written])
async def test_g9_nothing_is_lost_doubled_or_reordered(town: Town, entity: type[Counter], seed: int) -> None:
    chaos = Chaos(town, entity, seed)
    for server_id in ("501", "502", "503"):
        await chaos.open(server_id)
    faults = [
        chaos.crash,
        chaos.lapse,
        chaos.takes_over,
        chaos.forgets_some,
        chaos.forgets_the_journal,
        chaos.releases,
    ]
    messages = 150
    playing = [asyncio.create_task(chaos.play(f"u{n}", messages)) for n in range(12)]

    await eventually(lambda: len(chaos.results) == 12)
    while not all(task.done() for task in playing):
        await chaos.random.choice(faults)()
        await asyncio.sleep(chaos.random.random() * 0.05)
    await asyncio.gather(*playing)

    assert all(found == list(range(1, messages + 1)) for found in chaos.results.values()), chaos.results
