"""What one watcher hears of a feed entry."""

from __future__ import annotations

from typing import Any

import pytest

from roost.api.discovery import Change, Override
from roost.core.events import Entry
from roost.discovery import model
from roost.discovery.watched import Unknowable, Watched
from tests.unit.discovery.test_model import beat, record, snapshot


def entry(
    event: str,
    *,
    kept: bytes = b"",
    last: bytes = b"",
    override: bytes = b"",
    status: str = "ready",
    panic: str = "0",
) -> Entry:
    fields = {
        "event": event,
        "id": "a",
        "service": "game:eu",
        "life": "7",
        "serverId": "501",
        "status": status,
        "panic": panic,
    }
    fields |= {"record": kept.decode(), "beat": last.decode(), "override": override.decode()}
    return Entry(12, 3400, 3300, fields)


def flip(panic: bool, service: str = "game:eu") -> Entry:
    return Entry(12, 3400, 3300, {"event": "panic", "service": service, "panic": "1" if panic else "0"})


def one_change(of: Entry, *wanted: Any) -> Change:
    (change,) = Watched(*(wanted or ("*", "*", ()))).changes(of)
    return change


def test_an_addition_carries_the_instance() -> None:
    change = one_change(entry("added", kept=record(server_id="501"), last=beat(load=4)))
    assert (change.event, change.revision, change.revision_at) == ("added", 12, "3400")
    assert (change.instance_id, change.life, change.server_id, change.status) == ("a", "7", "501", "ready")
    assert change.instance is not None
    assert (change.instance.load, change.instance.accepting) == (4, True)


def test_a_removal_carries_no_instance() -> None:
    change = one_change(entry("removed", status="no-response"))
    assert (change.event, change.status, change.instance) == ("removed", "no-response", None)


def test_a_change_carries_the_order() -> None:
    order = model.encode(Override(drain=True))
    change = one_change(entry("changed", kept=record(), last=beat(), override=order, status="drain"))
    assert change.instance is not None
    assert change.instance.override == Override(drain=True)
    assert change.instance.accepting is False


def test_a_change_carries_the_panic_of_its_service() -> None:
    for panic in ("0", "1"):
        change = one_change(entry("changed", kept=record(), last=beat(silent=True), panic=panic))
        assert change.instance is not None
        assert change.instance.accepting is (panic == "1")


def test_an_entry_of_an_older_version_says_nothing_of_a_panic() -> None:
    told = entry("changed", kept=record(), last=beat(silent=True))
    older = Entry(told.rev, told.at, told.prev_at, {k: v for k, v in told.fields.items() if k != "panic"})
    assert one_change(older).instance is not None


async def test_a_panic_is_told_as_changes_of_the_suspects_that_it_concerns() -> None:
    people = {
        "a": (record(), beat(silent=True)),
        "b": (record(server_id="501"), beat(unhealthy=True)),
        "c": (record(), beat(silent=True, status="draining")),
        "d": (record(), beat()),
        "e": (record(group="us"), beat(silent=True)),
    }
    watched = Watched("*", "*", ())
    await watched.snapshot(snapshot(people))

    begins, ends = list(watched.changes(flip(True))), list(watched.changes(flip(False)))

    assert [(c.event, c.instance_id, c.server_id, c.status) for c in begins] == [
        ("changed", "a", "a", "suspect"),
        ("changed", "b", "501", "suspect"),
    ]
    assert [c.instance.accepting for c in begins if c.instance] == [True, True]
    assert [c.instance.accepting for c in ends if c.instance] == [False, False]


async def test_only_the_last_change_of_a_panic_has_its_revision() -> None:
    watched = Watched("*", "*", ())
    await watched.snapshot(snapshot({id_: (record(), beat(silent=True)) for id_ in "abc"}))
    marks = [(c.revision, c.revision_at) for c in watched.changes(flip(True))]
    assert marks == [(11, "3300"), (11, "3300"), (12, "3400")]


async def test_who_recovered_or_left_is_not_told_of_again() -> None:
    for after in (entry("changed", kept=record(), last=beat()), entry("removed", status="terminated")):
        watched = Watched("*", "*", ())
        await watched.snapshot(snapshot({"a": (record(), beat(silent=True))}))
        list(watched.changes(after))
        assert list(watched.changes(flip(True))) == []


def test_without_a_snapshot_it_cannot_be_said_whom_a_panic_concerns() -> None:
    watched = Watched("game", "eu", ())
    assert list(watched.changes(flip(True, "game:us"))) == []
    with pytest.raises(Unknowable):
        list(watched.changes(flip(True)))
