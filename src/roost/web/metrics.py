"""The metrics page of a process: counters are plain numbers where they are counted, rendered on request.

A part with something to show is a `Source`; the page renders all of them, whatever one of them fails with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from roost.core.histogram import Histogram
from roost.core.loops import Loops
from roost.version import __version__
from roost.web.route import Route, RouteStats

log = logging.getLogger("roost.web")

CONTENT_TYPE = "text/plain; version=0.0.4"
REFRESH_S = 1.0
"""How long the page waits for numbers that must be asked for."""


class Source(Protocol):
    """Something with metrics of its own."""

    def collect(self) -> Iterable[Metric]: ...


@runtime_checkable
class AskingSource(Protocol):
    """A source whose numbers are not at hand."""

    exact_names: Sequence[str]
    """Counters whose documented names do not end in _total."""

    def collect(self) -> Iterable[Metric]: ...

    async def refresh(self) -> None:
        """Ask for the numbers; may be cut short."""


class MetricsPage(Collector):
    """Everything that one process shows."""

    def __init__(self, profile: str, sources: Sequence[Source], role: str) -> None:
        """`role`: what this process is for, `gateway+manager` where it is for more than one thing."""
        self._profile = profile
        self._role = role
        self._sources = sources
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "roost_info", "Version, profile and role of this process", labels=["version", "profile", "role"]
        )
        info.add_metric([__version__, self._profile, self._role], 1)
        yield info
        for source in self._sources:
            try:
                yield from list(source.collect())
            except Exception:
                log.exception("a part of the metrics page failed", extra={"source": type(source).__name__})

    async def render(self) -> bytes:
        """The page as Prometheus reads it."""
        asking = [source for source in self._sources if isinstance(source, AskingSource)]
        await asyncio.gather(*map(_refreshed, asking))
        text = generate_latest(self._registry)
        for name in (name for source in asking for name in source.exact_names):
            # the library appends _total where it declares a counter
            text = text.replace(f" {name}_total ".encode(), f" {name} ".encode())
        return text


async def _refreshed(source: AskingSource) -> None:
    try:
        async with asyncio.timeout(REFRESH_S):
            await source.refresh()
    except Exception as error:  # the page shows what there is
        log.debug("metrics not refreshed", extra={"reason": str(error)})


class RouteMetrics:
    """HTTP requests by route."""

    def __init__(self, routes: Mapping[Route, RouteStats]) -> None:
        self._routes = routes

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "roost_http_requests", "HTTP requests", labels=["method", "route", "status"]
        )
        seconds = HistogramMetricFamily(
            "roost_http_request_seconds", "Time to answer", labels=["method", "route"]
        )
        for route, stats in self._routes.items():
            for status, count in stats.statuses.items():
                requests.add_metric([route.method, route.path, str(status)], count)
            add_histogram(seconds, [route.method, route.path], stats.latency)
        yield from (requests, seconds)


class LoopMetrics:
    """How the loops of this process are doing."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    def collect(self) -> Iterator[Metric]:
        failures = CounterMetricFamily(
            "roost_loop_failures", "Turns of a background loop that failed", labels=["loop"]
        )
        age = GaugeMetricFamily(
            "roost_loop_last_good_turn_seconds", "Since the last turn that ended well", labels=["loop"]
        )
        for loop in self._loops.all():
            failures.add_metric([loop.name], loop.failures)
            if loop.last_good_at is not None:
                age.add_metric([loop.name], time.monotonic() - loop.last_good_at)
        lag = HistogramMetricFamily(
            "roost_event_loop_lag_seconds", "How late pauses of loops ended: the process was busy"
        )
        add_histogram(lag, [], self._loops.lag)
        yield from (failures, age, lag)


def add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.total)


def gauge(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family


def counter(name: str, text: str, value: float) -> Metric:
    family = CounterMetricFamily(name, text)
    family.add_metric([], value)
    return family


def labelled(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
