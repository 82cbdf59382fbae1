"""A drain job on real entity hosts: users who play all the while, there and back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import msgspec
import pytest

from roost.api.discovery import Instance, InstanceList, Override
from roost.api.drain import SchemaPoint
from roost.binding.drain.jobs import Drains
from roost.binding.drain.model import DrainRequest, Job
from roost.binding.drain.movers import WireMovers
from roost.sdk.entity import Later, Now, Pinned
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import SECRET, TYPE, Counter, House, Town

BEAT_S = 0.5
USERS = [f"u{number:02}" for number in range(24)]


class Newer(Counter):
    """Its rows need a reader of its own schema."""

    schema_version: ClassVar[int] = 2
    min_reader: ClassVar[int] = 2


class Choosy(Counter):
    """Says of some users that they cannot move."""

    def can_move(self) -> Now | Later | Pinned:
        if self.user == "u00":
            return Pinned("in a duel")
        if self.user in ("u01", "u02", "u03"):
            return Now(party="raid")
        return Now()


class Place:
    """The part of discovery that a drain asks, over the houses of a town; and a manager."""

    def __init__(self, town: Town, *, has_labels: bool = True) -> None:
        self.town = town
        self.houses: dict[str, House] = {}
        self.overrides: dict[str, Override] = {}
        self.movers = WireMovers(lambda: SECRET)
        self.drains = Drains(town.store, town.bindings, self, self.movers)
        self._has_labels = has_labels

    async def open(self, server_id: str, entity: type[Counter] = Counter) -> House:
        house = self.houses[server_id] = await self.town.open(server_id, entity)
        return house

    async def discover(self, type_: str = "*", group: str = "*", /) -> InstanceList:
        houses = self.houses.values() if type_ == TYPE else ()
        return InstanceList([self._instance(house) for house in houses], 1)

    def _instance(self, house: House) -> Instance:
        override = self.overrides.get(house.owner.server_id)
        willing = override is None or not override.drain
        entity = house.host.entity
        labels = {"schemaVersion": str(entity.schema_version), "minReader": str(entity.min_reader)}
        return Instance(
            type=TYPE,
            group="test",
            instance_id=house.owner.server_id,
            server_id=house.owner.server_id,
            life=house.owner.life,
            private_ip=house.address[0],
            ports={"wire": house.address[1]},
            status="ready",
            accepting=willing,
            willing=willing,
            last_heartbeat="",
            labels=labels if self._has_labels else {},
            override=override,
        )

    async def override(self, instance_id: str, override: Override | None, /) -> None:
        self.overrides[instance_id] = override or Override()
        await self.town.shows(self.houses[instance_id].owner, "0" if override and override.drain else "1")

    async def drain(self, *servers: str, **more: Any) -> Job:
        return await self.drains.start(DrainRequest(servers=list(servers), **{"rate": 10_000} | more))

    async def becomes(self, job: Job, state: str) -> Job:
        found = job

        async def is_so() -> bool:
            nonlocal found
            found = await self.drains.get(job.id)
            return found.state == state and found.is_over

        await eventually(is_so, f"a drain that is {state}", details=lambda: repr(found))
        return found

    async def owners(self, users: list[str]) -> set[str]:
        records = [await self.town.bindings.read(TYPE, user) for user in users]
        return {record.owner.server_id if record and record.owner else "" for record in records}

    async def beat(self) -> None:
        while self.houses is not None:
            for house in self.houses.values():
                await house.beat()
            await asyncio.sleep(BEAT_S)


@contextlib.asynccontextmanager
async def managed(town: Town, **more: Any) -> AsyncIterator[Place]:
    place = Place(town, **more)
    tasks = [asyncio.create_task(place.beat()), asyncio.create_task(place.drains.lead())]
    try:
        yield place
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await place.movers.close()


class Player:
    """Sends one message after the other to wherever the map says, and keeps what was answered."""

    def __init__(self, place: Place, user: str) -> None:
        self.results: list[int] = []
        self._place = place
        self._user = user

    async def play(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.turn()

    async def turn(self) -> None:
        """One message, sent until it is answered."""
        sequence, have = len(self.results) + 1, len(self.results)
        while len(self.results) == have:
            record = await self._place.town.bindings.read(TYPE, self._user)
            assert record is not None
            assert record.owner is not None
            house = self._place.houses[record.owner.server_id]
            answer = await house.put(self._user, "up", sequence, oldest=sequence)
            if answer.code is Code.OK:
                self.results.append(msgspec.msgpack.decode(answer.payload)[0])
            else:
                assert answer.code in (Code.MOVED, Code.OVERLOADED), answer.message


async def settled(place: Place, house: House) -> list[Player]:
    players = [Player(place, user) for user in USERS]
    for user, player in zip(USERS, players, strict=True):
        await place.town.bind(user, house)
        await player.turn()
    return players


async def test_users_who_play_are_moved_there_and_back_and_nothing_is_lost(town: Town) -> None:
    async with managed(town) as place:
        old = await place.open("501")
        new = await place.open("502")
        players = await settled(place, old)
        over = asyncio.Event()
        playing = [asyncio.create_task(player.play(over)) for player in players]

        done = await place.becomes(await place.drain("501"), "done")
        assert await place.owners(USERS) == {"502"}
        assert (done.counts["moved"], done.counts["gone"], len(old.users)) == (len(USERS), 0, 0)
        assert old.host.retiring.is_on

        await place.drains.rollback(done.id)
        back = await place.becomes(done, "cancelled")
        over.set()
        await asyncio.gather(*playing)

        assert await place.owners(USERS) == {"501"}
        assert (back.counts["back"], new.users) == (len(USERS), [])
        assert not old.host.retiring.is_on
        for player in players:
            assert player.results == list(range(1, len(player.results) + 1)), "each once, in order"
        notes = await town.bindings.moves(TYPE, USERS[0])
        assert [(one.source, one.target, one.outcome) for one in notes if one.outcome == "moved"] == [
            ("502", "501", "moved"),
            ("501", "502", "moved"),
        ]
        assert {"freeze", "flush", "accept", "total"} <= notes[0].phases.keys()


async def test_the_pinned_wait_for_the_deadline_and_a_party_stays_together(town: Town) -> None:
    async with managed(town) as place:
        old = await place.open("501", Choosy)
        await place.open("502", Choosy)
        await place.open("503", Choosy)
        await settled(place, old)

        plan = await place.drains.plan(DrainRequest(servers=["501"]))
        assert plan.pinned == {"u00": "in a duel"}
        job = await place.drain("501", deadline_s=2.0)
        await eventually(lambda: old.users == ["u00"], "everybody else has moved")
        assert (await place.drains.get(job.id)).pinned == {"u00": "in a duel"}
        done = await place.becomes(job, "done")

        assert (done.counts["moved"], done.counts["forced"]) == (len(USERS), 1)
        assert len(await place.owners(["u01", "u02", "u03"])) == 1


async def test_there_is_no_way_back_below_what_the_new_version_has_written(town: Town) -> None:
    async with managed(town) as place:
        old = await place.open("501")
        await place.open("502", Newer)
        await settled(place, old)
        plan = await place.drains.plan(DrainRequest(servers=["501"]))
        assert "cannot go back to 501" in plan.schema_point
        done = await place.becomes(await place.drain("501"), "done")

        with pytest.raises(SchemaPoint):
            await place.drains.rollback(done.id)


async def test_rows_of_a_newer_schema_stay_and_the_rest_goes_back(town: Town) -> None:
    async with managed(town, has_labels=False) as place:
        old = await place.open("501")
        new = await place.open("502", Newer)
        players = await settled(place, old)
        done = await place.becomes(await place.drain("501"), "done")
        await players[0].turn()
        await eventually(lambda: not new.host.sessions["u00"].unsaved.is_dirty, "it is written")

        await place.drains.rollback(done.id)
        back = await place.becomes(done, "cancelled")

        assert await place.owners(["u00"]) == {"502"}
        assert "schema version 2" in back.pinned["u00"]
        assert back.why == f"rolled back: {back.counts['back']} users are back, {len(back.pinned)} stayed"
        await players[0].turn()
        assert players[0].results == [1, 2, 3]
