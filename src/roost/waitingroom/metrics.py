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
            yield from _world_gauges(boards)
            yield from _world_counters(boards)


async def _read(world: World) -> None:
    with suppress(StoreError, TimeoutError):
        async with asyncio.timeout(BOARD_WAIT_S):
            await world.room.board.get()


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
        counter, sample = Metric(name, help_, "counter"), name if name in EXACT_NAMES else f"{name}_total"
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
