"""The numbers of the waiting rooms for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from roost.core.errors import StoreError
from roost.waitingroom.model import WorldBoard

if TYPE_CHECKING:
    from roost.waitingroom.worlds import World, Worlds

BOARD_WAIT_S = 1.0
"""How long the page waits for the numbers of a world."""
BOARD_AGE_S = 15.0
"""Older numbers are not shown: better none than wrong ones."""
EXACT_NAMES = ("queue_entry_throughput", "ticket_issued_count", "ticket_expired_count")
"""Counters whose documented names do not end in _total: the page must not append it."""

Boards = list[tuple[str, WorldBoard]]
"""World → its numbers."""


class WorldMetrics:
    """What this process did for its worlds, and how the worlds are doing."""

    exact_names = EXACT_NAMES

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds

    async def refresh(self) -> None:
        """Read the boards that `collect` shows; where that fails they are shown as they were, for a while."""
        await asyncio.gather(*map(_read, self._worlds.all()))

    def collect(self) -> Iterator[Metric]:
        yield from self._process()
        yield from self._boards()

    def _process(self) -> Iterator[Metric]:
        """What this process did for its worlds."""
        worlds = self._worlds.all()
        entries = Metric("queue_entry_throughput", "Calls for entry, by what came of them", "counter")
        for (name, outcome), count in self._worlds.entries.items():
            entries.add_sample(entries.name, {"world": name, "outcome": outcome}, count)
        leads = CounterMetricFamily(
            "queue_leader_changes", "Times this process became a world's leader", labels=["world"]
        )
        ticks = CounterMetricFamily("queue_ticks", "Ticks that this process ran", labels=["world"])
        for world in worlds:
            leads.add_metric([world.name], world.admitter.tenures)
            ticks.add_metric([world.name], world.admitter.ticks)
        yield from (entries, leads, ticks)

    def _boards(self) -> Iterator[Metric]:
        """The numbers of the worlds, the same at every gateway; none while the store is away."""
        boards = [
            (world.name, board)
            for world in self._worlds.all()
            if (board := world.room.board.kept(BOARD_AGE_S)) is not None
        ]
        if boards:
            yield from _store_gauges(boards)
            yield from _store_counters(boards)


async def _read(world: World) -> None:
    with suppress(StoreError, TimeoutError):
        async with asyncio.timeout(BOARD_WAIT_S):
            await world.room.board.get()


def _store_gauges(boards: Boards) -> Iterator[Metric]:
    yield _gauge("queue_waiting_size", "People in the line who are there", boards, lambda b: b.waiting)
    yield _gauge(
        "queue_away_size", "People who have a place and are not there just now", boards, lambda b: b.away
    )
    yield _gauge("queue_tickets", "Tickets that are out", boards, lambda b: b.offers)
    yield _gauge("queue_held", "Places held for people who dropped out of the game", boards, lambda b: b.held)
    yield _gauge("queue_inside", "The most people that may be inside", boards, lambda b: b.inside)
    yield _gauge("queue_capacity", "People that may be inside", boards, lambda b: b.capacity)
    yield _gauge(
        "queue_free", "Places that nobody has; below 0 after a cut of the capacity", boards, lambda b: b.free
    )
    yield _gauge(
        "queue_servers_in_doubt",
        "Servers that must report again before anybody is admitted",
        boards,
        lambda b: sum(row.doubt for row in b.servers),
    )


def _gauge(name: str, text: str, boards: Boards, value: Callable[[WorldBoard], int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["world"])
    for world, board in boards:
        family.add_metric([world], value(board))
    return family


def _store_counters(boards: Boards) -> Iterator[Metric]:
    yield _counter("ticket_issued_count", "Tickets issued", boards, "issued")
    yield _counter("ticket_expired_count", "Tickets that ended unused", boards, "expired")
    yield _counter("queue_no_shows", "Tickets that ended unused through their holder", boards, "no_shows")
    yield _counter("queue_consumed", "Tickets with which somebody got inside", boards, "consumed")
    yield _counter("queue_gone", "Places lost by silence", boards, "gone")
    yield _counter(
        "overadmit", "Tickets for which there was no room; anything but 0 is a fault", boards, "overadmit"
    )
    yield _counter(
        "ledger_drift", "People whom servers counted and the ledger did not expect", boards, "drift"
    )
    yield _counter(
        "queue_lost_writes", "Times the store was found to have forgotten consumes", boards, "lost_writes"
    )
    yield _summary(
        "eta_error_seconds", "How far the first told time was off", boards, "eta_error_ms", "eta_count"
    )
    yield _summary(
        "ticket_left_seconds",
        "What was left of tickets when they were used",
        boards,
        "ticket_left_ms",
        "consumed",
    )


def _counter(name: str, text: str, boards: Boards, field: str) -> Metric:
    family, sample = Metric(name, text, "counter"), name if name in EXACT_NAMES else f"{name}_total"
    for world, board in boards:
        family.add_sample(sample, {"world": world}, board.number(field))
    return family


def _summary(name: str, text: str, boards: Boards, total_ms: str, count: str) -> Metric:
    family = SummaryMetricFamily(name, text, labels=["world"])
    for world, board in boards:
        family.add_metric([world], board.number(count), board.number(total_ms) / 1000)
    return family
