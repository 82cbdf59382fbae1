"""One symbol as it stood at any command of its shard's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from roost.api.orders import BookView, LevelView, RestingOrder
from roost.lanes.commands import Batch, Turn, decode_command
from roost.servers.orders.book import Ladder, Order
from roost.servers.orders.engine import Engine

MAX_ORDERS = 1000
"""Of one side that are shown."""

Entry = tuple[int, int, Batch]
"""Epoch, number of the first command, the commands."""


class Replay:
    """A machine of its own, fed with the log up to `to_seq`.

    `parts` are of a snapshot that includes the commands up to `from_seq`, which are skipped.
    """

    def __init__(self, shard: int, to_seq: int, parts: Mapping[str, bytes], from_seq: int = 0) -> None:
        self._engine = Engine(shard)
        self._engine.restore(parts)
        self._to_seq = to_seq
        self.seq = from_seq
        self.missing = 0
        """Commands before `to_seq` that no log has; whoever feeds sees them."""
        self._at_ms = 0
        self._failed = 0

    def feed(self, entry: Entry) -> bool:
        """Carry out an entry; False: it and what follows is after `to_seq`."""
        epoch, first_seq, batch = entry
        if first_seq > self._to_seq:
            return False
        turn = Turn(self._engine.shard, epoch, batch.at_ms, batch.durability)
        for number, (method, lane, order_id, payload) in enumerate(batch.commands, first_seq):
            if number > self._to_seq:
                return False
            if number > self.seq:
                self._carry_out(turn, number, method, lane, order_id, payload)
        return True

    def book(self, symbol: str) -> BookView:
        engine = self._engine
        book, place = engine.book(symbol), engine.forward_of_symbol(symbol)
        return BookView(
            symbol=symbol,
            shard=engine.shard,
            seq=self.seq,
            at_ms=self._at_ms,
            halted=engine.halts().get(symbol),
            moved_to=None if place is None else f"{place[0]}/{place[1]}",
            bids=list(_levels(book.bids)) if book is not None else [],
            asks=list(_levels(book.asks)) if book is not None else [],
            failed=self._failed,
            orders=len(list(book)) if book is not None else 0,
            missing=self.missing,
        )

    def _carry_out(
        self, turn: Turn, number: int, method: int, lane: int, order_id: int, payload: bytes
    ) -> None:
        try:
            self._engine.apply(turn, number, method, lane, order_id, decode_command(method, payload))
        except Exception:
            self._failed += 1
        self.seq, self._at_ms = number, turn.at_ms


def replay_symbol(
    entries: Iterable[Entry], symbol: str, to_seq: int, parts: Mapping[str, bytes], *, shard: int = 0
) -> BookView:
    """`parts` are of a snapshot at or before `to_seq`, `entries` those after it, also beyond `to_seq`."""
    replay = Replay(shard, to_seq, parts)
    for entry in entries:
        if not replay.feed(entry):
            break
    return replay.book(symbol)


def _levels(ladder: Ladder) -> Iterator[LevelView]:
    room = MAX_ORDERS
    for key in reversed(ladder.keys):
        orders = list(ladder.levels[key].values())
        remaining = sum(order.remaining for order in orders)
        yield LevelView(abs(key), remaining, [_order(order) for order in orders[:room]])
        room -= len(orders)
        if room <= 0:
            return


def _order(order: Order) -> RestingOrder:
    return RestingOrder(str(order.order_id), order.account, order.quantity, order.remaining, order.created_ms)
