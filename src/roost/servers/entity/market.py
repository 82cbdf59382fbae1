"""The order servers, for all users of this server over one set of connections.

Commands go to the owner of their shard until they have their answer. Fills are followed from the cursor of
each user; what an owner that died, a lost connection or a full line kept from us is asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from roost.app import Platform
from roost.core.errors import OutcomeUnknown, RoostError
from roost.lanes.commands import (
    SERVICE,
    Method,
    Unfollow,
    decode_event,
    decode_outcome,
    encode,
)
from roost.lanes.fill_cursor import decode_followed
from roost.sdk.trade import FillGap, OrderAccepted, OrderRefused
from roost.servers.entity.ledger import Ordered, method_of
from roost.servers.entity.trading import Trading
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.frame import Frame
from roost.wire.pool import Pool
from roost.wire.trust import client_tls

if TYPE_CHECKING:
    from roost.sdk.direct.resending import NotTaken

log = logging.getLogger("roost.entity")

TYPE = "orders"
LOOK_S = 1.0
"""Between two looks at who owns what: a new owner's fills are late by so much at most."""
FOLLOW_MS = 2000
FOLLOWS = 64
"""At once."""
SEND_S = 30.0
"""How long a command may look for an owner before the user is told that it was not carried out."""
AGAIN_S = 0.5
WAIT_S = 0.3
"""How long a command waits for a connection that is away before the owner is looked up again."""
NO_SHARDS: Final[frozenset[int]] = frozenset()
"""Of a server that owns none now: when it does again it is asked anew, and it still hears of who leaves."""


class Market:
    """`servers` gives the addresses of all order servers; `dial` makes a peer, with what it shall call."""

    def __init__(self, servers: Callable[[], Awaitable[list[str]]], dial: Callable[..., Peer]) -> None:
        from roost.sdk.direct import trade_words
        from roost.sdk.direct.resending import Sending
        from roost.sdk.direct.shard_owners import Owners

        self.counts: Counter[str] = Counter()
        self._words = trade_words
        self._dial = dial
        self._peers = Pool(self._dialled)
        self._owners = Owners(servers, self._peers)
        self._sending = Sending(self._owners)
        self._by_account: dict[str, Trading] = {}
        self._look = asyncio.Event()

    def enter(self, trading: Trading) -> None:
        """Follow the fills of a user who is open here."""
        self._by_account[trading.account] = trading
        self._look.set()

    def leave(self, trading: Trading) -> None:
        """The user is not here any more: what was sent may be carried out, and the next home asks."""
        if self._by_account.get(trading.account) is trading:
            del self._by_account[trading.account]
            for address in trading.followed:
                self._unfollow(address, trading.account)
        for task in trading.tasks:
            task.cancel()

    def send(self, trading: Trading, command: Ordered) -> None:
        """Carry a command out; its answer is told to the user."""
        task = asyncio.get_running_loop().create_task(self._carry_out(trading, command))
        trading.tasks.add(task)
        task.add_done_callback(trading.tasks.discard)

    async def close(self) -> None:
        for trading in list(self._by_account.values()):
            trading.followed.clear()  # the connections end
            self.leave(trading)
        await self._owners.close()
        await self._peers.close()

    # -- commands

    async def _carry_out(self, trading: Trading, command: Ordered) -> None:
        async with trading.turn_of(command.symbol):
            answer = await self._answer(trading, command)
        self.counts["accepted" if isinstance(answer, OrderAccepted) else "refused"] += 1
        trading.tell(answer)

    async def _answer(self, trading: Trading, command: Ordered) -> OrderAccepted | OrderRefused:
        """The shard's; or a refusal, where it is certain that no home has ever had it carried out."""
        may_be_done = command.client_seq < trading.loaded
        found = await self._ask(trading, command)
        while found is None or (may_be_done and _is_no_word_of_the_shard(found)):
            may_be_done = True
            self.counts["asked_again"] += 1
            await asyncio.sleep(AGAIN_S)
            found = await self._ask(trading, command)
        if isinstance(found, bytes):
            return self._words.answered(decode_outcome(found), command.client_seq)
        return self._words.refused(found.said, command.client_seq, getattr(command, "order_id", 0))

    async def _ask(self, trading: Trading, command: Ordered) -> bytes | NotTaken | None:
        """None: nobody knows whether it was carried out."""
        payload = encode(msgspec.structs.replace(command, acked=trading.acked))
        shard_of = partial(self._owners.shard_of, command.symbol, getattr(command, "order_id", 0))
        until = asyncio.get_running_loop().time() + SEND_S
        try:
            return await self._sending.send(method_of(command), payload, shard_of, until)
        except OutcomeUnknown:
            return None

    # -- fills

    async def step(self) -> None:
        """Follow whoever is not followed where their fills come from; then wait for a reason to look."""
        if self._by_account:
            await self._follow_all()  # where we know: a server that is away must not hold up the others
            await self._owners.look_up()
            await self._follow_all()
            for trading in list(self._by_account.values()):
                trading.ring()  # whose turn came at a bad time
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if self._by_account else None):
                await self._look.wait()
        self._look.clear()

    async def _follow_all(self) -> None:
        owners = self._owners.shards_by_address()
        for trading in self._by_account.values():
            for address in trading.followed.keys() - owners:
                trading.followed[address] = NO_SHARDS
        await asyncio.gather(*(self._follow_at(address, shards) for address, shards in owners.items()))

    async def _follow_at(self, address: str, shards: frozenset[int]) -> None:
        everybody = self._by_account.values()
        missing = [one for one in everybody if one.followed.get(address) != shards and one.has_room]
        for at in range(0, len(missing), FOLLOWS):
            some = missing[at : at + FOLLOWS]
            await asyncio.gather(*(self._follow(address, trading) for trading in some))

    async def _follow(self, address: str, trading: Trading) -> None:
        """What was missed comes as pushes before the answer."""
        heard = trading.heard
        payload, missed = heard.follow(trading.account), heard.missed
        try:
            peer = self._owners.peer_of(address)
            answer = await peer.call(SERVICE, Method.FOLLOW, payload, budget_ms=FOLLOW_MS)
        except RoostError as error:
            log.info("an order server cannot be followed", extra={"reason": error.message})
            return
        if answer.code is not Code.OK:
            log.warning("an order server lets nobody follow", extra={"reason": answer.message})
            return
        if trading.account not in self._by_account:  # the user has left meanwhile
            self._unfollow(address, trading.account)
            return
        shards, gaps = decode_followed(answer.payload)
        for shard, after in gaps.items():
            self.counts["gaps"] += 1
            trading.tell(FillGap(shard, heard.skip(shard, after), after))
        if gaps:
            self._look.set()  # for what is kept after them
        elif heard.missed == missed:
            trading.followed[address] = frozenset(shards)

    def _unfollow(self, address: str, account: str) -> None:
        """One that does not hear of it goes on: its pushes are for nobody here."""
        self._owners.peer_of(address).send(
            SERVICE, Method.UNFOLLOW, encode(Unfollow(account)), done=_ignore, budget_ms=FOLLOW_MS
        )

    def _pushed(self, address: str, frame: Frame) -> None:
        if frame.service != SERVICE or frame.method != Method.FOLLOW:
            return
        event = decode_event(frame.payload)
        trading = self._by_account.get(event.account)
        if trading is None:
            return
        is_next = trading.heard.takes(event, trading.has_room)
        if is_next:
            trading.tell(self._words.fill_of(event))
        elif is_next is None:
            trading.followed.pop(address, None)
            self._look.set()

    def _lost(self, address: str) -> None:
        for trading in self._by_account.values():
            trading.followed.pop(address, None)
        self._look.set()

    def _dialled(self, host: str, port: int) -> Peer:
        address = f"{host}:{port}"
        return self._dial(
            host, port, on_push=partial(self._pushed, address), on_lost=lambda why: self._lost(address)
        )


def open_market(platform: Platform, secret: bytes, version: str, group: str) -> Market:
    """The order servers that discovery shows; nobody looks before a user trades."""
    settings = platform.settings
    dial = partial(
        Peer,
        secret=secret,
        role="entity",
        version=version,
        ssl=client_tls(settings.wire.tls_ca),
        expects=frozenset({TYPE}),
        limits=replace(settings.wire.limits(), wait_s=WAIT_S),
    )

    from roost.sdk.direct.trade_words import address_of

    async def servers() -> list[str]:
        found = await platform.discovery.discover(TYPE, group)
        return [*filter(None, map(address_of, found.instances))]

    return Market(servers, dial)


def _is_no_word_of_the_shard(found: bytes | NotTaken) -> bool:
    """Whether it says nothing of an earlier attempt: it came from a queue, or from nobody."""
    return not isinstance(found, bytes) and found.said.reason != "BAD_REQUEST"


def _ignore(_: object) -> None:
    """Whatever was answered."""
