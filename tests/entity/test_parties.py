"""Users who move together, what a class says of a move, SURVEY and RETIRE."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import pytest

from roost.core.errors import OutcomeUnknown
from roost.sdk.entity import Durability, Later, Message, Now, Pinned, WriteBack
from roost.testing import eventually
from roost.wire.codes import Code
from roost.wire.server import Answer
from tests.entity.test_moving_faults import faulty, via
from tests.entity.town import ACCEPT, COMMIT, RETIRE, SURVEY, TYPE, UNRETIRE, Counter, House, Town

PARTY = ("ann", "bob", "cy")


class Member(Counter):
    durability: ClassVar[Durability] = WriteBack(ms=60_000)
    says: ClassVar[dict[str, Any]] = {}
    gate: ClassVar[asyncio.Event]

    def can_move(self) -> Now | Later | Pinned:
        said = self.says.get(self.user, Now())
        if isinstance(said, Exception):
            raise said
        found: Now | Later | Pinned = said
        return found

    async def handle(self, message: Message) -> object:
        if message.body == "wait":
            await Member.gate.wait()
        return await super().handle(message)


@pytest.fixture(autouse=True)
async def fresh() -> None:
    Member.says, Member.gate = {user: Now("red") for user in PARTY}, asyncio.Event()


async def two(town: Town) -> tuple[House, House]:
    a, b = await town.open("501", Member), await town.open("502", Member)
    for user in (*PARTY, "di"):
        await town.bind(user, a)
        await a.result(user)
    return a, b


async def outcomes(a: House, b: House, *users: str, **terms: Any) -> dict[str, str]:
    return {report[0]: report[1] for report in await a.move(b, *users, **terms)}


async def everybody_goes_on(*houses: House) -> None:
    for house in houses:
        for user in house.users:
            assert await house.result(user, sequence=2) == 2


# -- parties


async def test_whoever_names_the_party_moves_with_it(town: Town) -> None:
    a, b = await two(town)

    assert await outcomes(a, b, "bob") == dict.fromkeys(PARTY, "moved")

    assert (a.users, b.users) == (["di"], list(PARTY))
    await everybody_goes_on(a, b)


async def test_one_who_is_not_willing_holds_the_whole_party(town: Town) -> None:
    a, b = await two(town)
    frozen: list[str] = []

    async def freeze(*args: Any, **more: Any) -> Any:
        frozen.append(args[1])
        return await town.bindings.freeze(*args, **more)

    a.host.bindings = faulty(town.bindings, freeze=freeze)
    asked = {"n": 0}

    class Fickle:
        """Willing when the party is gathered, not when the turn has come."""

        def get(self, user: str, default: Any) -> Any:
            asked["n"] += 1
            return Later(0.2) if user == "bob" and asked["n"] > 5 else Now("red")

    Member.says = Fickle()  # type: ignore[assignment]
    found = await outcomes(a, b, "ann")

    assert set(found.values()) == {"later"}
    assert frozen == [], "nobody was blocked for it"
    await everybody_goes_on(a)


async def test_before_the_first_commit_any_failure_returns_all(town: Town) -> None:
    a, b = await two(town)

    def refuses_bob(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            if msgspec.msgpack.decode(payload)[1] == "bob":
                raise OutcomeUnknown("no answer")
            found: Answer = await peer.call(service, method, payload, **more)
            return found

        return call

    via(a, refuses_bob)
    assert await outcomes(a, b, "ann") == dict.fromkeys(PARTY, "returned")

    assert a.users == [*PARTY, "di"]
    await eventually(lambda: b.users == [])
    await everybody_goes_on(a)


async def test_a_party_waits_for_no_longer_than_the_target_holds_it(town: Town) -> None:
    """A long mark is for who goes alone: the others would have been given back when the first one commits."""
    town.bindings.settings = replace(town.bindings.settings, move_mark_ms=400)
    a, b = await two(town)

    def is_slow_for_ann(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            if method == ACCEPT and msgspec.msgpack.decode(payload)[1] == "ann":
                await asyncio.sleep(0.8)
            found: Answer = await peer.call(service, method, payload, **more)
            return found

        return call

    via(a, is_slow_for_ann)
    found = await outcomes(a, b, "ann", maxBlockMs=3000, markMs=3000)

    assert set(found) == set(PARTY)
    assert "moved" not in found.values()
    await eventually(lambda: b.users == [])
    await everybody_goes_on(a)


async def test_after_the_first_commit_there_is_only_forward(town: Town) -> None:
    """The answers of all commits but one are lost, some of them with the commit: they are sent again."""
    a, b = await two(town)
    sent: list[str] = []

    def loses(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            user = msgspec.msgpack.decode(payload)[1]
            if method == COMMIT:
                sent.append(user)
                if sent.count(user) == 1 and len(sent) > 1:
                    raise OutcomeUnknown("lost on its way")
            found: Answer = await peer.call(service, method, payload, **more)
            if method == COMMIT and sent.count(user) == 2:
                raise OutcomeUnknown("its answer was lost")
            return found

        return call

    via(a, loses)
    assert await outcomes(a, b, "ann") == dict.fromkeys(PARTY, "moved")
    assert len(sent) > 3
    assert b.users == list(PARTY)
    await everybody_goes_on(a, b)


async def test_a_first_commit_that_is_refused_returns_all(town: Town) -> None:
    a, b = await two(town)

    def refuses(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            if method == COMMIT:
                return Answer(b"", Code.REFUSED)
            found: Answer = await peer.call(service, method, payload, **more)
            return found

        return call

    via(a, refuses)
    found = await outcomes(a, b, "ann")

    assert set(found.values()) <= {"returned", "gone"}
    assert "moved" not in found.values()


async def test_a_commit_that_comes_again_while_it_is_carried_out_is_answered_when_it_is_done(
    town: Town,
) -> None:
    """Refused it means that it will not be done: the source would take back one of a party that moves."""
    a, b = await two(town)
    begun, goes_on, sent = asyncio.Event(), asyncio.Event(), list[asyncio.Task[Answer]]()

    async def commit(*args: Any, **more: Any) -> Any:
        if args[1] == "bob":
            begun.set()
            await goes_on.wait()
        return await town.bindings.commit(*args, **more)

    b.host.bindings = faulty(town.bindings, commit=commit)

    def loses_one(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            one = asyncio.ensure_future(peer.call(service, method, payload, **more))
            if method == COMMIT and msgspec.msgpack.decode(payload)[1] == "bob":
                sent.append(one)
                await begun.wait()
                if len(sent) == 1:
                    raise OutcomeUnknown("lost on its way")
                await asyncio.wait([one], timeout=0.2)  # time to refuse it
                if not one.done():
                    goes_on.set()
            found: Answer = await one
            return found

        return call

    via(a, loses_one)
    assert await outcomes(a, b, "ann") == dict.fromkeys(PARTY, "moved")

    assert len(sent) == 2
    assert (a.users, b.users) == (["di"], list(PARTY))
    await everybody_goes_on(a, b)
    sent[0].cancel()


async def test_a_party_that_is_too_large_is_pinned_and_by_force_each_goes_alone(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.servers.entity.moving.MOST_IN_PARTY", 2)
    a, b = await two(town)

    assert await outcomes(a, b, "ann") == dict.fromkeys(PARTY, "pinned")
    assert await outcomes(a, b, "ann", force=True) == {"ann": "moved"}
    assert (a.users, b.users) == (["bob", "cy", "di"], ["ann"])
    await everybody_goes_on(a, b)


async def test_a_held_user_to_whom_no_word_comes_is_given_back(town: Town) -> None:
    a, b = await two(town)
    b.host.bindings = faulty(town.bindings, settings=faulty(town.bindings.settings, move_mark_ms=50))

    def never_commits(peer: Any) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            if method == COMMIT:
                raise OutcomeUnknown("lost on its way")
            found: Answer = await peer.call(service, method, payload, **more)
            return found

        return call

    via(a, never_commits)
    found = await outcomes(a, b, "ann", markMs=200)

    assert "moved" not in found.values()
    await eventually(lambda: b.users == [])
    for user in PARTY:
        row = await town.database.read(TYPE, user)
        assert row is not None
        assert row.owner != b.owner


async def test_a_party_that_changed_since_it_was_gathered_is_tried_later(town: Town) -> None:
    a, b = await two(town)
    waits = a.put("ann", "wait", 2)
    await eventually(lambda: a.host.sessions["ann"].line.busy)
    moving = asyncio.create_task(outcomes(a, b, "ann"))
    await eventually(lambda: a.host.mover.under_way > 0)
    Member.says = {"ann": Now("blue"), "bob": Now("red"), "cy": Now("red")}
    Member.gate.set()

    assert set((await moving).values()) == {"later"}
    assert (await waits).code is Code.OK
    assert a.users == [*PARTY, "di"]


# -- what the class says


async def test_later_and_pinned_are_respected_with_their_reasons(town: Town) -> None:
    a, b = await two(town)
    Member.says = {
        "ann": Later(2.5),
        "bob": Pinned("in a duel"),
        "cy": ValueError("a fault"),
        "di": "nonsense",
    }

    found = {report[0]: report[1:4] for report in await a.move(b, "ann", "bob", "cy")}

    assert found["ann"][0] == "later"
    assert found["ann"][2]["retryMs"] == 2500
    assert found["bob"][:2] == ["pinned", "in a duel"]
    assert found["cy"][0] == "later"
    assert a.users == [*PARTY, "di"]
    await everybody_goes_on(a)


async def test_force_moves_them_whatever_they_say(town: Town) -> None:
    a, b = await two(town)
    Member.says = {"ann": Later(2.5), "bob": Pinned("in a duel"), "cy": ValueError("a fault")}

    assert await outcomes(a, b, *PARTY, force=True) == dict.fromkeys(PARTY, "moved")
    await everybody_goes_on(b)


# -- SURVEY


async def test_a_survey_lists_everybody_page_by_page(town: Town) -> None:
    a, _ = await two(town)
    Member.says = {"ann": Later(2.5), "bob": Pinned("in a duel"), "cy": Now("red")}
    await a.host.flusher.save_soon(a.host.sessions["ann"], 5)
    await a.logout("di")

    cursor, first = msgspec.msgpack.decode((await a.asks(SURVEY, TYPE, "", 3)).payload)
    end, second = msgspec.msgpack.decode((await a.asks(SURVEY, TYPE, cursor, 3)).payload)

    lines = {line[0]: (line[1], *line[3:]) for line in first + second}
    assert lines == {
        "ann": (1, 0, "later", "", 2500),
        "bob": (1, 1, "pinned", "in a duel", 0),
        "cy": (1, 1, "now", "red", 0),
        "di": (0, 1, "now", "", 0),
    }
    assert (cursor, end) == ("cy", "")
    assert all(0 <= line[2] < 60_000 for line in first)


@pytest.mark.parametrize("parts", [(TYPE, "", 0), (TYPE, "", 501), ("room", "", 5), (TYPE, 5, 5)])
async def test_a_survey_that_cannot_be_right_is_refused(town: Town, parts: tuple[Any, ...]) -> None:
    a = await town.open("501")
    assert (await a.asks(SURVEY, *parts)).code is Code.BAD_REQUEST


# -- RETIRE


async def test_i10_a_retired_server_sends_callers_on_and_leaves_when_none_came_for_long(town: Town) -> None:
    a, b = await two(town)
    left: list[bool] = []
    a.host.retiring.leave = lambda: left.append(True)
    await a.move(b, *PARTY, "di")
    assert (await a.asks(RETIRE, TYPE, 300)).code is Code.OK

    loop = asyncio.get_running_loop()
    until = loop.time() + 0.8
    while loop.time() < until:
        assert (await a.ask("ann", "up", 2)).code is Code.MOVED
        await asyncio.sleep(0.05)
        assert not left, "somebody came just now"

    await eventually(lambda: left == [True])
    assert loop.time() >= until + 0.2
    assert (await a.ask("ann", "up", 2)).code is Code.MOVED


async def test_a_retired_server_lets_go_of_whoever_the_map_names_it_for_again(town: Town) -> None:
    """A failover may have lost the moves away from it: it serves nobody for longer than it must."""
    a, b = await two(town)
    left: list[bool] = []
    a.host.retiring.leave = lambda: left.append(True)
    await a.move(b, *PARTY, "di")
    await a.asks(RETIRE, TYPE, 200)
    await town.bind("eve", a)

    assert await a.result("eve") == 1
    await eventually(lambda: "eve" not in a.host.sessions, "she is given free")

    assert await town.state("eve") == b"1"
    record = await town.bindings.read(TYPE, "eve")
    assert record is not None
    assert record.owner is None, "the map may place her anywhere"
    await eventually(lambda: left == [True], "and the server leaves")


async def test_a_retired_server_takes_nobody_and_may_be_called_back(town: Town) -> None:
    a, b = await two(town)
    left: list[bool] = []
    b.host.retiring.leave = lambda: left.append(True)
    await b.asks(RETIRE, TYPE, 200)

    assert await a.outcome(b, "di") == "returned"
    assert (await b.asks(UNRETIRE, TYPE)).code is Code.OK
    assert await a.outcome(b, "di") == "moved"
    assert await b.result("di", sequence=2) == 2
    assert not left


@pytest.mark.parametrize("parts", [(TYPE,), (TYPE, -1), ("room", 5), (TYPE, 2**40)])
async def test_a_retirement_that_cannot_be_right_is_refused(town: Town, parts: tuple[Any, ...]) -> None:
    a = await town.open("501")
    assert (await a.asks(RETIRE, *parts)).code is Code.BAD_REQUEST
    assert not a.host.retiring.is_on
