"""The reference entity: a counter, an inventory, a chat that echoes, orders, the version of a hot update.

    {"op": "count", "by": 1}        → the count
    {"op": "get"}                   → {"count", "items"}
    {"op": "give", "item", "n"}     → how many there are now; "take" raises where there are too few
    {"op": "say", "text"}           → the text; also pushed back as {"said": text}
    {"op": "order", "symbol", "side", "price", "quantity"}    → the number of the command
    {"op": "trades"}                → {"holds": {symbol: how many}, "answered": the last number that was}
    {"op": "version"}               → {"version", "serverId"}

A bare word stands for the operation without its options: "count", "get", "trades", "version".
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from roost.core.errors import InvalidInput
from roost.sdk.entity import Durability, Entity, Journal, Message, WriteThrough
from roost.sdk.trade import Fill, OrderAccepted, OrderRefused, Side

MOST_ITEMS = 1000
LONGEST_TEXT = 4096


class State(msgspec.Struct):
    count: int = 0
    items: dict[str, int] = {}
    holds: dict[str, int] = {}
    """By symbol what was bought, less what was sold."""
    answered: int = 0


class Reference(Entity):
    """Written back within a second."""

    def __init__(self) -> None:
        self.state = State()

    async def load(self, state: bytes | None) -> None:
        self.state = msgspec.msgpack.decode(state, type=State) if state is not None else State()

    def save(self) -> bytes:
        return msgspec.msgpack.encode(self.state)

    async def handle(self, message: Message) -> object:
        body = message.body if isinstance(message.body, dict) else {"op": message.body}
        match body.get("op"):
            case "count":
                self.state.count += _number(body.get("by", 1))
                return self.state.count
            case "get":
                return {"count": self.state.count, "items": self.state.items}
            case "give" | "take" as op:
                return self._move(
                    str(body.get("item", "")), _number(body.get("n", 1)), 1 if op == "give" else -1
                )
            case "say":
                text = str(body.get("text", ""))[:LONGEST_TEXT]
                self.push({"said": text})
                return text
            case "order":
                return self._order(body)
            case "trades":
                return {"holds": self.state.holds, "answered": self.state.answered}
            case "version":
                return {"version": self.home.version, "serverId": self.home.server_id}
        raise InvalidInput("the operations are count, get, give, take, say, order, trades and version")

    async def on_order(self, answer: OrderAccepted | OrderRefused) -> None:
        self.state.answered = max(self.state.answered, answer.client_seq)

    async def on_fill(self, fill: Fill) -> None:
        holds = self.state.holds
        holds[fill.symbol] = holds.get(fill.symbol, 0) + (
            fill.quantity if fill.side == "buy" else -fill.quantity
        )

    def _order(self, body: dict[str, Any]) -> int:
        side: Side = "sell" if body.get("side") == "sell" else "buy"
        price, quantity = _number(body.get("price")), _number(body.get("quantity"))
        return self.orders.new(str(body.get("symbol", "")), side, price=price, quantity=quantity)

    def _move(self, item: str, number: int, sign: int) -> int:
        items = self.state.items
        left = items.get(item, 0) + sign * number
        if not item or number < 1 or left < 0 or (item not in items and len(items) >= MOST_ITEMS):
            raise InvalidInput(f"there are {items.get(item, 0)} of it")
        items[item] = left
        if not left:
            del items[item]
        return left


class JournalReference(Reference):
    """Every acknowledged message is in the store's journal first."""

    durability: ClassVar[Durability] = Journal()


class WriteThroughReference(Reference):
    """Every acknowledged message is in the database first."""

    durability: ClassVar[Durability] = WriteThrough()


def _number(value: Any) -> int:
    if not isinstance(value, int) or not -(2**31) < value < 2**31:
        raise InvalidInput(f"{value!r} is not a number that can be counted")
    return value
