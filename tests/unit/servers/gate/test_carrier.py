"""What a carrier does beside its lane."""

from __future__ import annotations

import pytest

from roost.servers.gate.queued import MOST_LATE_BYTES
from roost.wire.answer import digest_of
from roost.wire.codes import Code
from tests.unit.servers.gate.carried import HOME, OTHER, Carried, Sent


def test_the_logout_of_a_user_who_was_moved_reaches_the_new_home_once() -> None:
    town = Carried()
    town.settle()
    town.carrier.close("closed")

    town.logouts[0].refused(Code.MOVED)
    town.logouts[1].refused(Code.MOVED)

    assert [one.server for one in town.logouts] == [HOME.server_id, OTHER.server_id]


def test_a_client_that_leaves_during_its_login_is_logged_out_after_it() -> None:
    town = Carried()
    town.lane.start()
    town.lane.routed(town.lane.turn, HOME)
    town.carrier.close("dropped")
    assert [one.server for one in town.logouts] == [HOME.server_id]


def test_a_client_of_whom_no_home_has_heard_is_logged_out_nowhere() -> None:
    town = Carried()
    town.lane.start()
    town.carrier.close("dropped")
    assert town.logouts == []


def test_a_logout_that_was_taken_is_told_to_nobody_else() -> None:
    town = Carried()
    town.settle()
    town.carrier.close("closed")

    town.logouts[0].ok(b"", HOME.epoch)

    assert [one.server for one in town.logouts] == [HOME.server_id]


def test_a_bounce_of_what_ran_is_never_told_as_not_executed() -> None:
    town = Carried()
    town.settle()
    town.say("a")
    town.say("b")
    town.take().refused(Code.MOVED, executed=True)
    town.take().refused(Code.MOVED)

    town.clock.now += 6
    town.lane.expire()
    assert town.client.told == [("b", "UNAVAILABLE")]

    town.clock.now += 10
    town.lane.expire()
    assert town.client.told[1:] == [("a", "OUTCOME_UNKNOWN")]


def test_what_ran_and_bounced_is_answered_by_the_next_home_under_its_number() -> None:
    town = Carried()
    town.settle()
    town.say("a")
    bounced = town.take()
    bounced.refused(Code.MOVED, executed=True)
    town.settle(OTHER, last=bounced.sequence)

    again = town.take()
    again.ok(b"1", 20)

    assert again.sequence == bounced.sequence
    assert town.client.told == [("a", "ok")]


def moved_with_a_late_reply(reply: bytes) -> tuple[Carried, Sent]:
    """The feed's news came before the reply of the home that executed it; the repetition is on its way."""
    town = Carried()
    town.settle()
    book = town.counted()
    town.say("a")
    late = town.take()
    town.lane.changed(OTHER)
    late.ok(reply, HOME.epoch)
    assert town.client.told == []
    town.settle(OTHER, last=1)
    assert book.open == 1
    return town, town.take()


def test_a_reply_that_the_new_home_knows_by_its_digest_is_delivered() -> None:
    town, again = moved_with_a_late_reply(b"large")
    [book] = town.carrier.books

    again.refused(Code.REFUSED, epoch=OTHER.epoch, executed=True, digest=digest_of(Code.OK, b"large"))

    assert town.client.told == [("a", "ok")]
    assert (book.answered, book.unknown, book.doubled) == (1, 0, 0)
    assert town.terms.room.late_bytes == 0


@pytest.mark.parametrize("digest", [digest_of(Code.OK, b"other"), digest_of(Code.FAILED, b"large"), b""])
def test_g7_a_late_reply_that_the_new_home_does_not_know_is_not_delivered(digest: bytes) -> None:
    town, again = moved_with_a_late_reply(b"large")

    again.refused(Code.REFUSED, epoch=OTHER.epoch, executed=True, digest=digest)

    assert town.client.told == [("a", "OUTCOME_UNKNOWN")]
    assert town.terms.room.late_bytes == 0


def test_late_replies_have_a_bound_and_are_forgotten_with_their_session() -> None:
    town = Carried()
    town.settle()
    for name in "ab":
        town.say(name)
    late = [town.take(), town.take()]
    town.lane.changed(OTHER)
    for one in late:
        one.ok(bytes(MOST_LATE_BYTES - 1), HOME.epoch)
    assert [message.late is not None for message in town.lane] == [True, False]
    assert town.terms.room.late_bytes == MOST_LATE_BYTES - 1

    town.carrier.close("closed")

    assert town.terms.room.late_bytes == 0
