"""What an entity server shows on its metrics page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import HistogramMetricFamily, Metric

from roost.servers.entity.beating import Beating
from roost.servers.entity.carrying import Carrying
from roost.servers.entity.host import Host
from roost.servers.entity.lease import Lease
from roost.web.metrics import add_histogram, counter, gauge, labelled


class EntityMetrics:
    def __init__(
        self, host: Host, beating: Beating, leases: Sequence[Lease], carrying: Carrying | None = None
    ) -> None:
        self._host = host
        self._beating = beating
        self._leases = leases
        self._carrying = carrying

    def collect(self) -> Iterator[Metric]:
        host = self._host
        online = sum(1 for session in host.sessions.values() if session.client)
        yield gauge("roost_entity_users", "Users held, connected or cached", len(host.sessions))
        yield gauge("roost_entity_online", "Users held who are logged in", online)
        yield gauge("roost_entity_workers", "Tasks that run turns", host.workers.count)
        yield gauge(
            "roost_entity_unsaved_seconds",
            "Age of the oldest change that is not written",
            host.flusher.unsaved,
        )
        held = sum(lease.is_valid for lease in self._leases)
        yield gauge("roost_entity_leases_held", "Partitions in which the lease holds, by our own clock", held)
        lapses = sum(max(lease.generation - 1, 0) for lease in self._leases)
        yield counter("roost_entity_lease_lapses", "Times that a lease was over and began again", lapses)
        yield counter("roost_entity_beats", "Beats that were taken", self._beating.beats)
        yield counter("roost_entity_beat_failures", "Beats that were not", self._beating.failures)
        if (carrying := self._carrying) is not None:
            is_on = "Whether a lease in the database stands, because the store does not answer"
            yield gauge("roost_entity_database_lease", is_on, carrying.is_on)
            yield counter("roost_entity_database_lease_kept", "Times that it was kept", carrying.kept)
        yield labelled(
            "roost_entity_messages", "Messages by what became of them", "what", host.executor.counts
        )
        yield labelled("roost_entity_writes", "States by what the database said", "what", host.flusher.counts)
        yield labelled(
            "roost_entity_journal", "Messages by what the journal said", "what", host.journal.counts
        )
        yield labelled("roost_move", "Users by what became of their move", "outcome", host.mover.counts)
        family = HistogramMetricFamily(
            "roost_move_phase_seconds", "Seconds of a move by phase; total: blocked", labels=["phase"]
        )
        for phase, histogram in host.mover.phases.items():
            add_histogram(family, [phase], histogram)
        yield family
        users = dict(host.counts) | dict(host.residence.counts)
        yield labelled(
            "roost_entity_users_turned", "Users lost, renewed, released; hooks that failed", "what", users
        )
