"""What an order server answers beside commands: queries, followers of events, places, operators."""

from __future__ import annotations

from functools import partial
from typing import cast

import msgspec

from roost.core.errors import InvalidId, InvalidInput, RoostError
from roost.db.orders import LOST, OrderRow
from roost.lanes.commands import (
    DECODERS,
    SERVICE,
    Follow,
    Halt,
    Method,
    MoveIn,
    Places,
    Query,
    Reason,
    Standing,
    State,
    Unfollow,
    encode,
)
from roost.lanes.ids import LANES
from roost.lanes.owner import Ownership
from roost.lanes.placement import Place
from roost.lanes.selector import Spot, normalise
from roost.lanes.shard import Shard
from roost.lanes.work import refused
from roost.servers.orders.engine import Engine
from roost.servers.orders.host import Host
from roost.servers.orders.order_rows import OrderRows
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.server import Call, WireServer

OPERATORS = frozenset({"gateway", "orders"})
"""Roles whose connections may halt and resume symbols."""

_decode_move = msgspec.msgpack.Decoder(tuple[int, int, bytes]).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)


class Reading:
    """Answers only what is in the log: whatever is still on its way is waited for.

    A shard keeps the orders that were closed last; of those before them `rows` has what they came to.
    """

    def __init__(self, host: Host, ownership: Ownership, address: str, rows: OrderRows) -> None:
        self._host = host
        self._ownership = ownership
        self._address = address
        self._rows = rows

    def serve(self, server: WireServer) -> None:
        server.register(SERVICE, Method.QUERY, self.query)
        server.register(SERVICE, Method.FOLLOW, self.follow)
        server.register(SERVICE, Method.UNFOLLOW, self.unfollow)
        server.register(SERVICE, Method.PLACES, self.places)
        server.register(SERVICE, Method.HALT, self.halt)
        server.register(SERVICE, Method.RESUME, self.halt)
        server.register(SERVICE, Method.MOVE_IN, self.move_in)

    def query(self, call: Call) -> Answer | None:
        try:
            asked: Query = DECODERS[Method.QUERY](call.payload)
        except _UNREADABLE as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        shard = self._shard_of(asked)
        if isinstance(shard, Answer):
            return shard
        shard.commits.read(partial(self._answer, call, shard, asked))
        return None

    def follow(self, call: Call) -> Answer | None:
        """Every event after the cursor of each shard that this server owns, then those that happen.

        Of a shard that does not have the next one none is sent, but the number after which it has them: the
        follower asks again from there, and knows what it has missed. One whose lease is over is passed over:
        its next owner may have told of more.
        """
        try:
            asked: Follow = DECODERS[Method.FOLLOW](call.payload)
        except _UNREADABLE as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        gaps: dict[int, int] = {}
        held = self._held()
        for number in held:
            shard = self._host.shards[number]
            engine, seen = cast(Engine, shard.machine), asked.cursor.get(number, 0)
            after, missed = engine.events_after(asked.account, seen, shard.commits.seq)
            if after != seen:
                gaps[number] = after
                continue
            for event in missed:
                call.peer.push(SERVICE, int(Method.FOLLOW), event)
        self._host.sessions.follow(asked.account, call.peer)
        return Answer(encode((held, gaps)))

    def unfollow(self, call: Call) -> Answer:
        """No more events of this account over this connection; what is on its way may still come."""
        try:
            asked: Unfollow = DECODERS[Method.UNFOLLOW](call.payload)
        except _UNREADABLE as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        self._host.sessions.unfollow(asked.account, call.peer)
        return Answer(encode(()))

    def places(self, call: Call) -> Answer:
        table = self._host.dispatch.table
        owners = {number: held.address for number, held in self._ownership.owners.items()}
        owners |= dict.fromkeys(self._held(), self._address)
        return Answer(encode(Places(table.version, table.selector, dict(table.pins), owners)))

    def halt(self, call: Call) -> Answer | None:
        """An operator's HALT or RESUME: numbered and logged like any command."""
        if call.peer.peer_role not in OPERATORS:
            return refusal(Code.UNAUTHENTICATED, "only operators halt and resume symbols")
        try:
            asked: Halt = DECODERS[call.method](call.payload)
            symbol = normalise(asked.symbol)
        except _UNREADABLE as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        except (InvalidInput, InvalidId) as error:
            return refusal(Code.BAD_REQUEST, error.message, reason="BAD_REQUEST")
        return self._host.command(Method(call.method), Halt(symbol, asked.why), call.reply)

    def move_in(self, call: Call) -> Answer | None:
        """A symbol that comes from a shard of another order server."""
        if call.peer.peer_role != "orders":
            return refusal(Code.UNAUTHENTICATED, "only order servers move symbols")
        try:
            shard, lane, payload = _decode_move(call.payload)
            coming: MoveIn = DECODERS[Method.MOVE_IN](payload)
        except _UNREADABLE as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        if not 0 <= lane < LANES:
            return refusal(Code.BAD_REQUEST, f"a shard has {LANES} lanes", reason="BAD_REQUEST")
        return self._host.command(Method.MOVE_IN, coming, call.reply, Spot(shard, lane))

    def _held(self) -> list[int]:
        """The shards that are served here and can be nobody else's."""
        return [number for number in sorted(self._host.shards) if self._ownership.holds(number)]

    def _shard_of(self, asked: Query) -> Shard | Answer:
        if asked.symbol:
            try:
                place = self._host.dispatch.place(normalise(asked.symbol))
            except (InvalidInput, InvalidId) as error:
                return refusal(Code.BAD_REQUEST, error.message, reason="BAD_REQUEST")
            if not isinstance(place, Place):
                return refused("MOVING")
            number: int | None = place.shard
        else:
            number = self._host.shard_of(asked.order_id)
        if number is None:
            return refused("UNKNOWN_ORDER")
        shard = self._host.shards.get(number)
        if shard is None or not self._ownership.holds(number):
            return refused("NOT_OWNER", shard=number, owner=self._ownership.address_of(number))
        return shard

    def _answer(self, call: Call, shard: Shard, asked: Query) -> None:
        """What was waited for may be that the shard is another's: then its state here is nobody's."""
        if not shard.serves or not self._ownership.holds(shard.number):
            owner = self._ownership.address_of(shard.number)
            call.reply(refused("NOT_OWNER", shard=shard.number, owner=owner))
        elif asked.client_seq:
            call.reply(_answer_to(shard, asked))
        else:
            self._tell(call, shard, asked)

    def _tell(self, call: Call, shard: Shard, asked: Query) -> None:
        engine = cast(Engine, shard.machine)
        row = engine.query(asked.order_id, asked.account)
        if row == Reason.UNKNOWN_ORDER:
            self._rows.look_up(asked.order_id, partial(self._tell_of_row, call, shard, asked))
        elif isinstance(row, str):
            symbol = engine.symbol_of(asked.order_id) if row == Reason.MOVED else ""
            call.reply(_nothing(shard, asked, row, symbol))
        else:
            call.reply(_standing(row))

    def _tell_of_row(self, call: Call, shard: Shard, asked: Query, row: OrderRow | RoostError | None) -> None:
        """Of an order that the shard does not have: only what it came to, for what is open is in a book.

        One whose symbol has moved since is asked for where it is: of that shard a newer row may wait there.
        """
        if isinstance(row, RoostError):
            call.reply(refused("QUEUE_FULL", said=f"the order cannot be looked up: {row.message}"))
        elif row is None or row.state == LOST:
            call.reply(_nothing(shard, asked, Reason.UNKNOWN_ORDER))
        elif row.account != asked.account:
            call.reply(_nothing(shard, asked, Reason.NOT_YOURS))
        elif not asked.symbol and self._is_elsewhere(row.symbol, shard):
            call.reply(_nothing(shard, asked, Reason.MOVED, row.symbol))
        elif row.state == State.OPEN:
            call.reply(_nothing(shard, asked, Reason.UNKNOWN_ORDER))
        else:
            call.reply(_standing(row))

    def _is_elsewhere(self, symbol: str, shard: Shard) -> bool:
        place = self._host.dispatch.place(symbol)
        return isinstance(place, Place) and place.shard != shard.number


def _answer_to(shard: Shard, asked: Query) -> Answer:
    engine = cast(Engine, shard.machine)
    answer = engine.answer_to(asked.account, asked.client_seq)
    if answer is not None:
        return Answer(answer)
    is_too_old = engine.is_too_old(asked.account, asked.client_seq)
    return refused("TOO_OLD" if is_too_old else "UNKNOWN_ORDER")


def _standing(row: OrderRow) -> Answer:
    said = (row.order_id, row.state, row.symbol, row.side, row.price, row.quantity, row.remaining)
    return Answer(encode(Standing(*said, "", row.shard, row.seq)))


def _nothing(shard: Shard, asked: Query, reason: str, symbol: str = "") -> Answer:
    refused_state, where = int(State.REFUSED), asked.symbol or symbol
    said = (asked.order_id, refused_state, where, 0, 0, 0, 0, reason, shard.number, shard.commits.seq)
    return Answer(encode(Standing(*said)))
