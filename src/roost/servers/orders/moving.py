"""MOVE_OUT and MOVE_IN: a symbol goes to another shard, with its book and what was answered about it."""

from __future__ import annotations

from heapq import nlargest
from math import inf
from typing import Final

import msgspec

from roost.lanes.commands import MoveIn, MoveOut, Outcome, Reason, State, Turn, encode
from roost.servers.orders.accounts import DROPPED_AT_ONCE, MAX_ANSWERS, keep, unkeep
from roost.servers.orders.book import Book, Order
from roost.servers.orders.moves import MAX_CLOSED_TAKEN, Departed, Luggage, decode_luggage
from roost.servers.orders.parts import LEFT, META, ShardState
from roost.servers.orders.trading import Events, Result, Rows, Trading, done, refusal, row_of

MAX_FLOORS: Final = 4096
"""Accounts without an order or an answer about a symbol whose floors leave with it, some 100 KB."""
ARRAY_GROWS_BY: Final = 4
"""Bytes that the head of an array takes more when it is long."""


class Moved(Outcome, array_like=True, frozen=True, gc=False):
    """The answer to MOVE_OUT: an `Outcome` with the book behind it, for MOVE_IN at the other shard."""

    book: bytes = b""


class Moving:
    def __init__(self, state: ShardState, trading: Trading) -> None:
        self._state = state
        self._trading = trading

    def move_out(self, turn: Turn, seq: int, lane: int, command: MoveOut) -> Result:
        """Once for each move: a symbol that went to another lane of this shard by it has come already."""
        state, symbol = self._state, command.symbol
        if symbol in state.moves.forwards or command.move_id in state.moves.taken:
            return refusal(turn, seq, lane, 0, Reason.MOVED), None, None
        luggage = self._pack(symbol)
        book = encode(luggage)
        if 0 < command.most_bytes < len(book):
            return refusal(turn, seq, lane, 0, Reason.TOO_LARGE), None, None
        if others := self._other_floors(luggage, (command.most_bytes or inf) - len(book)):
            luggage.floors += others
            book = encode(luggage)
        order_ids = [order.order_id for order in luggage.orders]
        for order_id in order_ids:
            del state.orders[order_id]
        state.books.pop(symbol, None)
        state.halts.pop(symbol, None)
        state.moves.leave(symbol, (command.shard, command.lane), order_ids, Departed(command.move_id, book))
        state.touched.update((f"book:{symbol}", META, LEFT))
        return encode(_moved(turn, seq, lane, book)), None, None

    def move_in(self, turn: Turn, seq: int, lane: int, command: MoveIn) -> Result:
        """Once for each move: when the owner is not sure that it was done, it asks again.

        Refused where the symbol has left since: what is here of that move is not what is asked about.
        """
        state, symbol = self._state, command.symbol
        reply = done(turn, seq, lane)
        if command.move_id in state.moves.taken:
            has_left = symbol in state.moves.forwards
            return refusal(turn, seq, lane, 0, Reason.MOVED) if has_left else reply, None, None
        luggage = decode_luggage(command.book)
        if luggage.symbol != symbol:
            raise ValueError(f"the book of {luggage.symbol!r} was sent as that of {symbol!r}")
        if any(order.order_id in state.orders for order in luggage.orders):
            raise ValueError(f"orders of {symbol!r} are here already")
        state.moves.come(symbol, command.move_id)
        if luggage.halted is not None:
            state.halts[symbol] = luggage.halted
        self._unpack_answers(luggage)
        for order in luggage.closed:
            if state.closed.get(order.order_id) is None:
                state.touched.add(state.closed.add(order))
        state.touched.update((f"book:{symbol}", META, LEFT))
        events, rows = self._join(turn, seq, luggage)
        return reply, events or None, rows or None

    def _pack(self, symbol: str) -> Luggage:
        state = self._state
        orders = list(state.books.get(symbol, ()))
        traders = {order.account for order in orders}
        floors, answers = [], []
        for account in sorted(state.accounts, key=lambda one: one.name):
            about = [
                keep(n, account.answers[n])
                for n in sorted(account.answers)
                if account.answers[n][2] == symbol
            ]
            if about:
                answers.append((account.name, about))
            if about or account.name in traders:
                floors.append((account.name, account.floor))
        closed = sorted(
            (order for order in state.closed if order.symbol == symbol),
            key=lambda order: (order.updated_ms, order.order_id),
        )
        halted = state.halts.get(symbol)
        return Luggage(symbol, halted, orders, floors, answers, closed[-MAX_CLOSED_TAKEN:])

    def _other_floors(self, luggage: Luggage, room: float) -> list[tuple[str, int]]:
        """Of accounts that left no order and no answer: what they acknowledged may have been about it.

        Those with the highest numbers, which are times where the SDK makes them, as far as there is room: a
        book that can travel without them does not stay for them. NB: a floor rises too where too many answers
        are kept, which says nothing of what was acknowledged; who may have come so far is left out.
        """
        named, accounts = {name for name, _ in luggage.floors}, self._state.accounts
        few = MAX_ANSWERS - DROPPED_AT_ONCE
        others = (
            (one.floor, one.name)
            for one in accounts
            if one.floor and one.name not in named and len(one.answers) <= few
        )
        found = []
        room -= ARRAY_GROWS_BY
        for floor, name in nlargest(MAX_FLOORS, others):
            room -= len(encode((name, floor)))
            if room < 0:
                break
            found.append((name, floor))
        return found

    def _unpack_answers(self, luggage: Luggage) -> None:
        answers = dict(luggage.answers)
        for name, floor in luggage.floors:
            account = self._state.accounts.of(name)
            account.take_over(floor, [(one.number, unkeep(one)) for one in answers.get(name, ())])
            self._state.touched.add(account.part)

    def _join(self, turn: Turn, seq: int, luggage: Luggage) -> tuple[Events, Rows]:
        """The orders that come keep their places; any that were here already come in behind them, anew.

        NB: those trade even if the symbol came halted, for a crossed book would be worse.
        """
        state, symbol = self._state, luggage.symbol
        here = list(state.books.get(symbol, ()))
        book = state.books[symbol] = Book(symbol, luggage.orders)
        state.orders.update((order.order_id, order) for order in luggage.orders)
        events: Events = []
        rows: Rows = []
        for order in here:
            fills = book.add(order)
            if order.state != State.OPEN:
                del state.orders[order.order_id]
                state.touched.add(state.closed.add(order))
            if fills:
                events += self._trading.tell(turn, seq, order, fills, [])
        for order in (*luggage.orders, *here):
            _stamp(order, turn, seq)
            rows.append(row_of(order))
        return events, rows


def _stamp(order: Order, turn: Turn, seq: int) -> None:
    order.shard = turn.shard
    order.seq = seq
    order.epoch = turn.epoch
    order.updated_ms = max(turn.at_ms, order.updated_ms + 1)  # what the database compares across shards


def _moved(turn: Turn, seq: int, lane: int, book: bytes) -> Moved:
    return Moved(
        0, State.OPEN, 0, 0, "", turn.shard, lane, turn.epoch, seq, turn.durability, turn.at_ms, book
    )


decode_moved = msgspec.msgpack.Decoder(Moved).decode
"""A refusal is one without a book."""
