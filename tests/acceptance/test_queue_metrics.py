"""The metrics of a waiting room: the documented names, exactly, and what becomes of them without a store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roost.testing import RunningServer
from roost.waitingroom.board import FRESH_S
from tests.acceptance.queue import Gate, open_gate, settings_for

KINDS = {
    "queue_waiting_size": "gauge",
    "queue_away_size": "gauge",
    "queue_free": "gauge",
    "queue_inside": "gauge",
    "queue_capacity": "gauge",
    "queue_held": "gauge",
    "queue_tickets": "gauge",
    "queue_servers_in_doubt": "gauge",
    "queue_entry_throughput": "counter",
    "ticket_issued_count": "counter",
    "ticket_expired_count": "counter",
    "queue_no_shows_total": "counter",
    "queue_gone_total": "counter",
    "queue_consumed_total": "counter",
    "overadmit_total": "counter",
    "ledger_drift_total": "counter",
    "queue_lost_writes_total": "counter",
    "queue_leader_changes_total": "counter",
    "queue_ticks_total": "counter",
    "eta_error_seconds": "summary",
    "ticket_left_seconds": "summary",
    "redis_command_latency": "histogram",
}


@pytest.fixture
async def gate(valkey: RunningServer, tmp_path: Path) -> AsyncIterator[Gate]:
    async with open_gate(valkey, settings_for(tmp_path)) as gate:
        yield gate


async def page(gate: Gate) -> str:
    return (await gate.ask("GET", "/metrics")).body.decode()


def samples(text: str) -> dict[str, float]:
    """`name{labels}` as it stands in the text → value."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


async def test_every_name_is_there_with_its_kind_and_parses(gate: Gate) -> None:
    text = await page(gate)
    for name, kind in KINDS.items():
        assert f"# TYPE {name} {kind}\n" in text, name
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, kind in KINDS.items():
        family = families[name.removesuffix("_total")]
        assert family.type == kind
        assert family.samples, name
    assert not [family for family in families.values() if family.type in ("unknown", "untyped")]


async def test_the_numbers_are_those_of_the_world(gate: Gate) -> None:
    await gate.report(capacity=3)
    await gate.consume((await gate.enter("ann"))["ticketId"])
    await gate.enter("bob")
    await gate.govern(mode="queue-all")
    await gate.enter("cid")
    await gate.enter("cid")
    gate.world.room.board.forget()
    found = samples(await page(gate))
    expected = {
        "queue_waiting_size": 1,
        "queue_inside": 1,
        "queue_tickets": 1,
        "queue_free": 1,
        "queue_capacity": 3,
        "ticket_issued_count": 2,
        "ticket_expired_count": 0,
        "queue_consumed_total": 1,
        "overadmit_total": 0,
        "ticket_left_seconds_count": 1,
        "eta_error_seconds_count": 0,
    }
    assert {name: found[f'{name}{{world="main"}}'] for name in expected} == expected
    entries = 'queue_entry_throughput{outcome="%s",world="main"}'
    assert (found[entries % "PROMOTED"], found[entries % "WAITING"]) == (2, 2)
    assert 0 < found['ticket_left_seconds_sum{world="main"}'] <= 60
    assert "ticket_issued_count_total" not in str(found)

    await gate.govern(mode="hold")
    await gate.tick(75)
    found = samples(await page(gate))
    assert found['ticket_expired_count{world="main"}'] == 1
    assert found['queue_no_shows_total{world="main"}'] == 1
    assert found['queue_away_size{world="main"}'] == 2


async def test_without_a_store_the_page_is_there_and_old_numbers_are_not(
    gate: Gate, valkey: RunningServer
) -> None:
    await gate.enter("ann")
    gate.world.room.board.forget()
    assert 'queue_waiting_size{world="main"} 1.0' in await page(gate)
    valkey.kill()
    gate.world.room.board.forget()
    text = await page(gate)
    assert 'queue_entry_throughput{outcome="WAITING",world="main"} 1.0' in text
    assert "queue_waiting_size" not in text


async def test_a_store_that_hangs_holds_the_page_up_for_a_second_at_most(
    gate: Gate, valkey: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.waitingroom.metrics.BOARD_WAIT_S", 0.1)
    gate.world.room.board.forget()
    await page(gate)
    valkey.pause()
    try:
        later = time.monotonic() + 2 * FRESH_S  # the page must ask again, and gets no answer
        monkeypatch.setattr("roost.waitingroom.board.time", SimpleNamespace(monotonic=lambda: later))
        text = await page(gate)
        assert 'queue_waiting_size{world="main"} 0.0' in text, "the last known numbers, for a while"
    finally:
        valkey.resume()


async def test_every_call_for_entry_is_counted_with_its_outcome(gate: Gate) -> None:
    await gate.enter("ann")
    await gate.govern(mode="closing")
    assert (await gate.try_to_enter("bob")).status == 503
    assert (await gate.try_to_enter("bob", world="nowhere")).status == 404
    assert (await gate.try_to_enter("a{b}")).status == 400
    async with gate.session.post("/api/queue/entry", data=b"{") as answer:
        assert answer.status == 400
    assert (await gate.ask("POST", "/api/queue/entry", {"userId": "x"}, token="wrong")).status == 401
    found = samples(await page(gate))
    counted = {
        name: count for name, count in found.items() if name.startswith("queue_entry_throughput") and count
    }
    assert counted == {
        'queue_entry_throughput{outcome="WAITING",world="main"}': 1,
        'queue_entry_throughput{outcome="WORLD_CLOSED",world="main"}': 1,
        'queue_entry_throughput{outcome="UNKNOWN_WORLD",world=""}': 1,
        'queue_entry_throughput{outcome="INVALID_ID",world="main"}': 1,
        'queue_entry_throughput{outcome="MALFORMED_JSON",world=""}': 1,
        'queue_entry_throughput{outcome="UNAUTHENTICATED",world=""}': 1,
    }
