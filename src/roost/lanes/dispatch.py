"""Where a command belongs: shard and lane are decided here, once, and carried with it.

A new order goes by its symbol. A cancel or amend goes by its symbol if it names one, else to the shard that
the bits of the order id name, if it can be an id of ours: only that shard knows whether it is. Whatever it
does not know is looked for in the index, then in the database. What nobody knows is executed nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from roost.db.orders import OrderRow
from roost.lanes.ids import extract_shard, is_plausible
from roost.lanes.placement import Moving, Place, Table, Unreadable


class Index(Protocol):
    async def find(self, order_id: int, /) -> tuple[int, int, str] | None:
        """(shard, lane, symbol)."""


class Orders(Protocol):
    async def order(self, order_id: int, /) -> OrderRow | None: ...


class Dispatch:
    """Knows the newest table of places that this server has heard of."""

    def __init__(self, table: Table, index: Index, orders: Orders | None, launched_ms: int) -> None:
        self.on_change: list[Callable[[], None]] = []
        """Called after `table` was replaced."""
        self._table = table
        self._index = index
        self._orders = orders
        self._launched_ms = launched_ms
        self.counts: Counter[str] = Counter()
        """How commands without a symbol found their way: bits, index, database, or unknown: not at all."""

    @property
    def table(self) -> Table:
        return self._table

    def use(self, table: Table) -> None:
        """The placement has changed."""
        self._table = table
        for told in self.on_change:
            told()

    def place(self, symbol: str) -> Place | Moving | Unreadable:
        return self.table.of(symbol)

    def shard_of(self, order_id: int, now_ms: int) -> int | None:
        """The shard that an id names; None: it is no id of ours."""
        if not is_plausible(order_id, now_ms, self._launched_ms):
            return None
        self.counts["bits"] += 1
        return extract_shard(order_id)

    async def symbol_of(self, order_id: int) -> str:
        """The symbol of an order that the shard of its bits does not know; empty: nobody does."""
        found = await self._index.find(order_id)
        if found is not None:
            self.counts["index"] += 1
            return found[2]
        row = await self._orders.order(order_id) if self._orders is not None else None
        self.counts["database" if row is not None else "unknown"] += 1
        return row.symbol if row is not None else ""
