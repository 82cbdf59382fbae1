"""What a gate shows on its metrics page."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from roost.servers.gate.gate import Gate
from roost.servers.gate.witness import Witness
from roost.web.metrics import counter, gauge, labelled

FAULTS = ("lost", "doubled", "reordered", "disconnected", "uncounted")


def collect(gate: Gate) -> Iterator[Metric]:
    services = gate.services
    finder, lanes, room = services.finder, services.terms.counts, services.terms.room
    yield gauge("roost_gate_clients", "Clients logged in", len(gate.sessions))
    yield gauge("roost_gate_messages_waiting", "Messages without an answer yet", room.messages)
    yield gauge("roost_gate_bytes_waiting", "The same in bytes", room.bytes)
    yield gauge("roost_gate_routes", "Users whose home is remembered", len(finder.routes))
    yield gauge("roost_gate_servers", "Entity servers that discovery knows", len(services.peers))
    yield labelled("roost_gate_messages", "Messages by outcome", "outcome", dict(gate.outcomes))
    yield labelled("roost_gate_bounces", "Bounces by reason", "reason", dict(lanes.bounces))
    yield counter("roost_gate_resends", "Messages that were sent again", lanes.resent)
    yield counter("roost_gate_stale_replies", "Replies of an older epoch, dropped", lanes.stale)
    yield counter("roost_gate_waits", "Lookups that had to wait for a home", finder.waits)
    yield counter("roost_gate_map_reads", "Reads of the map", finder.reads)
    yield counter("roost_gate_resolves", "Users whose home had to be resolved", finder.resolves)
    yield labelled("roost_gate_pushes", "Pushes by what became of them", "outcome", dict(gate.pushes))
    yield labelled("roost_gate_logins", "Logins by kind", "kind", dict(gate.logins))
    yield labelled("roost_gate_refused_logins", "Logins refused", "reason", dict(gate.refused_logins))
    if gate.witness is not None:
        yield from _counted(gate.witness)
    yield labelled("roost_gate_ended", "Sessions that ended", "reason", dict(gate.ended_by))


def _counted(witness: Witness) -> Iterator[Metric]:
    """Of the drains that this gate counts for just now."""
    reports = [account.book.report("", 0.0, is_final=False) for account in witness.accounts.values()]
    longest_ms = max((report.longest_pause_ms for report in reports), default=0)
    waiting = sum(report.open for report in reports)
    faults = GaugeMetricFamily("roost_gate_drain_faults", "What was counted against them", labels=["fault"])
    for name in FAULTS:
        faults.add_metric([name], sum(getattr(report, name) for report in reports))
    yield gauge("roost_gate_drains", "Drains that this gate counts for", len(reports))
    yield gauge("roost_gate_drain_open", "Messages counted for them that have no outcome yet", waiting)
    yield faults
    yield gauge("roost_gate_drain_longest_pause_seconds", "Longest wait for an outcome", longest_ms / 1000)
    yield counter("roost_gate_drain_reports", "Reports told to drains", witness.told)
