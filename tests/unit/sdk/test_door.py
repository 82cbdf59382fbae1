"""A game server's door, on a waiting room that loses answers, delays them and hands them out in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.discovery import RegisterInput
from roost.api.queue import Asking, ConsumeInput, ConsumeReply, How, ReportInput, ReportReply
from roost.core.clock import SystemClock
from roost.core.errors import (
    Forbidden,
    InvalidInput,
    OutcomeUnknown,
    RequestTimeout,
    RoostError,
    ServerFull,
    StoreUnavailable,
    TicketRefused,
    TooManyRequests,
    Unavailable,
)
from roost.core.loops import Loops
from roost.core.passes import Passes, Ticket
from roost.core.signing import MasterKey
from roost.sdk import door as module
from roost.sdk.door import ATTEMPTS, AlreadyConnected, Door
from roost.sdk.guests import TOLD_AT_ONCE, Guest, Leaves
from roost.sdk.heart import Registration
from roost.testing import FakeAdmission, eventually
from roost.testing.script import Gate

KEYS = (MasterKey("k", b"0123456789abcdef"),)
SIGNER = Passes(KEYS, KEYS)


def ticket_of(user: str) -> str:
    return SIGNER.sign_ticket(Ticket("main", user, f"tid-{user}", 1))


class Room(FakeAdmission):
    """Checks every report against the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.door: Door | None = None

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        reply = await super().report(world, server_id, given)
        self.check()
        return reply

    @property
    def most(self) -> int:
        """The most people that may be on the server, as the ledger counts them."""
        last = self.reports[-1]
        return last.users + self.consumed[last.life] - last.counted

    def check(self) -> None:
        assert self.door is not None
        assert self.most >= len(self.door.guests) + len(self.unanswered)


class NoWaiting(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class _NoBackoff:
    def __init__(self, *_: float) -> None: ...

    def next(self) -> float:
        return 0.0

    def reset(self) -> None: ...


@contextmanager
def no_waiting() -> Iterator[None]:
    with patch.multiple(module, jittered=lambda *_: 0.0, Backoff=_NoBackoff, SOON_S=0.0):
        yield


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    with no_waiting():
        yield


def registration() -> Registration:
    return Registration(RegisterInput("game", "kr-1", server_id="501", capacity=10), "i-1", "7", 10.0)


def door_to(room: Room, me: Registration | None = None, interval_s: float = 3600.0) -> Door:
    loops = Loops(NoWaiting())
    room.door = Door(room, me or registration(), report_interval_s=interval_s, loops=loops)
    return room.door


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_a_guest_is_counted_from_the_consume_on() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    guest = await door.consume(ticket_of("ann"))
    assert (guest.user_id, guest.life) == ("ann", "7")
    assert room.most == 1
    await door.report()
    last = room.reports[-1]
    assert (last.users, last.counted, last.capacity) == (1, 1, 10)
    assert last.number > room.reports[-2].number
    await door.leave(guest)
    await door.report()
    assert room.released == [("ann", "clean")]
    assert (room.reports[-1].users, room.most) == (0, 0)


async def test_a_server_that_has_not_reported_does_so_first() -> None:
    room = Room()
    door = door_to(room)
    await door.consume(ticket_of("ann"))
    assert len(room.reports) == 1


class _Patient(_NoBackoff):
    """Notes how often it was asked; waits for ever the fourth time."""

    asked: ClassVar[list[float]] = []

    def __init__(self, _base_s: float, cap_s: float) -> None:
        self._cap_s = cap_s

    def next(self) -> float:
        self.asked.append(self._cap_s)
        return 0.0 if len(self.asked) < 4 else 3600.0


async def test_a_server_that_is_not_known_reports_again_ever_less_often() -> None:
    """Without a manager nobody gets to know it: a thousand doors must not ask five times a second each."""
    room = Room()
    room.is_known = False
    with patch.object(module, "Backoff", _Patient):
        async with door_to(room, interval_s=7.0):
            await until(lambda: len(_Patient.asked) == 4)
            for _ in range(100):
                await asyncio.sleep(0)
            assert (len(room.reports), _Patient.asked) == (4, [7.0] * 4)


async def test_a_server_that_stays_unknown_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    room.is_known = False
    door = door_to(room)
    told = []
    for _ in range(6):
        await door.report()
        told.append(caplog.messages.count("not known here yet"))
    assert told == [0, 0, 0, 1, 1, 1]
    room.is_known = True
    await door.report()
    room.is_known = False
    await door.report()
    assert caplog.messages.count("not known here yet") == 1, "a leader takes a moment to hear of a new life"


async def test_a_lost_answer_is_asked_for_again() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.lose("consume", ATTEMPTS - 1)
    await door.consume(ticket_of("ann"))
    await door.report()
    assert (room.consumed["7"], room.reports[-1].counted, room.most) == (1, 1, 1)


async def test_k_waits_for_every_answer_before_it() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    waiting = room.script.hold("consume")
    tasks = {user: asyncio.create_task(door.consume(ticket_of(user))) for user in ("ann", "bob", "cid")}
    await until(lambda: room.consumed["7"] == 3)
    for user, counted in (("cid", 0), ("bob", 0), ("ann", 3)):
        waiting[user].open()
        await tasks[user]
        await door.report()
        assert (room.reports[-1].counted, room.most) == (counted, 3 if counted else 3 + len(door.guests))


async def test_who_nobody_waits_for_any_more_goes_back_to_the_line() -> None:
    room = Room()
    door = door_to(room, interval_s=0.0)
    async with door:
        room.script.lose("consume", ATTEMPTS)
        with pytest.raises(OutcomeUnknown):
            await door.consume(ticket_of("ann"))
        await until(lambda: room.released == [("ann", "failed")])
        await until(lambda: room.reports[-1].counted == 1)
    assert room.most == 0
    assert "ann" not in room.inside


async def test_a_consume_that_was_never_done_is_settled_by_its_refusal() -> None:
    room = Room()
    door = door_to(room)
    async with door:
        room.script.refuse("*", StoreUnavailable())
        with pytest.raises(StoreUnavailable):
            await door.consume(ticket_of("ann"))
        room.script.allow()
        room.script.refuse("consume", TicketRefused())
        asked = room.script.count("consume")
        await until(lambda: room.script.count("consume") > asked)
        await until(lambda: not door.settling)
    assert room.released == []
    assert door.guests == {}


@pytest.mark.parametrize("refusal", [TicketRefused(), ServerFull()])
async def test_a_refusal_is_passed_on_at_once(refusal: RoostError) -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.refuse("consume", refusal)
    with pytest.raises(type(refusal)):
        await door.consume(ticket_of("ann"))
    assert (room.script.count("consume"), door.guests) == (1, {})


async def test_one_person_has_one_connection() -> None:
    room = Room()
    door = door_to(room)
    guest = await door.consume(ticket_of("ann"))
    with pytest.raises(AlreadyConnected):
        await door.consume(ticket_of("ann"), "another")
    assert await door.consume(ticket_of("ann"), guest.connection) == guest


async def test_g11_whom_a_forgetful_store_lets_in_again_is_refused_while_they_are_here() -> None:
    room = Room()
    door = door_to(room)
    guest = await door.consume(ticket_of("ann"))
    room.forget("ann")
    with pytest.raises(AlreadyConnected):
        await door.consume(ticket_of("ann"), "another")
    assert door.guests == {"ann": guest}
    await door.report()
    assert (room.reports[-1].users, room.reports[-1].counted) == (1, 1)


async def test_g10_a_forgetful_store_lets_in_no_more_than_the_server_takes() -> None:
    room = Room()
    door = door_to(room)
    door.capacity = 2
    for user in ("ann", "bob"):
        await door.consume(ticket_of(user))
        room.forget(user)
    with pytest.raises(ServerFull):
        await door.consume(ticket_of("cid"))
    await door.tell_leaves()
    assert room.released == [("cid", "failed")]
    assert set(door.guests) == {"ann", "bob"}


async def test_who_asks_to_come_in_and_is_not_here_has_left() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    here = await door.consume(ticket_of("ann"))
    waiting = room.script.hold("consume")
    coming = asyncio.create_task(door.consume(ticket_of("bob"), "b-1"))
    await until(lambda: "bob" in room.inside)
    room.asking = [Asking("ann", here.connection), Asking("bob", "b-1"), Asking("cid", "c-1")]
    await door.report()
    await door.tell_leaves()
    assert room.released == [("cid", "dropped")]
    waiting["bob"].open()
    assert (await coming).connection == "b-1"


async def test_a_forged_ticket_does_not_tell_who_is_connected() -> None:
    room = Room()
    door = door_to(room)
    ticket = ticket_of("ann")
    await door.consume(ticket)
    room.script.refuse("consume", TicketRefused())
    with pytest.raises(TicketRefused) as refused:
        await door.consume(ticket[:-2] + "xx", "another")
    assert not isinstance(refused.value, AlreadyConnected)


async def test_a_consume_whose_caller_hung_up_is_settled() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.hold("consume")
    asking = asyncio.create_task(door.consume(ticket_of("ann"), "c1"))
    await eventually(lambda: "ann" in room.inside, "the store to let them in")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    room.script.allow("consume")
    await eventually(lambda: not door.settling, "what became of it")
    await door.tell_leaves()
    await door.report()
    assert room.released == [("ann", "failed")]
    assert (room.reports[-1].users, room.reports[-1].counted) == (0, 1)


async def test_a_refusal_of_the_moment_settles_no_consume() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.hold("consume")
    asking = asyncio.create_task(door.consume(ticket_of("ann"), "c1"))
    await eventually(lambda: "ann" in room.inside, "the store to let them in")
    asking.cancel()
    room.script.allow("consume")
    room.script.refuse("consume", TooManyRequests(), times=1)
    await asyncio.gather(asking, return_exceptions=True)
    await eventually(lambda: not door.settling, "what became of it")
    await door.tell_leaves()
    assert room.released == [("ann", "failed")]


async def test_g11_a_retry_that_came_in_is_not_undone_by_what_became_of_the_first_attempt() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.lose("consume", ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await door.consume(ticket_of("ann"), "c1")
    guest = await door.consume(ticket_of("ann"), "c1")
    await until(lambda: not door.settling)
    await door.tell_leaves()
    await door.report()
    assert (room.released, door.guests, room.most) == ([], {"ann": guest}, 1)


async def test_g11_a_retry_that_is_under_way_is_not_undone_either() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    gates = room.script.hold("consume")
    asking = asyncio.create_task(door.consume(ticket_of("ann"), "c1"))
    await until(lambda: "ann" in room.inside)
    asking.cancel()
    await until(lambda: room.script.count("consume") == 2)
    again = asyncio.create_task(door.consume(ticket_of("ann"), "c1"))
    await until(lambda: room.script.count("consume") == 3)
    gates["ann"].open()
    guest = await again
    await until(lambda: not door.settling)
    await door.tell_leaves()
    assert (room.released, door.guests) == ([], {"ann": guest})


async def test_a_retry_that_is_refused_for_the_moment_leaves_nobody_inside() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.lose("consume", ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await door.consume(ticket_of("ann"), "c1")
    looks, refusal = Gate(), Gate()
    consume, gates = room.consume, [looks, refusal]

    async def late(given: ConsumeInput) -> ConsumeReply:
        gate = gates.pop(0) if gates else None
        if gate is not None:
            await gate.wait()
        if gate is refusal:
            raise TooManyRequests
        return await consume(given)

    with patch.object(room, "consume", late):
        await until(lambda: gates == [refusal])
        again = asyncio.create_task(door.consume(ticket_of("ann"), "c1"))
        await until(lambda: not gates)
        looks.open()
        for _ in range(20):
            await asyncio.sleep(0)
        refusal.open()
        with pytest.raises(TooManyRequests):
            await again
        await until(lambda: not door.settling)
    await door.tell_leaves()
    assert (room.released, room.inside) == ([("ann", "failed")], {})


async def test_who_is_being_handed_back_does_not_come_in_by_a_retry() -> None:
    """The store still has them inside: it would say yes, and put them back in the line after that."""
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.lose("consume", ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await door.consume(ticket_of("ann"), "c1")
    await until(lambda: not door.settling)
    with pytest.raises(TicketRefused):
        await door.consume(ticket_of("ann"), "c1")
    await door.tell_leaves()
    assert (room.released, door.guests) == ([("ann", "failed")], {})


async def test_a_leave_is_not_made_another_by_what_became_of_the_first_attempt() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    room.script.lose("consume", ATTEMPTS)
    with pytest.raises(OutcomeUnknown):
        await door.consume(ticket_of("ann"), "c1")
    guest = await door.consume(ticket_of("ann"), "c1")
    room.script.refuse("release", StoreUnavailable())
    await door.leave(guest, "dropped")
    await until(lambda: not door.settling)
    room.script.allow("release")
    await door.tell_leaves()
    assert room.released == [("ann", "dropped")]


async def test_a_leave_is_told_later_if_not_now_and_who_dropped_is_counted_until_then() -> None:
    room = Room()
    door = door_to(room)
    ann, bob = [await door.consume(ticket_of(user)) for user in ("ann", "bob")]
    room.script.refuse("*", StoreUnavailable())
    await door.leave(ann, "dropped")
    await door.leave(bob, "clean")
    room.script.allow()
    await door.report()
    assert room.reports[-1].users == 1
    await door.tell_leaves()
    await door.report()
    assert sorted(room.released) == [("ann", "dropped"), ("bob", "clean")]
    assert room.reports[-1].users == 0


@pytest.mark.parametrize("error", [TooManyRequests(), Unavailable(), RequestTimeout()])
async def test_g12_a_refusal_of_the_moment_loses_no_leave(error: RoostError) -> None:
    room = Room()
    door = door_to(room)
    ann = await door.consume(ticket_of("ann"))
    room.script.refuse("*", error)
    await door.leave(ann, "dropped")
    room.script.allow()
    await door.tell_leaves()
    assert room.released == [("ann", "dropped")]


@pytest.mark.parametrize(("life", "kept"), [("1", TOLD_AT_ONCE), ("2", 0)])
async def test_leaves_that_stay_refused_hold_up_no_others(life: str, kept: int) -> None:
    """By a key that was dropped: those of a former life are over: the store holds nothing of it."""
    told: list[str] = []
    asked = 0

    async def release(guest: Guest, how: How) -> None:
        nonlocal asked
        asked += 1
        if guest.life == "1":
            raise Forbidden("nothing proves it")
        told.append(guest.user_id)

    leaves = Leaves(release, lambda: life)
    for number in range(TOLD_AT_ONCE):
        leaves.add(Guest(f"u{number}", "", "", f"c{number}", "1"), "dropped")
    leaves.add(Guest("ann", "", "", "c", "2"), "dropped")
    await leaves.tell()
    assert told == ["ann"]
    assert asked == TOLD_AT_ONCE + 1, "each once"
    assert leaves.dropped == kept
    await leaves.tell()
    assert asked == TOLD_AT_ONCE + 1 + kept


async def test_leaves_are_not_all_tried_while_nobody_answers() -> None:
    tried: list[str] = []

    async def release(guest: Guest, how: How) -> None:
        tried.append(guest.user_id)
        raise StoreUnavailable

    leaves = Leaves(release, lambda: "1")
    for number in range(2 * TOLD_AT_ONCE):
        leaves.add(Guest(f"u{number}", "", "", f"c{number}", "1"), "dropped")
    await leaves.tell()
    assert len(tried) == TOLD_AT_ONCE


async def test_the_loop_tells_what_could_not_be_told() -> None:
    room = Room()
    async with door_to(room, interval_s=0.0) as door:
        guest = await door.consume(ticket_of("ann"))
        room.script.refuse("*", StoreUnavailable())
        await door.leave(guest, "dropped")
        room.script.allow()
        await until(lambda: room.released == [("ann", "dropped")])
        await until(lambda: room.most == 0)


async def test_a_new_life_begins_with_everybody_who_is_here() -> None:
    room, me = Room(), registration()
    door = door_to(room, me)
    for user in ("ann", "bob"):
        await door.consume(ticket_of(user))
    me.life = "8"
    await door.report()
    last = room.reports[-1]
    assert (last.life, last.users, last.counted) == ("8", 2, 0)
    await door.consume(ticket_of("cid"))
    await door.report()
    assert (room.reports[-1].counted, room.most) == (1, 3)


async def test_who_dropped_out_of_a_former_life_is_not_counted_in_this_one() -> None:
    room, me = Room(), registration()
    door = door_to(room, me)
    ann, _ = [await door.consume(ticket_of(user)) for user in ("ann", "bob")]
    me.life = "8"
    await door.report()
    room.script.refuse("release", StoreUnavailable())
    await door.leave(ann, "dropped")
    await door.report()
    assert (room.reports[-1].life, room.reports[-1].users) == ("8", 1)


async def test_who_was_let_into_an_earlier_life_is_sent_back() -> None:
    room, me = Room(), registration()
    door = door_to(room, me)
    await door.report()
    waiting = room.script.hold("consume")
    consuming = asyncio.create_task(door.consume(ticket_of("ann")))
    await until(lambda: "ann" in room.inside)
    me.life = "8"
    waiting["ann"].open()
    with pytest.raises(TicketRefused):
        await consuming
    await door.tell_leaves()
    assert (room.released, door.guests) == ([("ann", "failed")], {})


async def test_a_door_that_drains_offers_no_room() -> None:
    room = Room()
    door = door_to(room)
    guest = await door.consume(ticket_of("ann"))
    door.drain = True
    await door.report()
    assert room.reports[-1].capacity == 1
    await door.leave(guest)
    await door.report()
    assert room.reports[-1].capacity == 0


async def test_an_operators_drain_is_reported_without_any_code_of_the_server() -> None:
    room, me = Room(), registration()
    door = door_to(room, me)
    await door.consume(ticket_of("ann"))
    me.draining = True
    await door.report()
    assert room.reports[-1].capacity == 1


def test_a_server_without_a_capacity_gets_no_door() -> None:
    me = registration()
    me.given.capacity = 0
    with pytest.raises(InvalidInput, match="capacity"):
        door_to(Room(), me)


async def test_a_number_that_the_door_never_learned_leaks_no_room() -> None:
    """Six were let in of whom it heard nothing: by an earlier door of this life, or answers were lost."""
    room = Room()
    door = door_to(room)
    await door.report()
    room.consumed["7"] = 6
    await door.consume(ticket_of("ann"))
    await door.report()
    await door.report()
    assert (room.reports[-1].counted, room.most) == (7, 1)


async def test_nothing_is_passed_over_while_a_consume_is_under_way_or_begins_during_the_report() -> None:
    room = Room()
    door = door_to(room)
    await door.report()
    answers, reports = room.script.hold("consume"), room.script.hold("report")
    reporting = asyncio.create_task(door.report())
    await until(lambda: "501" in reports)
    consuming = asyncio.create_task(door.consume(ticket_of("ann")))
    await until(lambda: "ann" in room.inside)
    reports["501"].open()
    await reporting
    room.script.allow("report")
    await door.report()
    assert room.reports[-1].counted == 0, "ann is in no table yet"
    answers["ann"].open()
    await consuming
    await door.report()
    assert (room.reports[-1].counted, room.most) == (1, 1)


async def test_a_late_reply_to_a_report_of_a_former_life_counts_for_nothing() -> None:
    room, me = Room(), registration()
    door = door_to(room, me)
    await door.consume(ticket_of("ann"))
    room.consumed["7"] = 9
    reports = room.script.hold("report")
    reporting = asyncio.create_task(door.report())
    await until(lambda: "501" in reports)
    room.script.allow("report")
    me.life = "8"
    await door.report()
    reports["501"].open()
    await reporting
    await door.report()
    assert (room.reports[-1].life, room.reports[-1].counted) == ("8", 0)


async def test_closing_the_door_lets_everybody_go_and_takes_its_capacity_back() -> None:
    room = Room()
    async with door_to(room) as door:
        for user in ("ann", "bob"):
            await door.consume(ticket_of(user))
    assert sorted(room.released) == [("ann", "dropped"), ("bob", "dropped")]
    assert (room.reports[-1].capacity, room.reports[-1].users) == (0, 0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(0, ATTEMPTS + 1)),
        st.tuples(st.just("answer"), st.integers(0, 9)),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("report"), st.just(0)),
        st.tuples(st.just("turn"), st.integers(1, 20)),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_g10_whatever_gets_lost_or_late_nobody_is_missed(steps: list[tuple[str, int]]) -> None:
    """n + (consumes - k) is never less than the people who are here or on their way in."""

    async def play() -> None:
        room = Room()
        waiting = room.script.hold("consume")
        door, tasks, people = door_to(room), [], 0
        await door.report()
        for step, number in steps:
            if step == "come":
                people += 1
                room.script.lose("consume", number)
                tasks.append(asyncio.create_task(door.consume(ticket_of(f"u{people}"))))
            elif step == "answer" and waiting:
                list(waiting.values())[number % len(waiting)].open()
            elif step == "leave" and door.guests:
                guest = list(door.guests.values())[number % len(door.guests)]
                await door.leave(guest, "dropped" if number % 2 else "clean")
            elif step == "report":
                await door.report()
            for _ in range(number if step == "turn" else 2):
                await asyncio.sleep(0)
            room.check()
        room.script.allow("consume")
        for _ in range(100):
            for gate in waiting.values():
                gate.open()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: not door.settling)
        await door.tell_leaves()
        await door.report()
        assert room.most == len(door.guests) == len(room.inside), "in the end the ledger is exact"

    with no_waiting():
        asyncio.run(play())
