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
