"""Anything that traders, operators and restarts may do, beside plain books: what must hold at each step."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from roost.lanes.commands import (
    Amend,
    Cancel,
    Command,
    Method,
    New,
    Outcome,
    Reason,
    Side,
    State,
    decode_command,
    decode_outcome,
)
from roost.servers.orders.engine import Engine
from tests.unit.servers.orders.desk import SHARD, Desk, replay
from tests.unit.servers.orders.naive import NaiveBook, NaiveOrder

ACCOUNTS = ("ann", "bob", "cid")
SYMBOLS = ("ACME", "7203")

accounts = st.sampled_from(ACCOUNTS)
symbols = st.sampled_from(SYMBOLS)
prices = st.integers(97, 103)
quantities = st.integers(1, 20)
picks = st.integers(0, 10_000)


class Trader(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.books = {symbol: NaiveBook() for symbol in SYMBOLS}
        self.halted: set[str] = set()
        self.owners: dict[int, tuple[str, str]] = {}
        """Account and symbol of every order that was accepted."""
        self.moves = 0

    @initialize(entries=st.lists(st.tuples(accounts, symbols, prices, quantities), max_size=8))
    def some_orders(self, entries: list[tuple[str, str, int, int]]) -> None:
        for number, (account, symbol, price, quantity) in enumerate(entries):
            self.new(account, symbol, Side.BUY if number % 2 else Side.SELL, price, quantity, False)

    @rule(
        account=accounts,
        symbol=symbols,
        side=st.sampled_from(list(Side)),
        price=prices,
        quantity=quantities,
        immediate=st.booleans(),
    )
    def new(self, account: str, symbol: str, side: int, price: int, quantity: int, immediate: bool) -> None:
        outcome = self.desk.new(account, side, price, quantity, symbol=symbol, immediate=immediate)
        if symbol in self.halted:
            assert outcome.reason == Reason.HALTED
            return
        order = NaiveOrder(outcome.order_id, side, price, quantity, quantity)
        expected = self.books[symbol].add(order, immediate)
        self.owners[outcome.order_id] = (account, symbol)
        state = State.FILLED if not order.remaining else State.CANCELLED if immediate else State.OPEN
        assert outcome.state == state
        self.same_fills(outcome, order, expected)

    @precondition(lambda self: self.owners)
    @rule(account=accounts, pick=picks)
    def cancel(self, account: str, pick: int) -> None:
        order_id, symbol = self.some_order(pick)
        naive = self.books[symbol].find(order_id)
        outcome = self.desk.cancel(account, order_id)
        if account != self.owners[order_id][0]:
            assert outcome.reason == Reason.NOT_YOURS
        elif naive is None:
            assert outcome.reason == Reason.CLOSED
        else:
            assert outcome.state == State.CANCELLED
            self.books[symbol].cancel(order_id)

    @precondition(lambda self: self.owners)
    @rule(pick=picks, price=prices, quantity=quantities)
    def amend(self, pick: int, price: int, quantity: int) -> None:
        order_id, symbol = self.some_order(pick)
        naive = self.books[symbol].find(order_id)
        outcome = self.desk.amend(self.owners[order_id][0], order_id, price, quantity)
        if naive is None:
            assert outcome.reason == Reason.CLOSED
        elif quantity <= naive.quantity - naive.remaining:
            assert outcome.reason == Reason.BAD_QUANTITY
        elif symbol in self.halted:
            assert outcome.reason == Reason.HALTED
        else:
            expected = self.books[symbol].amend(naive, price, quantity)
            assert outcome.state == (State.OPEN if naive.remaining else State.FILLED)
            self.same_fills(outcome, naive, expected)

    @precondition(lambda self: self.traders_commands())
    @rule(pick=picks)
    def send_again(self, pick: int) -> None:
        commands = self.traders_commands()
        index, method, command = commands[pick % len(commands)]
        self.desk.run(method, command, self.desk.order_id())
        assert self.desk.results[-1] == (self.desk.results[index][0], None, None)

    @precondition(lambda self: self.traders_commands())
    @rule(pick=picks, symbol=symbols)
    def use_a_number_for_something_else(self, pick: int, symbol: str) -> None:
        commands = self.traders_commands()
        _, _, used = commands[pick % len(commands)]
        other = New(used.account, used.client_seq, 0, symbol, Side.BUY, 1_000, 1_000)
        assert self.desk.run(Method.NEW, other, self.desk.order_id()).reason == Reason.DUPLICATE

    @rule(symbol=symbols)
    def halt(self, symbol: str) -> None:
        self.desk.halt(symbol)
        self.halted.add(symbol)

    @rule(symbol=symbols)
    def resume(self, symbol: str) -> None:
        self.desk.resume(symbol)
        self.halted.discard(symbol)

    @rule(symbol=symbols)
    def leave_and_come_back(self, symbol: str) -> None:
        self.moves += 1
        book = self.desk.move_out(symbol, f"m{self.moves}", 9)
        assert self.desk.buy("ann", 100, 1, symbol).reason == Reason.MOVED
        self.desk.move_in(symbol, f"m{self.moves}", book)

    @rule()
    def snapshot(self) -> None:
        self.desk.collect()

    @rule()
    def restart(self) -> None:
        before = self.desk.engine.digest()
        self.desk.restart()
        assert self.desk.engine.digest() == before
        assert self.desk.engine.dirty() == {}

    @invariant()
    def books_are_those_of_the_plain_rules_and_not_crossed(self) -> None:
        for symbol, plain in self.books.items():
            book = self.desk.engine.book(symbol)
            bids = [(one.order_id, one.price, one.remaining) for one in book.bids] if book else []
            asks = [(one.order_id, one.price, one.remaining) for one in book.asks] if book else []
            assert (bids, asks) == (plain.side(Side.BUY), plain.side(Side.SELL))
            assert not bids or not asks or bids[0][1] < asks[0][1]

    @invariant()
    def an_order_is_in_one_place_and_known_to_its_account_alone(self) -> None:
        for order_id, (account, symbol) in self.owners.items():
            row = self.desk.engine.query(order_id, account)
            assert not isinstance(row, str)
            assert (row.state == State.OPEN) is (self.books[symbol].find(order_id) is not None)
            assert self.desk.engine.query(order_id, "mallory") == Reason.NOT_YOURS

    @invariant()
    def what_is_bought_is_sold(self) -> None:
        bought: dict[str, int] = dict.fromkeys(SYMBOLS, 0)
        told: dict[int, int] = {}
        for event in self.desk.events:
            bought[event.symbol] += event.quantity if event.side == Side.BUY else -event.quantity
            told[event.order_id] = told.get(event.order_id, 0) + event.quantity
        assert set(bought.values()) == {0}
        for order_id, (account, _) in self.owners.items():
            row = self.desk.engine.query(order_id, account)
            assert not isinstance(row, str)
            assert row.quantity - row.remaining == told.get(order_id, 0)

    @invariant()
    def events_of_an_account_have_no_gap(self) -> None:
        for account in ACCOUNTS:
            numbers = [event.number for event in self.desk.events if event.account == account]
            assert numbers == list(range(1, len(numbers) + 1))
            after, kept = self.desk.engine.events_after(account, 0, 10**9)
            assert after + len(kept) == len(numbers)

    @invariant()
    def a_number_gave_at_most_one_order(self) -> None:
        accepted = [
            (command.account, command.client_seq)
            for (_, _, command), outcome in zip(self.traders_commands(), self.first_outcomes(), strict=True)
            if isinstance(command, New) and outcome.state != State.REFUSED
        ]
        assert len(accepted) == len(set(accepted)) == len(self.owners)

    def teardown(self) -> None:
        again = Engine(SHARD)
        assert replay(again, self.desk.entries) == self.desk.results
        assert again.digest() == self.desk.engine.digest()

    def same_fills(self, outcome: Outcome, order: NaiveOrder, expected: list[tuple[int, int, int]]) -> None:
        assert (outcome.remaining, outcome.filled) == (order.remaining, order.quantity - order.remaining)
        events = [event for event in self.desk.events if event.seq == self.desk.seq]
        assert [(event.order_id, event.price, event.quantity) for event in events[::2]] == expected
        assert [event.order_id for event in events[1::2]] == [order.order_id] * len(expected)
        changed = sorted({maker for maker, _, _ in expected} | {order.order_id})
        assert sorted(row.order_id for row in self.desk.rows) == changed

    def some_order(self, pick: int) -> tuple[int, str]:
        order_id = sorted(self.owners)[pick % len(self.owners)]
        return order_id, self.owners[order_id][1]

    def traders_commands(self) -> list[tuple[int, int, New | Cancel | Amend]]:
        """Those that used a number first, with their index in the log."""
        found: dict[tuple[str, int], tuple[int, int, New | Cancel | Amend]] = {}
        for index, (_, _, batch) in enumerate(self.desk.entries):
            [(method, _, _, payload)] = batch.commands
            command: Command = decode_command(method, payload)
            if isinstance(command, New | Cancel | Amend):
                found.setdefault((command.account, command.client_seq), (index, method, command))
        return list(found.values())

    def first_outcomes(self) -> list[Outcome]:
        return [decode_outcome(self.desk.results[index][0]) for index, _, _ in self.traders_commands()]


TestTrader = Trader.TestCase
TestTrader.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
