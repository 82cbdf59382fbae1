"""The price-time book of one symbol, in integers, without I/O: a better price first, then who came earlier.

There is no rule against an account that trades with itself: both of its orders are filled, and it is told
of both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from roost.lanes.commands import Side, State

_BUY: Final = int(Side.BUY)
_OPEN: Final = int(State.OPEN)
_FILLED: Final = int(State.FILLED)
_CANCELLED: Final = int(State.CANCELLED)


class Order(msgspec.Struct, array_like=True, gc=False):
    """A limit order as it stands: the fields of `OrderRow`, and its array is its form in a snapshot.

    NB: `gc=False`: it refers to numbers and text only, so many of them cost the garbage collector nothing.
    """

    order_id: int
    shard: int
    seq: int
    """Of the last command that changed it, like `shard` and `epoch`."""
    epoch: int
    account: str
    symbol: str
    side: int
    price: int
    quantity: int
    """Of the whole order, what is filled included."""
    remaining: int
    """What is not filled; of a cancelled order, what never will be."""
    state: int
    created_ms: int
    updated_ms: int

    @property
    def filled(self) -> int:
        return self.quantity - self.remaining


Fill = tuple[Order, int]
"""The order that was in the book, and how much of it was taken, at its price."""

Level = OrderedDict[int, Order]
"""The orders of one price by id, in the order in which they are served.

NB: not a plain dict, whose first entry takes long to find when many before it were removed.
"""

_NO_FILLS: Final[Sequence[Fill]] = ()


class Ladder:
    """The levels of one side. A key is the price of a bid, minus the price of an ask: the greatest is best.

    Keys are in a sorted list with the best at its end: near the touch an insertion moves next to nothing.
    """

    __slots__ = ("keys", "levels")

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.levels: dict[int, Level] = {}

    def rest(self, key: int, order: Order) -> None:
        level = self.levels.get(key)
        if level is None:
            level = self.levels[key] = OrderedDict()
            keys = self.keys
            if not keys or key > keys[-1]:
                keys.append(key)
            else:
                keys.insert(bisect_left(keys, key), key)
        level[order.order_id] = order

    def remove(self, key: int, order_id: int) -> None:
        level = self.levels[key]
        del level[order_id]
        if not level:
            self.close(key)

    def close(self, key: int) -> None:
        """A level without orders goes."""
        del self.levels[key]
        keys = self.keys
        if keys[-1] == key:
            keys.pop()
        else:
            del keys[bisect_left(keys, key)]

    def take(self, worst_key: int, quantity: int) -> tuple[list[Fill], int]:
        """Fill orders from the best on, none below `worst_key`; what of the quantity is left comes second."""
        fills: list[Fill] = []
        keys = self.keys
        while quantity and keys and (key := keys[-1]) >= worst_key:
            level = self.levels[key]
            while quantity and level:
                maker = next(iter(level.values()))
                if maker.remaining <= quantity:
                    fills.append((maker, maker.remaining))
                    quantity -= maker.remaining
                    maker.remaining = 0
                    maker.state = _FILLED
                    del level[maker.order_id]
                else:
                    fills.append((maker, quantity))
                    maker.remaining -= quantity
                    quantity = 0
            if not level:
                self.close(key)
        return fills, quantity

    def __iter__(self) -> Iterator[Order]:
        """From the best price on, in the order in which they are served."""
        for key in reversed(self.keys):
            yield from self.levels[key].values()


class Book:
    """Both sides. They never cross: what would is filled before it rests."""

    __slots__ = ("asks", "bids", "part", "symbol")

    def __init__(self, symbol: str, orders: Iterable[Order] = ()) -> None:
        """`orders` must be open, each side in the order in which it is served."""
        self.symbol = symbol
        self.part = f"book:{symbol}"
        self.bids = Ladder()
        self.asks = Ladder()
        for order in orders:
            self._rest(order)

    def add(self, order: Order, immediate: bool = False) -> Sequence[Fill]:
        """Fill what can be filled; the rest of it is put into the book, or cancelled if it is immediate."""
        fills = _NO_FILLS
        if order.side == _BUY:
            key, other, own = order.price, self.asks, self.bids
        else:
            key, other, own = -order.price, self.bids, self.asks
        if other.keys and other.keys[-1] >= -key:
            fills, order.remaining = other.take(-key, order.remaining)
        if not order.remaining:
            order.state = _FILLED
        elif immediate:
            order.state = _CANCELLED
        else:
            order.state = _OPEN
            own.rest(key, order)
        return fills

    def cancel(self, order: Order) -> None:
        """Take an order of this book out of it."""
        self._remove(order)
        order.state = _CANCELLED

    def amend(self, order: Order, price: int, quantity: int) -> Sequence[Fill]:
        """No more at the same price keeps the place in the line; anything else comes in anew, behind others.

        `quantity` must be above what is filled.
        """
        filled = order.quantity - order.remaining
        keeps_place = price == order.price and quantity <= order.quantity
        if not keeps_place:
            self._remove(order)
        order.price = price
        order.quantity = quantity
        order.remaining = quantity - filled
        return _NO_FILLS if keeps_place else self.add(order)

    def __bool__(self) -> bool:
        return bool(self.bids.keys or self.asks.keys)

    def __iter__(self) -> Iterator[Order]:
        """Bids, then asks, each in the order in which they are served: `Book` takes them so."""
        yield from self.bids
        yield from self.asks

    def _rest(self, order: Order) -> None:
        if order.side == _BUY:
            self.bids.rest(order.price, order)
        else:
            self.asks.rest(-order.price, order)

    def _remove(self, order: Order) -> None:
        if order.side == _BUY:
            self.bids.remove(order.price, order.order_id)
        else:
            self.asks.remove(-order.price, order.order_id)
