"""Users who trade: their orders leave with what the row holds, answers and fills come as turns of theirs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from roost.core.errors import Unavailable
from roost.sdk.trade import Fill, FillGap
from roost.servers.entity.ledger import Ledger, Ordered
from roost.servers.entity.market import Market
from roost.servers.entity.session import Session
from roost.servers.entity.trading import Desk, News, Trading, account_of
from roost.servers.entity.visits import HostTurn

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

NEWS_IN_A_TURN = 64
"""Then messages of the user have their turn."""


class Dealing:
    """`market` None: this server has no way to order servers, and nobody trades."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.market: Market | None = None

    def desk(self, session: Session) -> Desk:
        """What the class gets as `self.orders`."""
        if self.market is None:
            raise Unavailable("this server has no way to order servers")
        if session.has_ended:
            raise Unavailable("the user is not on this server any more")
        return Desk(partial(self._trading_of, session), partial(self._ordered, session))

    def loaded(self, session: Session, ledger: Ledger) -> None:
        """The row of this user has a ledger."""
        account = account_of(self._host.type, session.user)
        session.trading = Trading(account, ledger, send=self._send, ring=partial(self._ring, session))

    def opened(self, session: Session) -> None:
        """The user is ours: take up what the home before left open, and follow the fills."""
        if (trading := session.trading) is not None and self.market is not None:
            self.market.enter(trading)
            trading.saved(trading.loaded, trading.acked)

    def ended(self, session: Session) -> None:
        if session.trading is not None and self.market is not None:
            self.market.leave(session.trading)

    def _trading_of(self, session: Session) -> Trading:
        if session.trading is None:
            self.loaded(session, Ledger())
            if session.is_open:
                self.opened(session)
        assert session.trading is not None
        return session.trading

    def _ordered(self, session: Session) -> None:
        """A command is in the ledger: have that written as soon as the turn is over."""
        if session.is_open:
            self._host.changed(session)
        self._host.flusher.hasten(session)

    def _send(self, trading: Trading, command: Ordered) -> None:
        if self.market is not None:
            self.market.send(trading, command)

    def _ring(self, session: Session) -> None:
        turn = NewsTurn(self._host, session)
        if not session.line.add(turn):
            session.line.add_first(turn)


class NewsTurn(HostTurn):
    """What the order servers said. What the class makes of it, and that it was told, is one write."""

    async def run(self) -> None:
        session, trading = self.session, self.session.trading
        assert trading is not None
        trading.is_rung = False
        if not session.is_open or not await self.is_ours():
            return  # the market rings again
        for _ in range(min(NEWS_IN_A_TURN, len(trading.news))):
            news = trading.news.popleft()
            await self._tell(news)
            trading.taken(news)
            if not session.is_open:
                return
        trading.ring()

    async def _tell(self, news: News) -> None:
        entity = self.session.entity
        match news:
            case Fill():
                self.host.counts["fills"] += 1
                await self.hook("on_fill", entity.on_fill(news))
            case FillGap():
                await self.hook("on_fills_missed", entity.on_fills_missed(news))
            case _:
                await self.hook("on_order", entity.on_order(news))
