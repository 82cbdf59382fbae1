"""NEW, CANCEL and AMEND: validated first, then carried out, so that a command that fails has changed nothing.

NB: this is the hot path: what is used for every command is bound once, codes are plain integers, and a row is
made past the constructor of its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.db.orders import OrderRow
from roost.lanes.commands import (
    MAX_PRICE,
    MAX_QUANTITY,
    Amend,
    Cancel,
    New,
    Outcome,
    Reason,
    Side,
    State,
    Turn,
    encode,
)
from roost.servers.orders.accounts import Account, Request, same_content
from roost.servers.orders.book import Book, Fill, Order
from roost.servers.orders.parts import ShardState

Events = list[tuple[str, bytes]]
Rows = list[OrderRow]
Result = tuple[bytes, Events | None, Rows | None]
"""The reply, encoded; each account's events, encoded; the orders that changed."""

_SIDES: Final = (int(Side.BUY), int(Side.SELL))
_REFUSED: Final = int(State.REFUSED)
_OPEN: Final = int(State.OPEN)
_FILLED: Final = int(State.FILLED)

_tuple = tuple.__new__
_fields = msgspec.structs.astuple


def row_of(order: Order) -> OrderRow:
    return _tuple(OrderRow, _fields(order))


def refusal(turn: Turn, seq: int, lane: int, order_id: int, reason: str) -> bytes:
    return encode(
        Outcome(
            order_id, _REFUSED, 0, 0, reason, turn.shard, lane, turn.epoch, seq, turn.durability, turn.at_ms
        )
    )


def done(turn: Turn, seq: int, lane: int) -> bytes:
    """The answer to a command that is about no order."""
    return encode(Outcome(0, _OPEN, 0, 0, "", turn.shard, lane, turn.epoch, seq, turn.durability, turn.at_ms))


def _told(
    turn: Turn, seq: int, account: Account, order: Order, price: int, quantity: int, remaining: int
) -> bytes:
    """The account's next event."""
    number = account.event_number = account.event_number + 1
    event = encode(  # the fields of an `Event`
        (
            account.name,
            number,
            turn.shard,
            seq,
            order.order_id,
            order.symbol,
            order.side,
            price,
            quantity,
            remaining,
            turn.at_ms,
        )
    )
    account.tell(event)
    return event


class Trading:
    def __init__(self, state: ShardState) -> None:
        self._books = state.books
        self._orders = state.orders
        self._closed = state.closed
        self._accounts = state.accounts
        self._halts = state.halts
        self._forwards = state.moves.forwards
        self._touched = state.touched

    def first_answer(self, turn: Turn, seq: int, lane: int, command: Request) -> Result | None:
        """To a number that was used before; None for a new one. Nothing is changed by it."""
        number = command.client_seq
        account = self._accounts.get(command.account)
        if account is None:
            if number >= 1:
                return None
        else:
            answer = account.answers.get(number)
            if answer is not None:
                if same_content(answer[0], command):
                    return answer[1], None, None
                return refusal(turn, seq, lane, _named(command), Reason.DUPLICATE), None, None
            if number > account.floor:
                return None
        return refusal(turn, seq, lane, _named(command), Reason.TOO_OLD), None, None

    def new(
        self, turn: Turn, seq: int, lane: int, order_id: int, command: New, account: Account | None
    ) -> Result:
        """`account`: that of the command, if the shard knows it, here and below."""
        symbol = command.symbol
        quantity = command.quantity
        price = command.price
        side = command.side
        if (
            side not in _SIDES
            or not (0 < quantity <= MAX_QUANTITY and 0 < price <= MAX_PRICE)
            or symbol in self._forwards
            or symbol in self._halts
        ):
            return self._refuse(turn, seq, lane, command, symbol, self._why_not_new(command))
        if order_id in self._orders or self._closed.get(order_id) is not None:
            raise ValueError(f"order id {order_id} was given out twice")
        at_ms = turn.at_ms
        order = Order(
            order_id,
            turn.shard,
            seq,
            turn.epoch,
            command.account,
            symbol,
            side,
            price,
            quantity,
            quantity,
            _OPEN,
            at_ms,
            at_ms,
        )
        book = self._books.get(symbol)
        if book is None:
            book = self._books[symbol] = Book(symbol)
        fills = book.add(order, command.immediate)
        if order.state == _OPEN:
            self._orders[order_id] = order
        else:
            self._touched.add(self._closed.add(order))
        return self._done(turn, seq, lane, command, account, order, book, fills)

    def cancel(self, turn: Turn, seq: int, lane: int, command: Cancel, account: Account | None) -> Result:
        """Of a halted symbol too: nobody is kept in."""
        order = self._find(command)
        if isinstance(order, str):
            return self._refuse(turn, seq, lane, command, self._symbol_of(command), order)
        book = self._books[order.symbol]
        book.cancel(order)
        del self._orders[order.order_id]
        self._touched.add(self._closed.add(order))
        return self._done(turn, seq, lane, command, account, order, book, ())

    def amend(self, turn: Turn, seq: int, lane: int, command: Amend, account: Account | None) -> Result:
        order = self._find(command)
        reason = order if isinstance(order, str) else self._why_not_amend(order, command)
        if isinstance(order, str) or reason is not None:
            return self._refuse(turn, seq, lane, command, self._symbol_of(command), str(reason))
        book = self._books[order.symbol]
        fills = book.amend(order, command.price, command.quantity)
        if order.state == _FILLED:
            del self._orders[order.order_id]
            self._touched.add(self._closed.add(order))
        return self._done(turn, seq, lane, command, account, order, book, fills)

    def tell(self, turn: Turn, seq: int, taker: Order, fills: Sequence[Fill], rows: Rows) -> Events:
        """Write both sides' events, and what became of the orders that were in the book."""
        events: Events = []
        account_of, touched = self._accounts.of, self._touched
        taking = account_of(taker.account)
        touched.add(taking.part)
        left = taker.remaining
        for _, quantity in fills:
            left += quantity
        for maker, quantity in fills:
            left -= quantity
            making = account_of(maker.account)
            touched.add(making.part)
            price = maker.price
            events.append((making.name, _told(turn, seq, making, maker, price, quantity, maker.remaining)))
            events.append((taking.name, _told(turn, seq, taking, taker, price, quantity, left)))
            maker.seq = seq
            maker.epoch = turn.epoch
            if turn.at_ms > maker.updated_ms:  # it may come from a shard whose clock is ahead
                maker.updated_ms = turn.at_ms
            if maker.state == _FILLED:
                del self._orders[maker.order_id]
                touched.add(self._closed.add(maker))
            rows.append(row_of(maker))
        return events

    def _done(
        self,
        turn: Turn,
        seq: int,
        lane: int,
        command: Request,
        account: Account | None,
        order: Order,
        book: Book,
        fills: Sequence[Fill],
    ) -> Result:
        """The command changed this order, and those of the fills."""
        shard, epoch, at_ms = turn.shard, turn.epoch, turn.at_ms
        order.seq = seq
        order.epoch = epoch
        if at_ms > order.updated_ms:
            order.updated_ms = at_ms
        rows = [_tuple(OrderRow, _fields(order))]
        events = self.tell(turn, seq, order, fills, rows) if fills else None
        left = order.remaining
        filled = order.quantity - left
        durability = turn.durability
        reply = encode(  # the fields of an `Outcome`
            (order.order_id, order.state, filled, left, "", shard, lane, epoch, seq, durability, at_ms)
        )
        touched = self._touched
        touched.add(book.part)
        if account is None:
            account = self._accounts.of(command.account)
        account.answered(command.client_seq, command.acked, (command, reply, book.symbol))
        touched.add(account.part)
        return reply, events, rows

    def _refuse(self, turn: Turn, seq: int, lane: int, command: Request, symbol: str, reason: str) -> Result:
        reply = refusal(turn, seq, lane, _named(command), reason)
        account = self._accounts.of(command.account)
        account.answered(command.client_seq, command.acked, (command, reply, symbol))
        self._touched.add(account.part)
        return reply, None, None

    def _why_not_new(self, command: New) -> str:
        if command.side not in _SIDES:
            return Reason.BAD_SIDE
        if not 0 < command.quantity <= MAX_QUANTITY:
            return Reason.BAD_QUANTITY
        if not 0 < command.price <= MAX_PRICE:
            return Reason.BAD_PRICE
        return Reason.MOVED if command.symbol in self._forwards else Reason.HALTED

    def _find(self, command: Cancel | Amend) -> Order | str:
        """The open order that a command of its own account names, or why there is none."""
        order = self._orders.get(command.order_id)
        found = order or self._closed.get(command.order_id)
        if found is None or (command.symbol and command.symbol != found.symbol):
            return Reason.MOVED if command.symbol in self._forwards else Reason.UNKNOWN_ORDER
        if found.account != command.account:
            return Reason.NOT_YOURS
        return Reason.CLOSED if order is None else order

    def _why_not_amend(self, order: Order, command: Amend) -> str | None:
        if not order.filled < command.quantity <= MAX_QUANTITY:
            return Reason.BAD_QUANTITY
        if not 0 < command.price <= MAX_PRICE:
            return Reason.BAD_PRICE
        return Reason.HALTED if order.symbol in self._halts else None

    def _symbol_of(self, command: Cancel | Amend) -> str:
        order = self._orders.get(command.order_id) or self._closed.get(command.order_id)
        return command.symbol if order is None else order.symbol


def _named(command: Request) -> int:
    """The order that a command names; a new one has no id unless it is accepted."""
    return 0 if isinstance(command, New) else command.order_id
