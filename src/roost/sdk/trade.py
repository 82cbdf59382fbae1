"""What a trader gets to know: answers to commands, orders, fills. `sdk/direct/trader.py` sends and listens.

async with roost.connect("redis://…") as client, client.trader("acct-7") as trader:
    answer = await trader.new("AAPL", "buy", price=100, quantity=5)
    if isinstance(answer, roost.OrderAccepted):
        await trader.cancel(answer.order_id, "AAPL")

A refusal is a value: it was certainly not carried out. `OutcomeUnknown` is raised where nobody can say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Fill", "FillGap", "Order", "OrderAccepted", "OrderRefused", "OrderState", "Receipt", "Side"]

Side = Literal["buy", "sell"]
OrderState = Literal["open", "filled", "cancelled"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a command stands in the log of its shard. Of two of a shard the lower `seq` came first."""

    shard: int
    lane: int
    epoch: int
    seq: int
    durability: str
    """What it has survived by now: memory, everysec, fsync or replica."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class OrderAccepted:
    """It was carried out and is in the log."""

    order_id: int
    state: OrderState
    filled: int
    remaining: int
    receipt: Receipt
    client_seq: int


@dataclass(frozen=True, slots=True)
class OrderRefused:
    """It was not carried out, and will not be."""

    reason: str
    """For programs: NOT_YOURS, BAD_PRICE, QUEUE_FULL, …; docs/orders.md has them all."""
    message: str
    client_seq: int = 0
    order_id: int = 0
    retry_after_ms: int = 0
    """When to come again; 0: it is not a matter of time."""
    depth: int = 0
    """Commands that waited in its lane."""
    receipt: Receipt | None = None
    """Of a refusal that the shard itself made: it is in the log, like an accepted command."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order as its last command left it."""

    order_id: int
    state: OrderState
    symbol: str
    side: Side
    price: int
    quantity: int
    remaining: int
    shard: int
    seq: int
    """Of that command."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A part of an order that was traded. `number` is dense for an account and shard."""

    shard: int
    number: int
    seq: int
    order_id: int
    symbol: str
    side: Side
    price: int
    quantity: int
    remaining: int
    """Of the order, after this fill."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class FillGap:
    """Fills of a shard after the number `after` are missing here; those after `until` come next.

    The server keeps them no longer, or the store has lost them; then `until` may be the lower number. How the
    orders stand `Trader.query` tells.
    """

    shard: int
    after: int
    until: int = 0
