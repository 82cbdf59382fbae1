"""What the metrics page shows of the store: scripts by answer, links by node."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from roost.store.store import Store


class StoreMetrics:
    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        yield from self._scripts()
        yield from self._links()
        yield self._staleness()

    def _staleness(self) -> Metric:
        stale = GaugeMetricFamily(
            "roost_follower_staleness_seconds",
            "Since a loop that follows changes last knew that it had all of them",
            labels=["loop"],
        )
        for loop in self._store.loops.all():
            if (at := loop.up_to_date_at) is not None:
                stale.add_metric([loop.name], time.monotonic() - at)
        return stale

    def _scripts(self) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "redis_command_latency",
            "Seconds from a script's call to its reply",
            labels=["capability", "command"],
        )
        words = CounterMetricFamily(
            "roost_script_replies", "Script calls by answer", labels=["capability", "script", "word"]
        )
        for key, script in self._store.library.scripts.items():
            stats = script.stats
            if (
                not stats.latency.count
            ):  # this process has no use for it: sixteen lines for each would drown the rest
                continue
            latency.add_metric(list(key), stats.latency.cumulative(), stats.latency.total)
            for word, count in stats.words.items():
                words.add_metric([*key, word], count)
        yield from (latency, words)

    def _links(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("roost_store_up", "Whether the node is connected", labels=["node"])
        inflight = GaugeMetricFamily("roost_store_inflight", "Calls without a reply yet", labels=["node"])
        waiting = GaugeMetricFamily("roost_store_waiting", "Calls that wait to be sent", labels=["node"])
        events = CounterMetricFamily(
            "roost_store_link_events", "What happened to the link", labels=["node", "event"]
        )
        for link in [line for node in self._store.links() for line in node.lines()]:
            up.add_metric([link.name], float(link.connected))
            inflight.add_metric([link.name], link.inflight)
            waiting.add_metric([link.name], link.waiting)
            counts = {
                "connect": link.stats.connects,
                "loss": link.stats.losses,
                "timeout": link.stats.timeouts,
                "overload": link.stats.overloads,
                "unknown_outcome": link.stats.unknown_outcomes,
                "large_reply": 0 if link.is_bulk else link.stats.large_replies,
            }
            for event, count in counts.items():
                events.add_metric([link.name, event], count)
        yield from (up, inflight, waiting, events)
