"""The last rows of orders that no shard keeps any more: they wait for the database, or it has them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from roost.core.errors import RoostError, Unavailable
from roost.db.orders import OPEN, OrderRow
from roost.lanes.dispatch import Orders
from roost.lanes.outbox import Outbox

log = logging.getLogger("roost.orders")

MAX_READS = 64
"""Under way at once: any trader may ask for any id, and the database has orders to write."""

Told = Callable[[OrderRow | RoostError | None], None]


class OrderRows:
    def __init__(self, outbox: Outbox, database: Orders) -> None:
        self._outbox = outbox
        self._database = database
        self._tasks: set[asyncio.Task[None]] = set()

    def look_up(self, order_id: int, told: Told) -> None:
        """`told` hears of the row, of None (nobody has one), or why that cannot be said now."""
        waiting = self._outbox.newest(order_id)
        if waiting is not None and waiting.state != OPEN:
            told(waiting)
        elif len(self._tasks) >= MAX_READS:
            told(Unavailable("too many orders are looked up"))
        else:
            task = asyncio.get_running_loop().create_task(self._read(order_id, told))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _read(self, order_id: int, told: Told) -> None:
        found: OrderRow | RoostError | None
        try:
            found = await self._database.order(order_id)
        except RoostError as error:
            found = error
        except Exception:
            log.exception("an order could not be looked up")
            found = RoostError("the database failed at it")
        told(found)
