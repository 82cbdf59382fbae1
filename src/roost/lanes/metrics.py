"""What the store says of all shards, the same on every gateway; each order server has a page of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from roost.core.errors import StoreError
from roost.lanes.placement import Table
from roost.lanes.scripts import Shard
from roost.lanes.views import is_owned

if TYPE_CHECKING:
    from roost.lanes.service import Lanes

AGE_S = 15.0


class LaneMetrics:
    exact_names = ()

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._owners: Mapping[int, Shard] = {}
        self._table = Table()
        self._read_at = float("-inf")

    async def refresh(self) -> None:
        with suppress(StoreError):
            self._owners, self._table = await self._lanes.owners(), await self._lanes.table()
            self._read_at = time.monotonic()

    def collect(self) -> Iterator[Metric]:
        if time.monotonic() - self._read_at < AGE_S:
            yield from self._store_totals()

    def _store_totals(self) -> Iterator[Metric]:
        orphans = sum(bool(shard.epoch) and not is_owned(shard) for shard in self._owners.values())
        yield _gauge("roost_lanes_shards_unowned", "Shards that had an owner once and have none now", orphans)
        yield _gauge("roost_lanes_placement_version", "Version of the placement", self._table.version)
        yield _gauge("roost_lanes_pinned", "Symbols that the placement names", len(self._table.pins))
        yield _gauge("roost_lanes_moving", "Symbols on their way to another shard", len(self._table.moving))
        bad = len(self._table.unreadable)
        yield _gauge("roost_lanes_unreadable", "Symbols that nobody serves: bad records of the table", bad)


def _gauge(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family
