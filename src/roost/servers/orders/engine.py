"""The machine behind a shard's log: deterministic, without I/O, clock or chance.

Live and in a replay `apply` gets the same arguments, comes to the same state and gives the same results, byte
for byte. A refusal is a reply; an exception is a fault of this program and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from roost.db.orders import OrderRow
from roost.lanes.commands import Halt, Method, Reason, Turn
from roost.servers.orders.book import Book
from roost.servers.orders.moves import Departed, Place
from roost.servers.orders.moving import Moving
from roost.servers.orders.parts import LEFT, META, ShardState
from roost.servers.orders.trading import Result, Trading, done, refusal, row_of

BYTES_PER_ORDER = 64
"""About what an order takes in a snapshot."""

_NEW = int(Method.NEW)
_CANCEL = int(Method.CANCEL)
_AMEND = int(Method.AMEND)


class Engine:
    """The order server's `Machine` for one shard."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self._state = ShardState(shard)
        trading = Trading(self._state)
        self._account_of = self._state.accounts.get
        self._first_answer = trading.first_answer
        self._new, self._cancel, self._amend = trading.new, trading.cancel, trading.amend
        moving = Moving(self._state, trading)
        self._markers: dict[int, Callable[[Turn, int, int, Any], Result]] = {
            Method.TAKEOVER: _mark,
            Method.CHECK: _mark,
            Method.HALT: self._halt,
            Method.RESUME: self._resume,
            Method.MOVE_OUT: moving.move_out,
            Method.MOVE_IN: moving.move_in,
        }

    def apply(self, turn: Turn, seq: int, method: int, lane: int, order_id: int, command: Any) -> Result:
        """Carry out what `lanes.commands.decode_command` made of a command of this method.

        NB: `Any` stands for `lanes.commands.Command`: the method says which, and a check of types costs time.
        """
        if not _NEW <= method <= _AMEND:
            return self._markers[method](turn, seq, lane, command)
        number = command.client_seq
        account = self._account_of(command.account)
        if account is None or number <= account.floor or number in account.answers:
            again = self._first_answer(turn, seq, lane, command)
            if again is not None:
                return again
        if method == _NEW:
            return self._new(turn, seq, lane, order_id, command, account)
        if method == _CANCEL:
            return self._cancel(turn, seq, lane, command, account)
        return self._amend(turn, seq, lane, command, account)

    def dirty(self) -> dict[str, bytes]:
        """The parts that changed since the last call; an empty one is gone."""
        return self._state.dirty()

    def all_parts(self) -> dict[str, bytes]:
        """Every part, changed or not; what changed counts as handed out."""
        return self._state.all_parts()

    def restore(self, parts: Mapping[str, bytes]) -> None:
        """Become what was collected of `dirty`: the last of each part."""
        self._state.restore(parts)

    def rows_since(self, seq: int) -> list[OrderRow]:
        """Of the orders that this command or a later one changed, as far as closed ones are kept."""
        state = self._state
        return [row_of(order) for order in (*state.orders.values(), *state.closed) if order.seq >= seq]

    def forgotten_seq(self) -> int:
        """The last command that may have closed an order which `rows_since` lacks; 0: it lacks none."""
        return self._state.closed.oldest_seq(self.shard)

    def digest(self) -> bytes:
        return self._state.digest()

    def skip_lost(self) -> None:
        """Commands after the last one were lost: whoever follows events must not take new ones for theirs."""
        self._state.touched.update({META, *self._state.accounts.skip_events()})

    def order(self, order_id: int) -> OrderRow | None:
        state = self._state
        found = state.orders.get(order_id) or state.closed.get(order_id)
        return row_of(found) if found is not None else None

    def query(self, order_id: int, account: str) -> OrderRow | str:
        """The order as its last command left it, or a word of `Reason`."""
        state = self._state
        order = state.orders.get(order_id) or state.closed.get(order_id)
        if order is None:
            return Reason.MOVED if order_id in state.moves.order_ids else Reason.UNKNOWN_ORDER
        return row_of(order) if order.account == account else Reason.NOT_YOURS

    def answer_to(self, account: str, client_seq: int) -> bytes | None:
        """The reply that a command got, while it is kept."""
        known = self._state.accounts.get(account)
        answer = known and known.answers.get(client_seq)
        return answer[1] if answer else None

    def is_too_old(self, account: str, client_seq: int) -> bool:
        """Whether this number may have been answered, and the answer is kept no longer."""
        known = self._state.accounts.get(account)
        return known is not None and client_seq <= known.floor

    def events_after(self, account: str, number: int, seq: int) -> tuple[int, list[bytes]]:
        """Events of commands up to `seq`, and the number they come after: another, if some are missing."""
        return self._state.accounts.events_after(account, number, seq)

    def symbol_of(self, order_id: int) -> str:
        """Of an order that is or was here, also of one that left with its book; empty: it is not known."""
        state = self._state
        order = state.orders.get(order_id) or state.closed.get(order_id)
        if order is not None:
            return order.symbol
        left = state.moves.forward_of(order_id)
        return left[2] if left is not None else ""

    def book(self, symbol: str) -> Book | None:
        """To be read only."""
        return self._state.books.get(symbol)

    def symbols(self) -> list[str]:
        """Those that have open orders."""
        return sorted(symbol for symbol, book in self._state.books.items() if book)

    def halts(self) -> Mapping[str, str]:
        """Why, by symbol."""
        return self._state.halts

    def forward_of(self, order_id: int) -> tuple[int, int, str] | None:
        """Shard, lane and symbol of an order that left with its book."""
        return self._state.moves.forward_of(order_id)

    def forward_of_symbol(self, symbol: str) -> Place | None:
        return self._state.moves.forwards.get(symbol)

    def size_of(self, symbol: str) -> int:
        """Bytes of a symbol's book at least, as it would travel."""
        book = self._state.books.get(symbol)
        return BYTES_PER_ORDER * len(list(book)) if book is not None else 0

    def departed(self) -> Mapping[str, Departed]:
        """By symbol the books that left and may not have arrived: a new owner passes them on again."""
        return self._state.moves.departed

    def arrived(self, symbol: str) -> None:
        """The other shard has it in its log."""
        if self._state.moves.departed.pop(symbol, None) is not None:
            self._state.touched.add(LEFT)

    def left(self) -> Collection[int]:
        """The orders that left with their symbol and are not known to be closed for long."""
        return self._state.moves.order_ids.keys()

    def closed_elsewhere(self, order_ids: Iterable[int]) -> None:
        """Orders that left and are closed where they are: nothing has to be sent on for them any more."""
        left = self._state.moves.order_ids
        for order_id in order_ids:
            if left.pop(order_id, None) is not None:
                self._state.touched.add(LEFT)

    def _halt(self, turn: Turn, seq: int, lane: int, command: Halt) -> Result:
        if command.symbol in self._state.moves.forwards:
            return refusal(turn, seq, lane, 0, Reason.MOVED), None, None
        self._state.halts[command.symbol] = command.why
        self._state.touched.add(META)
        return done(turn, seq, lane), None, None

    def _resume(self, turn: Turn, seq: int, lane: int, command: Halt) -> Result:
        if command.symbol in self._state.moves.forwards:
            return refusal(turn, seq, lane, 0, Reason.MOVED), None, None
        self._state.halts.pop(command.symbol, None)
        self._state.touched.add(META)
        return done(turn, seq, lane), None, None


def _mark(turn: Turn, seq: int, lane: int, _: bytes) -> Result:
    """TAKEOVER and CHECK are points in the log; the state is as before."""
    return done(turn, seq, lane), None, None
