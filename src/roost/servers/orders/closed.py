"""The orders that were closed last, so that a late cancel learns that its order is closed, not unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from roost.lanes.commands import encode
from roost.servers.orders.book import Order

MAX_CLOSED: Final = 10_240
IN_A_PART: Final = 512
_PARTS: Final = [f"closed:{index}" for index in range(MAX_CLOSED // IN_A_PART)]


class ClosedOrders:
    """A ring in parts: a snapshot writes those in which something was closed, not the whole."""

    def __init__(self) -> None:
        self._by_id: dict[int, Order] = {}
        self._ring: list[Order | None] = [None] * MAX_CLOSED
        self._count = 0
        self.get = self._by_id.get

    def add(self, order: Order) -> str:
        """The oldest makes room; the changed part's name."""
        slot = self._count % MAX_CLOSED
        oldest = self._ring[slot]
        if oldest is not None:
            del self._by_id[oldest.order_id]
        self._ring[slot] = order
        self._by_id[order.order_id] = order
        self._count += 1
        return _PARTS[slot // IN_A_PART]

    def oldest_seq(self, shard: int) -> int:
        """The command that closed the oldest order of this shard that is kept; 0: none ever made room."""
        count = self._count
        if self._ring[count % MAX_CLOSED] is None:
            return 0
        in_turn = (self._ring[at % MAX_CLOSED] for at in range(count, count + MAX_CLOSED))
        return next((order.seq for order in in_turn if order is not None and order.shard == shard), 0)

    def encode_part(self, part: str) -> bytes:
        start = int(part.partition(":")[2]) * IN_A_PART
        numbered = []
        for slot in range(start, start + IN_A_PART):
            order = self._ring[slot]
            if order is not None:
                newest_lap = (self._count - 1 - slot) // MAX_CLOSED
                numbered.append((newest_lap * MAX_CLOSED + slot, order))
        return encode(numbered) if numbered else b""

    def restore_part(self, data: bytes) -> None:
        newest = self._count
        for number, order in _decode(data):
            self._count = number
            self.add(order)
            newest = max(newest, number + 1)
        self._count = newest

    def __iter__(self) -> Iterator[Order]:
        return iter(self._by_id.values())

    def clear(self) -> None:
        self._by_id.clear()
        self._ring = [None] * MAX_CLOSED
        self._count = 0


_decode = msgspec.msgpack.Decoder(list[tuple[int, Order]]).decode
