"""An engine under test, with the log of what it was asked and all that it said."""

from __future__ import annotations

from collections.abc import Iterable

from roost.db.orders import OrderRow
from roost.lanes.commands import (
    Amend,
    Batch,
    Cancel,
    Command,
    Event,
    Halt,
    Method,
    MoveIn,
    MoveOut,
    New,
    Outcome,
    Side,
    Turn,
    decode_command,
    decode_event,
    decode_outcome,
    encode,
)
from roost.servers.orders.engine import Engine
from roost.servers.orders.moving import decode_moved
from roost.servers.orders.replay import Entry
from roost.servers.orders.trading import Result

SHARD = 3
EPOCH = 1_790_000_000_000_000
LANE = 7
FIRST_ID = 380_104_982_312_345_600


class Clients:
    """What is counted across shards: each account's commands, and orders."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next_id = FIRST_ID

    def number(self, account: str) -> int:
        """The account's next."""
        self._numbers[account] = self._numbers.get(account, 0) + 1
        return self._numbers[account]

    def order_id(self) -> int:
        self._next_id += 1
        return self._next_id


class Desk:
    def __init__(self, shard: int = SHARD, clients: Clients | None = None) -> None:
        self.engine = Engine(shard)
        self.clients = clients or Clients()
        self.number = self.clients.number
        self.order_id = self.clients.order_id
        self.entries: list[Entry] = []
        self.results: list[Result] = []
        self.events: list[Event] = []
        self.rows: list[OrderRow] = []
        """Of the last command."""
        self.parts: dict[str, bytes] = {}

    @property
    def seq(self) -> int:
        return len(self.results)

    def run(self, method: int, command: Command, order_id: int = 0) -> Outcome:
        payload = command if isinstance(command, bytes) else encode(command)
        seq = self.seq + 1
        entry = (EPOCH, seq, Batch(1_000 + seq, 1, [(method, LANE, order_id, payload)]))
        result = replay(self.engine, [entry])[0]
        self.entries.append(entry)
        self.results.append(result)
        self.events += [decode_event(event) for _, event in result[1] or ()]
        self.rows = result[2] or []
        return decode_outcome(result[0])

    def new(
        self,
        account: str,
        side: int,
        price: int,
        quantity: int,
        *,
        symbol: str = "ACME",
        immediate: bool = False,
    ) -> Outcome:
        command = New(account, self.number(account), 0, symbol, side, price, quantity, immediate)
        return self.run(Method.NEW, command, self.order_id())

    def buy(self, account: str, price: int, quantity: int, symbol: str = "ACME") -> Outcome:
        return self.new(account, Side.BUY, price, quantity, symbol=symbol)

    def sell(self, account: str, price: int, quantity: int, symbol: str = "ACME") -> Outcome:
        return self.new(account, Side.SELL, price, quantity, symbol=symbol)

    def cancel(self, account: str, order_id: int, symbol: str = "") -> Outcome:
        return self.run(Method.CANCEL, Cancel(account, self.number(account), 0, order_id, symbol))

    def amend(self, account: str, order_id: int, price: int, quantity: int) -> Outcome:
        return self.run(Method.AMEND, Amend(account, self.number(account), 0, order_id, "", price, quantity))

    def halt(self, symbol: str) -> Outcome:
        return self.run(Method.HALT, Halt(symbol, "news"))

    def resume(self, symbol: str) -> Outcome:
        return self.run(Method.RESUME, Halt(symbol))

    def move_out(self, symbol: str, move_id: str, shard: int, lane: int = 1, *, most_bytes: int = 0) -> bytes:
        self.run(Method.MOVE_OUT, MoveOut(symbol, move_id, shard, lane, most_bytes))
        return decode_moved(self.results[-1][0]).book

    def move_in(self, symbol: str, move_id: str, book: bytes) -> Outcome:
        return self.run(Method.MOVE_IN, MoveIn(symbol, move_id, book))

    def collect(self) -> None:
        """As a snapshot does: the last of each part."""
        self.parts |= self.engine.dirty()

    def restart(self) -> None:
        """Go on with an engine made of the parts that were collected."""
        self.collect()
        restored = Engine(self.engine.shard)
        restored.restore(self.parts)
        self.engine = restored


def replay(engine: Engine, entries: Iterable[Entry]) -> list[Result]:
    results = []
    for epoch, first_seq, batch in entries:
        turn = Turn(engine.shard, epoch, batch.at_ms, batch.durability)
        for seq, (method, lane, order_id, payload) in enumerate(batch.commands, first_seq):
            results.append(engine.apply(turn, seq, method, lane, order_id, decode_command(method, payload)))
    return results


def ids_in(desk: Desk, symbol: str = "ACME") -> tuple[list[int], list[int]]:
    """Bids and asks in the order in which they are served."""
    book = desk.engine.book(symbol)
    if book is None:
        return [], []
    return [order.order_id for order in book.bids], [order.order_id for order in book.asks]
