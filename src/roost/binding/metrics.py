"""The numbers of the bindings for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from roost.binding.model import PartitionBoard, ServerRow
from roost.core.errors import StoreError

if TYPE_CHECKING:
    from roost.binding.service import Bindings

BOARD_AGE_S = 15.0
"""Older numbers are not shown: better none than wrong ones."""
STATES = ("accepting", "full", "closed", "dead")


class BindingMetrics:
    """How the partitions are doing, the same in every process, and which of them this one leads."""

    exact_names = ()

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._boards: list[tuple[str, PartitionBoard]] = []
        self._read_at = float("-inf")

    async def refresh(self) -> None:
        """Read the boards that `collect` shows; where that fails they are shown as they were, for a while."""
        wanted = [(type_, one) for type_ in self._bindings.types for one in self._bindings.partitions]
        with suppress(StoreError):
            boards = await asyncio.gather(*(one.board(type_) for type_, one in wanted))
            self._boards = [(type_, board) for (type_, _), board in zip(wanted, boards, strict=True)]
            self._read_at = time.monotonic()

    def collect(self) -> Iterator[Metric]:
        yield from self._process()
        if time.monotonic() - self._read_at < BOARD_AGE_S:
            yield from self._store_totals()

    def _process(self) -> Iterator[Metric]:
        leading = GaugeMetricFamily(
            "roost_binding_leading", "Whether this process leads the partition", labels=["partition"]
        )
        for keeper in self._bindings.keepers:
            leading.add_metric([str(keeper.partition.number)], keeper.leading)
        yield leading

    def _store_totals(self) -> Iterator[Metric]:
        bindings, servers = Counter[str](), Counter[tuple[str, str]]()
        grants, refusals = Counter[tuple[str, str]](), Counter[str]()
        for type_, board in self._boards:
            bindings[type_] += board.bindings
            refusals[type_] += board.refusals(type_)
            grants.update({(type_, why): count for why, count in board.grants(type_).items()})
        for type_ in self._bindings.types:
            servers.update({(type_, state): 0 for state in STATES})
        for type_, board in self._boards[:: len(self._bindings.partitions)]:  # servers are in all of them
            servers.update((type_, state_of(row)) for row in board.servers)
        yield _gauge("roost_bindings", "Users that a server holds", ("type",), bindings)
        yield _gauge(
            "roost_binding_servers", "Servers that hold users, by what they take", ("type", "state"), servers
        )
        yield _counter("roost_binding_grants", "Changes of hands, by cause", ("type", "why"), grants)
        yield _counter("roost_binding_refusals", "Users whom nobody took", ("type",), refusals)


def state_of(row: ServerRow) -> str:
    if not row.alive:
        return "dead"
    if not row.open:
        return "closed"
    return "accepting" if row.accepting else "full"


def _gauge(
    name: str, help_: str, labels: tuple[str, ...], values: Counter[str] | Counter[tuple[str, str]]
) -> Metric:
    return _filled(GaugeMetricFamily(name, help_, labels=labels), values)


def _counter(
    name: str, help_: str, labels: tuple[str, ...], values: Counter[str] | Counter[tuple[str, str]]
) -> Metric:
    return _filled(CounterMetricFamily(name, help_, labels=labels), values)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, values: Counter[str] | Counter[tuple[str, str]]
) -> Metric:
    for labels, value in values.items():
        family.add_metric([labels] if isinstance(labels, str) else labels, value)
    return family
