"""One user who trades, on this server: the ledger, what of it the row holds, and what is yet to be told.

A command leaves when the row holds it, not before: so a home that dies has either sent nothing, or the next
one finds the command in the row and sends it again, under the same number and with the same content.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

from roost.core.errors import InvalidInput
from roost.lanes.commands import MAX_ACCOUNT_CHARS, SIDES, Amend, Cancel, New
from roost.lanes.fill_cursor import FillCursor
from roost.lanes.selector import normalise
from roost.sdk.trade import Fill, FillGap, OrderAccepted, OrderRefused
from roost.sdk.trade import Side as SideWord
from roost.servers.entity.ledger import Ledger, Ordered

MAX_NEWS = 1024
"""Fills that wait for a turn of their user; those beyond are asked for again."""

News = Fill | FillGap | OrderAccepted | OrderRefused


def account_of(type_: str, user: str) -> str:
    """The account of a user at the order servers."""
    account = f"{type_}:{user}"
    if len(account) > MAX_ACCOUNT_CHARS:
        raise InvalidInput(f"{account!r} is too long for an account: at most {MAX_ACCOUNT_CHARS} characters")
    return account


class Trading:
    """`send` gets each command that the row holds; `ring` is called when there is news for the user."""

    def __init__(
        self,
        account: str,
        ledger: Ledger,
        *,
        send: Callable[[Trading, Ordered], None],
        ring: Callable[[], None],
    ) -> None:
        self.account = account
        self.ledger = ledger
        self.loaded = ledger.next_number
        """Commands below it may have been sent by the home before."""
        self.acked = ledger.floor
        """The row knows the answers to all commands below it."""
        self.followed: dict[str, frozenset[int]] = {}
        """By address of an order server, the shards of which it pushes us the fills."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.news: deque[News] = deque()
        self.is_rung = False
        """Whether a turn for the news is in the user's line."""
        self._send = send
        self._ring = ring
        self._sent = 1
        """The row holds all commands below it."""
        self.heard = FillCursor(ledger.cursor)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # -- commands

    @property
    def has_unsent(self) -> bool:
        return self._sent < self.ledger.next_number

    def mark(self) -> tuple[int, int]:
        """What a write of the present state will have put into the row."""
        return self.ledger.next_number, self.ledger.floor

    def saved(self, next_number: int, floor: int) -> None:
        """The row has what `mark` said: what is new in it may leave."""
        self.acked = max(self.acked, floor)
        sent, self._sent = self._sent, max(self._sent, next_number)
        for number, command in list(self.ledger.open.items()):
            if sent <= number < next_number:
                self._send(self, command)

    def turn_of(self, symbol: str) -> asyncio.Lock:
        """Commands of a symbol go one after the other; first come, first served."""
        turn = self._turns.get(symbol)
        if turn is None:
            turn = self._turns[symbol] = asyncio.Lock()
        return turn

    # -- fills

    @property
    def has_room(self) -> bool:
        return len(self.news) < MAX_NEWS

    # -- news

    def tell(self, news: News) -> None:
        self.news.append(news)
        self.ring()

    def ring(self) -> None:
        """Have a turn of the user for what is to be told, if there is none yet."""
        if self.news and not self.is_rung:
            self.is_rung = True
            self._ring()

    def taken(self, news: News) -> None:
        """The class has heard it, in the turn that is under way: both are in the next write."""
        if isinstance(news, Fill):
            self.ledger.cursor[news.shard] = news.number
        elif isinstance(news, FillGap):
            self.ledger.cursor[news.shard] = news.until
        else:
            self.ledger.settle(news.client_seq)


class Desk:
    """The `Orders` of one user. `trading` gives what there is of the user's trade, and begins it."""

    def __init__(self, trading: Callable[[], Trading], changed: Callable[[], None]) -> None:
        self._trading = trading
        self._changed = changed

    def new(self, symbol: str, side: SideWord, *, price: int, quantity: int, immediate: bool = False) -> int:
        if side not in SIDES:
            raise InvalidInput(f"a side is buy or sell, not {side!r}")
        symbol = normalise(symbol)
        _check(price=price, quantity=quantity)
        account = self._trading().account
        return self._add(
            lambda number: New(account, number, 0, symbol, SIDES[side], price, quantity, bool(immediate))
        )

    def cancel(self, order_id: int, symbol: str) -> int:
        symbol = normalise(symbol)
        _check(order_id=order_id)
        account = self._trading().account
        return self._add(lambda number: Cancel(account, number, 0, order_id, symbol))

    def amend(self, order_id: int, symbol: str, *, price: int, quantity: int) -> int:
        symbol = normalise(symbol)
        _check(order_id=order_id, price=price, quantity=quantity)
        account = self._trading().account
        return self._add(lambda number: Amend(account, number, 0, order_id, symbol, price, quantity))

    def _add(self, make: Callable[[int], Ordered]) -> int:
        number = self._trading().ledger.add(make)
        self._changed()
        return number


def _check(**numbers: object) -> None:
    for name, number in numbers.items():
        if not isinstance(number, int) or not -(2**63) <= number < 2**63:
            raise InvalidInput(f"{name} is a whole number of 64 bits, not {number!r}")
