"""Where an order is, by its id alone: for ids whose bits do not say it, foreign ones and moved orders'.

An order is kept in the scope that bits 18 to 21 of its id name, whatever made the id: whoever has the id
knows where to ask. Written after the reply and in batches; the log and the database know the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from roost.core.loops import Loops
from roost.db.orders import OPEN, OrderRow
from roost.lanes.ids import LANE_SHIFT, LANES
from roost.lanes.scripts import ShardScripts
from roost.store.keys.lanes import GROUP, shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

SCOPES = 16
BATCH_LIMIT = 500
MAX_WAITING = 200_000
"""Orders that wait for a store that is away, some 40 MB; those above are dropped, and counted."""

FLUSH_S = 0.2
"""An order that is made and closed within it is not written."""
MAX_ID = 2**63 - 1

_FAMILY = GROUP.family("index")
TTL_S = _FAMILY.ttl_s if _FAMILY is not None and _FAMILY.ttl_s else 0

Where = tuple[int, int, str]
"""Shard, lane and symbol."""


def scope_of(order_id: int) -> int:
    """The shard in whose scope the index has this id: where an id of ours has its shard."""
    return (order_id >> 18) & (SCOPES - 1)


class OrderIndex:
    """`put` never waits and never fails; what waits for the store is answered from here."""

    def __init__(
        self, store: Store, *, ttl_s: int = TTL_S, max_waiting: int = MAX_WAITING, loops: Loops | None = None
    ) -> None:
        self.dropped = 0
        """Orders that were not taken because too many waited."""
        self.written = 0
        self._store, self._ttl_s, self._max_waiting = store, ttl_s, max_waiting
        self._loops = loops or store.loops
        scopes = [shard_scope(number) for number in range(SCOPES)]
        self._put = [ShardScripts(store.library, store.keys, scope).index_put for scope in scopes]
        self._prefixes = [shard_keys(store.keys, scope)["index"] for scope in scopes]
        self._waiting: list[dict[int, Where]] = [{} for _ in scopes]
        self._count = 0
        self._flushing = asyncio.Lock()

    @property
    def waiting(self) -> int:
        return self._count

    def put(self, order_id: int, shard: int, lane: int, symbol: str) -> None:
        waiting = self._waiting[(order_id >> 18) & (SCOPES - 1)]
        if order_id not in waiting:
            if self._count >= self._max_waiting:
                self.dropped += 1
                return
            self._count += 1
        waiting[order_id] = (shard, lane, symbol)

    def follow(self, shard: int, rows: Iterable[OrderRow]) -> None:
        """What a command left: an order that it made is put; one that closed before it was written is not.

        What is closed is found by the bits of its id, if anybody asks.
        """
        for row in rows:
            order_id = row[0]
            if row[10] != OPEN:
                if self._waiting[(order_id >> 18) & (SCOPES - 1)].pop(order_id, None) is not None:
                    self._count -= 1
            elif row[11] == row[12]:  # by the command that made it
                self.put(order_id, shard, (order_id >> LANE_SHIFT) & (LANES - 1), row[5])

    async def find(self, order_id: int) -> Where | None:
        """None for an id that is not here: it is too old, or nobody's."""
        if not 0 < order_id <= MAX_ID:
            return None
        scope = scope_of(order_id)
        if (where := self._waiting[scope].get(order_id)) is not None:
            return where
        key = self._prefixes[scope] + str(order_id).encode()
        found = await self._store.call("GET", key, key=key, idempotent=True)
        return None if found is None else _parse(found)

    async def run(self) -> None:
        """For ever; what the store does not take stays for the next turn."""
        await self._loops.keep_running("order index", self.flush, pause_s=FLUSH_S)

    async def flush(self) -> None:
        """Send all that waits now; raises what the store says, and keeps what was not sent."""
        async with self._flushing:
            for scope, waiting in enumerate(self._waiting):
                orders = list(waiting.items())
                for at in range(0, len(orders), BATCH_LIMIT):
                    await self._send(scope, orders[at : at + BATCH_LIMIT])

    async def _send(self, scope: int, orders: Sequence[tuple[int, Where]]) -> None:
        flat: list[str] = []
        for order_id, (shard, lane, symbol) in orders:
            flat += (str(order_id), f"{shard}:{lane}:{symbol}")
        await self._put[scope](ttl_s=self._ttl_s, orders=flat)
        self.written += len(orders)
        waiting = self._waiting[scope]
        for order_id, where in orders:
            if waiting.get(order_id) is where:  # else it was put again or closed meanwhile
                del waiting[order_id]
                self._count -= 1


def _parse(value: bytes) -> Where:
    shard, lane, symbol = value.decode().split(":", 2)
    return int(shard), int(lane), symbol
