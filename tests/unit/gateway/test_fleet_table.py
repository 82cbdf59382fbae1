"""The servers as viewers see them: what a change means, and how many there are of each."""

from __future__ import annotations

from typing import Any

import msgspec

from roost.api.discovery import Change, Instance, Override
from roost.gateway.live.fleet import FleetTable
from roost.gateway.live.sentences import Told

AT = 1_800_000_000_000_000
ONE = Instance(
    instance_id="i1",
    type="game",
    group="main",
    server_id="501",
    life="7",
    status="ready",
    accepting=True,
    last_heartbeat="2027-01-15T07:59:48+00:00",
    capacity=10,
    load=2,
)


def with_(**fields: Any) -> Instance:
    return msgspec.structs.replace(ONE, **fields)


def change(event: str, instance: Instance | None = None, **more: Any) -> Change:
    given = {"instance_id": "i1", "server_id": "501", "instance": instance, **more}
    return Change(event, 1, str(AT), **given)  # type: ignore[arg-type]


def table(*instances: Instance) -> FleetTable:
    made = FleetTable()
    assert made.take(Change("snapshot", 1, str(AT), instances=list(instances))) == []
    return made


def said(found: list[Told]) -> list[tuple[str, str]]:
    return [(told.happening.event, told.happening.text) for told in found]


def test_a_server_that_falls_silent_and_comes_back() -> None:
    fleet = table(ONE)
    silent = fleet.take(change("changed", with_(status="suspect", accepting=False)))
    assert said(silent) == [("unhealthy", "501 is unhealthy: no heartbeat for 12 s")]
    assert silent[0].happening.level == "warning"
    assert fleet.numbers().suspect == 1
    assert fleet.named("suspect") == [("game", "501")]
    assert said(fleet.take(change("changed", ONE))) == [("healthy", "501 (game) is healthy again")]


def test_a_server_whose_checks_fail_says_so() -> None:
    found = table(ONE).take(change("changed", with_(status="suspect", unhealthy=True, accepting=False)))
    assert said(found) == [("unhealthy", "501 is unhealthy: its health checks fail")]


def test_a_load_that_changes_is_no_event_and_is_counted() -> None:
    fleet = table(ONE)
    assert fleet.take(change("changed", with_(load=10, accepting=False, willing=True))) == []
    numbers = fleet.numbers()
    assert (numbers.full, numbers.accepting) == (1, 0)
    assert [(one.type, one.load, one.capacity) for one in numbers.by_type] == [("game", 10, 10)]


def test_an_override_and_its_end() -> None:
    fleet = table(ONE)
    drained = fleet.take(change("changed", with_(override=Override(drain=True), accepting=False)))
    assert said(drained) == [("override", "501 (game): an operator's override: takes no new users")]
    assert fleet.numbers().draining == 1
    lifted = fleet.take(change("changed", with_(override=None)))
    assert said(lifted) == [("override", "501 (game): an operator lifted the override")]


def test_how_a_server_ended() -> None:
    for cause, event in (("terminated", "left"), ("no-response", "ended"), ("removed", "removed")):
        fleet = table(ONE)
        assert said(fleet.take(change("removed", status=cause)))[0][0] == event
        assert fleet.numbers().total == 0


def test_a_second_snapshot_is_told_by_what_differs() -> None:
    fleet = table(ONE, with_(instance_id="i2", server_id="502"))
    news = fleet.take(
        Change("snapshot", 9, str(AT), instances=[ONE, with_(instance_id="i3", server_id="503")])
    )
    assert sorted(event for event, _ in said(news)) == ["ended", "registered"]


def test_nothing_is_known_before_the_first_snapshot() -> None:
    assert FleetTable().numbers().total is None
