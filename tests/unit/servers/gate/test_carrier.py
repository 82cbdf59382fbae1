"""What a carrier does beside its lane."""

from __future__ import annotations

from roost.wire.codes import Code
from tests.unit.servers.gate.carried import HOME, OTHER, Carried


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
