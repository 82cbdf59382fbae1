"""The metrics page. Counters are plain numbers where they are counted, rendered when somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from roost.app import Platform
from roost.core.errors import StoreError
from roost.core.histogram import Histogram
from roost.gateway.route import Route, RouteStats
from roost.version import __version__
from roost.waitingroom.board import WorldBoard
from roost.worlds import World

BOARD_WAIT_S = 1.0
"""How long the page waits for the numbers of a world."""
BOARD_AGE_S = 15.0
"""Older numbers are not shown: better none than wrong ones."""
EXACT = ("queue_entry_throughput", "ticket_issued_count", "ticket_expired_count")
"""Counters whose documented names do not end in _total."""


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
        yield from self._queue()
        yield from self._worlds()

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
            "redis_command_latency",
            "Seconds from a script's call to its reply",
            labels=["capability", "command"],
        )
        words = CounterMetricFamily(
            "roost_script_replies", "Script calls by answer", labels=["capability", "script", "word"]
        )
        for key, script in self._platform.store.library.scripts.items():
            _add(latency, list(key), script.stats.latency)
            for word, count in script.stats.words.items():
                words.add_metric([*key, word], count)
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

    def _queue(self) -> Iterator[Metric]:
        """What this process did for its worlds."""
        worlds = self._platform.worlds.all()
        entries = Metric("queue_entry_throughput", "Entries that this process answered", "counter")
        leads = CounterMetricFamily(
            "queue_leader_changes", "Times this process became a world's leader", labels=["world"]
        )
        ticks = CounterMetricFamily("queue_ticks", "Ticks that this process ran", labels=["world"])
        for world in worlds:
            entries.add_sample(entries.name, {"world": world.name}, world.entries)
            leads.add_metric([world.name], world.admitter.tenures)
            ticks.add_metric([world.name], world.admitter.ticks)
        yield from (entries, leads, ticks)

    def _worlds(self) -> Iterator[Metric]:
        """The numbers of the worlds, the same at every gateway; none while the store is away."""
        boards = [
            (world.name, board)
            for world in self._platform.worlds.all()
            if (board := world.room.board.kept(BOARD_AGE_S)) is not None
        ]
        if boards:
            yield from _world_gauges(boards)
            yield from _world_counters(boards)

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


def _world_gauges(boards: list[tuple[str, WorldBoard]]) -> Iterator[Metric]:
    numbers: tuple[tuple[str, str, Callable[[WorldBoard], int]], ...] = (
        ("queue_waiting_size", "People in the line who are there", lambda board: board.waiting),
        ("queue_away_size", "People who have a place and are not there just now", lambda board: board.away),
        ("queue_tickets", "Tickets that are out", lambda board: board.offers),
        ("queue_held", "Places held for people who dropped out of the game", lambda board: board.held),
        ("queue_inside", "The most people that may be inside", lambda board: board.inside),
        ("queue_capacity", "People that may be inside", lambda board: board.capacity),
        (
            "queue_free",
            "Places that nobody has; below 0 after a cut of the capacity",
            lambda board: board.free,
        ),
        (
            "queue_servers_in_doubt",
            "Servers that must report again before anybody is admitted",
            lambda board: sum(row.doubt for row in board.servers),
        ),
    )
    for name, help_, value in numbers:
        gauge = GaugeMetricFamily(name, help_, labels=["world"])
        for world, board in boards:
            gauge.add_metric([world], value(board))
        yield gauge


def _world_counters(boards: list[tuple[str, WorldBoard]]) -> Iterator[Metric]:
    for name, field, help_ in (
        ("ticket_issued_count", "issued", "Tickets issued"),
        ("ticket_expired_count", "expired", "Tickets that ended unused"),
        ("queue_no_shows", "no_shows", "Tickets that ended unused through their holder"),
        ("queue_consumed", "consumed", "Tickets with which somebody got inside"),
        ("queue_gone", "gone", "Places lost by silence"),
        ("overadmit", "overadmit", "Tickets for which there was no room; anything but 0 is a fault"),
        ("ledger_drift", "drift", "People whom servers counted and the ledger did not expect"),
        ("queue_lost_writes", "lost_writes", "Times the store was found to have forgotten consumes"),
    ):
        counter, sample = Metric(name, help_, "counter"), name if name in EXACT else f"{name}_total"
        for world, board in boards:
            counter.add_sample(sample, {"world": world}, board.number(field))
        yield counter
    for name, total, count, help_ in (
        ("eta_error_seconds", "eta_error_ms", "eta_count", "How far the first told time was off"),
        ("ticket_left_seconds", "ticket_left_ms", "consumed", "What was left of tickets when they were used"),
    ):
        summary = SummaryMetricFamily(name, help_, labels=["world"])
        for world, board in boards:
            summary.add_metric([world], board.number(count), board.number(total) / 1000)
        yield summary


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.total)


def make_registry(platform: Platform, routes: Mapping[Route, RouteStats]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(GatewayCollector(platform, routes))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


async def look(worlds: Iterable[World]) -> None:
    """Read the boards that the page shows; it is rendered whether that succeeds or not."""

    async def read(world: World) -> None:
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(BOARD_WAIT_S):
                await world.room.board.get()

    await asyncio.gather(*map(read, worlds))


def page(registry: CollectorRegistry) -> bytes:
    text = generate_latest(registry)
    for name in EXACT:  # the library appends _total where it declares a counter
        text = text.replace(f" {name}_total ".encode(), f" {name} ".encode())
    return text
