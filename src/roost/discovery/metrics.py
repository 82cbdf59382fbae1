"""What the metrics page shows of discovery and health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from roost.discovery.health import HealthChecker
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.discovery.unreadable import Kind


class DiscoveryMetrics:
    def __init__(self, discovery: Discovery, reaper: Reaper, checker: HealthChecker) -> None:
        self._unreadable = discovery.unreadable
        self._reaper = reaper
        self._checker = checker

    def collect(self) -> Iterator[Metric]:
        deaths = CounterMetricFamily("roost_discovery_deaths", "Instances whose death this process found")
        deaths.add_metric([], self._reaper.ended)
        held = CounterMetricFamily("roost_discovery_held", "Leases that ended beyond the budget of a sweep")
        held.add_metric([], self._reaper.held)
        checkers = GaugeMetricFamily("roost_health_checkers", "Health checkers that count")
        checkers.add_metric([], self._checker.live)
        checked = GaugeMetricFamily("roost_health_assigned", "Instances that this process judges")
        checked.add_metric([], len(self._checker.rounds.assigned))
        lag = GaugeMetricFamily("roost_health_probe_lag_seconds", "How late the next probe is")
        lag.add_metric([], self._checker.rounds.lag_s)
        unreadable = CounterMetricFamily(
            "roost_discovery_unreadable", "Reads that left out what nobody can read", labels=["what"]
        )
        for kind in get_args(Kind):
            unreadable.add_metric([kind], self._unreadable.counts[kind])
        yield from (deaths, held, self._store_turns(), checkers, checked, lag, unreadable)

    def _store_turns(self) -> Metric:
        """The verdict is the store's: each process counts each turn."""
        turns = CounterMetricFamily(
            "roost_health_turns", "Servers that became unhealthy or healthy", labels=["to"]
        )
        turns.add_metric(["unhealthy"], self._checker.turns.fell)
        turns.add_metric(["healthy"], self._checker.turns.rose)
        return turns
