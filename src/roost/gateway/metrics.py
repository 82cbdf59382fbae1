"""The metrics page. Counters are plain numbers where they are counted, rendered when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from roost.app import Platform
from roost.core.histogram import Histogram
from roost.gateway.route import Route, RouteStats
from roost.version import __version__


class GatewayCollector(Collector):
    """What this process did: HTTP requests, store calls, links."""

    def __init__(self, platform: Platform, routes: Mapping[Route, RouteStats]) -> None:
        self._platform = platform
        self._routes = routes

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "roost_info", "Version and profile of this process", labels=["version", "profile"]
        )
        info.add_metric([__version__, self._platform.settings.profile], 1)
        yield info
        yield from self._http()
        yield from self._scripts()
        yield from self._links()
        yield from self._discovery()
        yield from self._alerts()

    def _http(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "roost_http_requests", "HTTP requests", labels=["method", "route", "status"]
        )
        seconds = HistogramMetricFamily(
            "roost_http_request_seconds", "Time to answer", labels=["method", "route"]
        )
        for route, stats in self._routes.items():
            for status, count in stats.statuses.items():
                requests.add_metric([route.method, route.path, str(status)], count)
            _add(seconds, [route.method, route.path], stats.latency)
        yield requests
        yield seconds

    def _scripts(self) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "redis_command_latency", "Seconds from a script's call to its reply", labels=["command"]
        )
        words = CounterMetricFamily(
            "roost_script_replies", "Script calls by answer", labels=["script", "word"]
        )
        for name, script in self._platform.store.library.scripts.items():
            _add(latency, [name], script.stats.latency)
            for word, count in script.stats.words.items():
                words.add_metric([name, word], count)
        yield latency
        yield words

    def _discovery(self) -> Iterator[Metric]:
        reaper = self._platform.reaper
        deaths = CounterMetricFamily("roost_discovery_deaths", "Instances whose death this process found")
        deaths.add_metric([], reaper.ended)
        held = CounterMetricFamily("roost_discovery_held", "Leases that ended beyond the budget of a sweep")
        held.add_metric([], reaper.held)
        checker = self._platform.checker
        turns = CounterMetricFamily("roost_health_turns", "Servers that fell ill or rose", labels=["to"])
        turns.add_metric(["unhealthy"], checker.fell)
        turns.add_metric(["healthy"], checker.rose)
        checkers = GaugeMetricFamily("roost_health_checkers", "Health checkers that count")
        checkers.add_metric([], checker.tally.live)
        yield from (deaths, held, turns, checkers)

    def _alerts(self) -> Iterator[Metric]:
        alerts = CounterMetricFamily(
            "roost_alerts", "Alerts by what became of them", labels=["webhook", "outcome"]
        )
        notifier = self._platform.notifier
        counts = {"sent": notifier.sent, "failed": notifier.failed, "dropped": notifier.dropped}
        for outcome, by_webhook in counts.items():
            for webhook, count in by_webhook.items():
                alerts.add_metric([webhook, outcome], count)
        yield alerts

    def _links(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("roost_store_up", "Whether the node is connected", labels=["node"])
        inflight = GaugeMetricFamily("roost_store_inflight", "Calls without a reply yet", labels=["node"])
        waiting = GaugeMetricFamily("roost_store_waiting", "Calls that wait to be sent", labels=["node"])
        events = CounterMetricFamily(
            "roost_store_link_events", "What happened to the link", labels=["node", "event"]
        )
        for link in [line for node in self._platform.store.links() for line in node.lines()]:
            up.add_metric([link.name], float(link.connected))
            inflight.add_metric([link.name], link.inflight)
            waiting.add_metric([link.name], link.waiting)
            counts = {
                "connect": link.stats.connects,
                "loss": link.stats.losses,
                "timeout": link.stats.timeouts,
                "overload": link.stats.overloads,
                "unknown_outcome": link.stats.unknown_outcomes,
                "large_reply": 0 if link.is_bulk else link.large_replies,
            }
            for event, count in counts.items():
                events.add_metric([link.name, event], count)
        yield from (up, inflight, waiting, events)


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.total)


def make_registry(platform: Platform, routes: Mapping[Route, RouteStats]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(GatewayCollector(platform, routes))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def page(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)
