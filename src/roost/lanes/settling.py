"""Waiting for the disk or a replica of the store, for all shards of a node at once.

The store is asked `WAITAOF` or `WAIT` over the connection that wrote; at most one such call is under way for
each connection, and whoever comes meanwhile shares the next one. A connection that was replaced in between
proves nothing: then the append has to be repeated.
"""

from __future__ import annotations

import asyncio
from typing import Any

from roost.core.errors import StoreUnavailable
from roost.lanes.commands import Durability
from roost.store.keys import Key
from roost.store.store import Store

WAIT_MS = 2000
"""How long one call waits; then whoever waits repeats the append, or gives up the shard."""

_COMMANDS: dict[Durability, tuple[str | int, ...]] = {
    Durability.FSYNC: ("WAITAOF", 1, 0, WAIT_MS),
    Durability.REPLICA: ("WAIT", 1, WAIT_MS),
}


class Settling:
    """For a store that nobody else uses: a connection that waits for the disk serves nobody meanwhile."""

    def __init__(self, store: Store, durability: Durability) -> None:
        self._store = store
        self._command = _COMMANDS[durability]
        self._loop = asyncio.get_running_loop()
        self._under_way: set[int] = set()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}

    def settle(self, key: Key) -> asyncio.Future[None]:
        """Ends when what was written for this key before is safe; fails where that cannot be known."""
        future: asyncio.Future[None] = self._loop.create_future()
        connection = self._store.topology.connection_for(key)
        if connection is None:
            future.set_exception(StoreUnavailable("the connection is gone"))
            return future
        self._waiting.setdefault(id(connection), []).append(future)
        if id(connection) not in self._under_way:
            self._ask(connection, key)
        return future

    def _ask(self, connection: Any, key: Key) -> None:
        self._under_way.add(id(connection))
        waiting = self._waiting.pop(id(connection))
        asked = self._store.call(*self._command, key=key, timeout_s=2 * WAIT_MS / 1000)
        asked.add_done_callback(lambda done: self._answered(done, connection, key, waiting))

    def _answered(
        self, done: asyncio.Future[Any], connection: Any, key: Key, waiting: list[asyncio.Future[None]]
    ) -> None:
        self._under_way.discard(id(connection))
        fault = self._fault(done, connection, key)
        for future in waiting:
            if not future.done():
                future.set_result(None) if fault is None else future.set_exception(fault)
        if self._waiting.get(id(connection)):
            self._ask(connection, key)

    def _fault(self, done: asyncio.Future[Any], connection: Any, key: Key) -> Exception | None:
        if done.cancelled():
            return StoreUnavailable("the wait was cancelled")
        if (error := done.exception()) is not None:
            return error if isinstance(error, Exception) else StoreUnavailable(str(error))
        if self._store.topology.connection_for(key) is not connection:
            return StoreUnavailable("the connection was replaced")
        answer = done.result()
        reached = answer[0] if isinstance(answer, list) else answer
        return None if reached >= 1 else StoreUnavailable("the disk or the replica did not answer in time")
