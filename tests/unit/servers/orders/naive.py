"""A book that is slow and plain: one list, searched and sorted for every order."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost.lanes.commands import Side


@dataclass
class NaiveOrder:
    order_id: int
    side: int
    price: int
    quantity: int
    remaining: int
    arrival: int = 0


@dataclass
class NaiveBook:
    orders: list[NaiveOrder] = field(default_factory=list)
    arrivals: int = 0

    def add(self, order: NaiveOrder, immediate: bool = False) -> list[tuple[int, int, int]]:
        """(maker's id, price, quantity) of each fill."""
        fills = []
        while order.remaining and (candidates := [one for one in self.orders if crosses(order, one)]):
            maker = min(candidates, key=served)
            quantity = min(order.remaining, maker.remaining)
            order.remaining -= quantity
            maker.remaining -= quantity
            fills.append((maker.order_id, maker.price, quantity))
            self.orders = [one for one in self.orders if one.remaining]
        if order.remaining and not immediate:
            self.arrivals += 1
            order.arrival = self.arrivals
            self.orders.append(order)
        return fills

    def find(self, order_id: int) -> NaiveOrder | None:
        return next((one for one in self.orders if one.order_id == order_id), None)

    def cancel(self, order_id: int) -> None:
        self.orders = [one for one in self.orders if one.order_id != order_id]

    def amend(self, order: NaiveOrder, price: int, quantity: int) -> list[tuple[int, int, int]]:
        filled = order.quantity - order.remaining
        keeps_place = price == order.price and quantity <= order.quantity
        order.price, order.quantity, order.remaining = price, quantity, quantity - filled
        if keeps_place:
            return []
        self.cancel(order.order_id)
        return self.add(order)

    def side(self, side: int) -> list[tuple[int, int, int]]:
        """(id, price, remaining) in the order in which they are served."""
        mine = sorted((one for one in self.orders if one.side == side), key=served)
        return [(one.order_id, one.price, one.remaining) for one in mine]


def crosses(taker: NaiveOrder, maker: NaiveOrder) -> bool:
    if taker.side == maker.side:
        return False
    return taker.price >= maker.price if taker.side == Side.BUY else taker.price <= maker.price


def served(order: NaiveOrder) -> tuple[int, int]:
    return (-order.price if order.side == Side.BUY else order.price), order.arrival
