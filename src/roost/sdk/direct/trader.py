"""`client.trader(account)`: commands of one account, in order for each symbol, each carried out at most once.

Commands are numbered by the account (`client_seq`). One whose answer is lost is sent again under its number,
to whoever owns its shard by then, and gets the answer of the first time. Commands of one symbol go one after
the other, each when the one before is answered; those of different symbols go at the same time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Self
from weakref import WeakValueDictionary

import msgspec

from roost.core.errors import InvalidInput, OutcomeUnknown
from roost.core.loops import Loops
from roost.lanes.commands import (
    SIDES,
    Amend,
    Cancel,
    Method,
    New,
    Query,
    Reason,
    Standing,
    State,
    check_account,
    decode_outcome,
    encode,
)
from roost.lanes.selector import normalise
from roost.sdk.direct.fills import Fills
from roost.sdk.direct.resending import NotTaken, Sending
from roost.sdk.direct.shard_owners import Owners
from roost.sdk.direct.trade_words import answered, refused, side_word, state_word
from roost.sdk.trade import Fill, FillGap, Order, OrderAccepted, OrderRefused, Receipt, Side
from roost.wire.client import Peer
from roost.wire.limits import Limits
from roost.wire.pool import Pool

log = logging.getLogger("roost.sdk.trading")

ROLE = "trader"
SERVERS = frozenset({"orders"})
MAX_REMEMBERED = 10_000
"""Orders whose symbol is remembered, so that a cancel by id alone goes the way of its symbol."""

NO_ANSWER = frozenset({Reason.UNKNOWN_ORDER, Reason.TOO_OLD})
"""What a shard says of a command whose answer it does not have, and never will."""

_standing = msgspec.msgpack.Decoder(Standing).decode

Answered = OrderAccepted | OrderRefused
Ordered = New | Cancel | Amend


class Trader:
    """One account. Use it as an async context manager, on one event loop, and one for an account at a time.

    `counts`: sent = accepted + refused + unknown + those under way; lost, how often an answer has proved that
    the log no longer has a command which was answered before.
    """

    def __init__(
        self,
        account: str,
        servers: Callable[[], Awaitable[list[str]]],
        *,
        secret: bytes,
        ssl: tls.SSLContext | None,
        limits: Limits,
        loops: Loops,
        timeout_s: float,
        cursor: Mapping[int, int],
        next_seq: int,
    ) -> None:
        check_account(account)
        self.account = account
        self.counts: Counter[str] = Counter()
        self.next_seq = next_seq or time.time_ns() // 1000
        """The number of the next command."""
        self._timeout_s = timeout_s
        self._open: dict[int, str | None] = {}
        """Numbers without an answer, the lowest first; of what is not under way any more, the symbol."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._symbols: dict[int, str] = {}
        self._newest: dict[int, Receipt] = {}
        """By shard, of what was answered."""
        self._dial = partial(Peer, secret=secret, role=ROLE, ssl=ssl, expects=SERVERS, limits=limits)
        self._peers = Pool(self._dialled)
        self._owners = Owners(servers, self._peers)
        self._sending = Sending(self._owners)
        self._fills = Fills(account, self._owners, loops, dict(cursor))

    async def __aenter__(self) -> Self:
        await self._owners.look_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; commands that were sent end with `OutcomeUnknown`, open orders stay open."""
        self._sending.close()
        await self._fills.close()
        await self._owners.close()
        await self._peers.close()

    # -- commands

    async def new(
        self, symbol: str, side: Side, *, price: int, quantity: int, immediate: bool = False
    ) -> Answered:
        """A limit order; `immediate`: what is not filled at once is cancelled. Price in ticks."""
        if side not in SIDES:
            raise InvalidInput(f"a side is buy or sell, not {side!r}")
        symbol = normalise(symbol)

        def made(number: int, acked: int) -> New:
            return New(self.account, number, acked, symbol, SIDES[side], price, quantity, immediate)

        answer = await self._command(Method.NEW, symbol, 0, made)
        if isinstance(answer, OrderAccepted) and answer.state == "open":
            self._remember(answer.order_id, symbol)
        return answer

    async def cancel(self, order_id: int, symbol: str = "") -> Answered:
        symbol = self._symbol_of(order_id, symbol)

        def made(number: int, acked: int) -> Cancel:
            return Cancel(self.account, number, acked, order_id, symbol)

        return await self._command(Method.CANCEL, symbol, order_id, made)

    async def amend(self, order_id: int, symbol: str = "", *, price: int, quantity: int) -> Answered:
        """`quantity` is that of the whole order, what is filled included."""
        symbol = self._symbol_of(order_id, symbol)

        def made(number: int, acked: int) -> Amend:
            return Amend(self.account, number, acked, order_id, symbol, price, quantity)

        return await self._command(Method.AMEND, symbol, order_id, made)

    # -- questions

    async def query(self, order_id: int, symbol: str = "") -> Order | OrderRefused:
        """The order as its last command left it."""
        symbol = self._symbol_of(order_id, symbol)
        found = await self._ask(Query(self.account, order_id, 0, symbol))
        if isinstance(found, OrderRefused):
            return found
        order = _standing(found)
        if order.reason == Reason.MOVED and order.symbol and not symbol:
            return await self.query(order_id, order.symbol)
        if order.state == State.REFUSED:
            return OrderRefused(order.reason, f"order {order_id}: {order.reason}", order_id=order_id)
        return Order(
            order.order_id,
            state_word(order.state),
            order.symbol,
            side_word(order.side),
            order.price,
            order.quantity,
            order.remaining,
            order.shard,
            order.seq,
        )

    async def answer_to(self, client_seq: int, symbol: str) -> Answered:
        """What a command was answered whose outcome is unknown; UNKNOWN_ORDER: it was not carried out."""
        symbol = normalise(symbol)
        found = await self._ask(Query(self.account, 0, client_seq, symbol))
        is_said = not isinstance(found, OrderRefused) or found.reason in NO_ANSWER
        if is_said and self._open.get(client_seq) in (symbol, ""):
            del self._open[client_seq]
        if isinstance(found, OrderRefused):
            return found
        return answered(decode_outcome(found), client_seq)

    # -- fills

    @property
    def cursor(self) -> dict[int, int]:
        """By shard the number of the last fill that `fills` gave. Keep it with what that fill changed."""
        return dict(self._fills.cursor)

    async def fills(self) -> AsyncIterator[Fill | FillGap]:
        """Each fill of the account after the cursor, once, until the trader is closed."""
        while (told := await self._fills.next()) is not None:
            yield told

    # -- how a command goes

    async def _command(
        self, method: Method, symbol: str, order_id: int, make: Callable[[int, int], Ordered]
    ) -> Answered:
        until = asyncio.get_running_loop().time() + self._timeout_s
        async with self._turn_of(symbol or f"#{order_id}"):
            number = self.next_seq
            self._open[number] = None
            try:
                payload = _encoded(make(number, next(iter(self._open))))
            except BaseException:
                del self._open[number]
                raise
            self.next_seq += 1
            return await self._carried_out(method, payload, number, symbol, order_id, until)

    async def _carried_out(
        self, method: Method, payload: bytes, number: int, symbol: str, order_id: int, until: float
    ) -> Answered:
        self.counts["sent"] += 1
        try:
            found = await self._sending.send(method, payload, self._shard_of(symbol, order_id), until)
        except OutcomeUnknown as error:
            self.counts["unknown"] += 1
            raise OutcomeUnknown(f"command {number}: {error.message}") from None
        finally:
            self._open[number] = symbol
        answer = (
            refused(found.said, number, order_id)
            if isinstance(found, NotTaken)
            else answered(decode_outcome(found), number)
        )
        del self._open[number]
        if answer.receipt is not None:
            self._compare(answer.receipt)
        self.counts["accepted" if isinstance(answer, OrderAccepted) else "refused"] += 1
        return answer

    async def _ask(self, query: Query) -> bytes | OrderRefused:
        until = asyncio.get_running_loop().time() + self._timeout_s
        where = self._shard_of(query.symbol, query.order_id)
        found = await self._sending.send(Method.QUERY, _encoded(query), where, until, has_effect=False)
        return refused(found.said, query.client_seq, query.order_id) if isinstance(found, NotTaken) else found

    def _compare(self, receipt: Receipt) -> None:
        """Numbers of a shard rise from owner to owner; if they do not, the log has lost some in between."""
        kept = self._newest.setdefault(receipt.shard, receipt)
        if (receipt.epoch, receipt.seq) <= (kept.epoch, kept.seq):
            return
        if receipt.epoch > kept.epoch and receipt.seq <= kept.seq:
            self.counts["lost"] += 1
            where = {"shard": receipt.shard, "epoch": kept.epoch, "first": receipt.seq, "last": kept.seq}
            log.warning("the log has lost commands that were answered", extra=where)
        self._newest[receipt.shard] = receipt

    def _shard_of(self, symbol: str, order_id: int) -> Callable[[], int | None]:
        return lambda: self._owners.shard_of(symbol, order_id)

    def _turn_of(self, key: str) -> asyncio.Lock:
        """Whose turn it is among the commands of a symbol; first come, first served."""
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = asyncio.Lock()
        return turn

    def _symbol_of(self, order_id: int, symbol: str) -> str:
        return normalise(symbol) if symbol else self._symbols.get(order_id, "")

    def _remember(self, order_id: int, symbol: str) -> None:
        if len(self._symbols) >= MAX_REMEMBERED:
            del self._symbols[next(iter(self._symbols))]
        self._symbols[order_id] = symbol

    def _dialled(self, host: str, port: int) -> Peer:
        address = f"{host}:{port}"
        return self._dial(
            host, port, on_push=self._fills.pushed, on_lost=lambda why: self._fills.lost(address)
        )


def _encoded(command: Ordered | Query) -> bytes:
    try:
        return encode(command)
    except (OverflowError, TypeError) as error:
        raise InvalidInput(f"the command cannot be sent: {error}") from None
