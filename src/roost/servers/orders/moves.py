"""What a shard remembers of symbols that left it, and of those that came."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from roost.lanes.commands import encode
from roost.servers.orders.accounts import KeptAnswer
from roost.servers.orders.book import Order

MAX_TAKEN: Final = 1024
MAX_CLOSED_TAKEN: Final = 1024
"""Closed orders that leave with their symbol."""

Place = tuple[int, int]
"""Shard and lane."""


class Luggage(msgspec.Struct, array_like=True):
    """What leaves with a symbol: its orders, whether it is halted, and the answers that were given about it.

    Without the answers, a command that is sent again after the move would be executed again.
    """

    symbol: str
    halted: str | None
    orders: list[Order]
    floors: list[tuple[str, int]]
    """Of each account that has an order or an answer here, and of some of the others, which acknowledged."""
    answers: list[tuple[str, list[KeptAnswer]]]
    closed: list[Order] = []
    """The last ones: a late cancel learns at the new place too that its order is closed."""


class Departed(msgspec.Struct, array_like=True, gc=False):
    """A book that left, kept until it is known to have arrived."""

    move_id: str
    book: bytes


class KeptHints(msgspec.Struct, array_like=True):
    order_ids: list[tuple[int, str]]
    departed: list[tuple[str, Departed]]


class Moves:
    """`forwards` and `taken` are decided by the log alone and count in the digest.

    The books that may have to be passed on again are dropped when the other shard has them, the order ids
    that left when the database has them as closed. Neither stands in a log of this shard: they are hints, no
    reply depends on them.
    """

    def __init__(self) -> None:
        self.forwards: dict[str, Place] = {}
        self.taken: dict[str, str] = {}
        """Symbols by move id, the last ones."""
        self.order_ids: dict[int, str] = {}
        """Symbols by the ids of the orders that left with them."""
        self.departed: dict[str, Departed] = {}

    def leave(self, symbol: str, place: Place, order_ids: Iterable[int], departed: Departed) -> None:
        self.forwards[symbol] = place
        self.order_ids.update(dict.fromkeys(order_ids, symbol))
        self.departed[symbol] = departed

    def come(self, symbol: str, move_id: str) -> None:
        self.taken[move_id] = symbol
        if len(self.taken) > MAX_TAKEN:
            del self.taken[next(iter(self.taken))]
        if self.forwards.pop(symbol, None) is not None:
            self.departed.pop(symbol, None)
            for order_id in [one for one, left in self.order_ids.items() if left == symbol]:
                del self.order_ids[order_id]

    def forward_of(self, order_id: int) -> tuple[int, int, str] | None:
        symbol = self.order_ids.get(order_id)
        if symbol is None:
            return None
        return *self.forwards[symbol], symbol

    def encode_hints(self) -> bytes:
        if not self.order_ids and not self.departed:
            return b""
        return encode(KeptHints(sorted(self.order_ids.items()), sorted_items(self.departed)))

    def restore_hints(self, data: bytes) -> None:
        kept = _decode_hints(data)
        self.order_ids.update(kept.order_ids)
        self.departed.update(kept.departed)

    def clear(self) -> None:
        for one in (self.forwards, self.taken, self.order_ids, self.departed):
            one.clear()


def sorted_items(departed: dict[str, Departed]) -> list[tuple[str, Departed]]:
    return [(symbol, departed[symbol]) for symbol in sorted(departed)]


decode_luggage = msgspec.msgpack.Decoder(Luggage).decode
_decode_hints = msgspec.msgpack.Decoder(KeptHints).decode
