"""What an entity server shows on its metrics page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from roost.servers.entity.beating import Beating
from roost.servers.entity.host import Host
from roost.servers.entity.lease import Lease
from roost.web.metrics import counter, gauge, labelled


class EntityMetrics:
    def __init__(self, host: Host, beating: Beating, leases: Sequence[Lease]) -> None:
        self._host = host
        self._beating = beating
        self._leases = leases

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
        yield labelled(
            "roost_entity_messages", "Messages by what became of them", "what", host.executor.counts
        )
        yield labelled("roost_entity_writes", "States by what the database said", "what", host.flusher.counts)
        yield labelled(
            "roost_entity_journal", "Messages by what the journal said", "what", host.journal.counts
        )
        users = dict(host.counts) | dict(host.residence.counts)
        yield labelled(
            "roost_entity_users_turned", "Users lost, renewed, released; hooks that failed", "what", users
        )
