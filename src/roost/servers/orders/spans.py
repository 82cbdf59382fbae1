"""The spans of an order server: a command of a trader whose step is sampled, from its frame to its answer.

Used in place of `Host.take` where there is a tracer, so that a process without one does nothing for it. A
command that is traced goes its way with `_Traced` as whom to answer, in its place among the others.
"""

from __future__ import annotations

from typing import cast

import msgspec

from roost.core.errors import RoostError
from roost.core.tracing import Attributes, Span, Tracer, sampled_context
from roost.lanes.commands import DECODERS, Method, State, decode_outcome
from roost.lanes.work import Caller
from roost.servers.orders.routes import Routes
from roost.wire.answer import Answer
from roost.wire.codes import Code
from roost.wire.connection import Connection, Taker
from roost.wire.frame import Frame


class TracedOrders:
    """`take`: what takes commands that are not traced, and executes those that are."""

    def __init__(self, tracer: Tracer, take: Taker, routes: Routes) -> None:
        self._tracer = tracer
        self._take = take
        self._routes = routes

    def take(self, peer: Connection, frames: list[Frame]) -> None:
        for frame in frames:
            if frame.flags:
                break
        else:  # nobody has said anything beside their commands
            self._take(peer, frames)
            return
        plain: list[Frame] = []
        for frame in frames:
            above = sampled_context(frame.traceparent)
            if not above:
                plain.append(frame)
                continue
            if plain:  # the order of frames stays
                self._take(peer, plain)
                plain = []
            self._take_traced(peer, frame, above)
        if plain:
            self._take(peer, plain)

    def _take_traced(self, peer: Connection, frame: Frame, above: str) -> None:
        name = f"order {Method(frame.method).name.lower()}"
        span = self._tracer.begin(name, above, **self._said_in(frame))
        caller = cast(Connection, _Traced(peer, span))  # who takes commands does nothing with it but answer
        self._take(caller, [msgspec.structs.replace(frame, traceparent=span.wire)])

    def _said_in(self, frame: Frame) -> Attributes:
        """Its symbol, and where that is if it is known here already; nothing of what is no symbol."""
        try:
            symbol = self._routes.spelled(DECODERS[frame.method](frame.payload).symbol)
        except (msgspec.MsgspecError, UnicodeDecodeError, RoostError):
            return {}
        route = self._routes.known.get(symbol)
        if route is None:
            return {"symbol": symbol}
        return {"symbol": symbol, "shard": route.shard.number, "lane": route.lane}


class _Traced:
    """The `Caller` of one command: its answer ends the span."""

    def __init__(self, peer: Caller, span: Span) -> None:
        self._peer = peer
        self._span = span

    def reply_later(self, request: int, answer: Answer) -> None:
        self._peer.reply_later(request, answer)
        if answer.code is Code.OK:  # of the server that it was sent on to
            self._end(answer.payload)
        else:
            self._span.end(outcome=_reason_of(answer))

    def deliver(self, request: int, payload: bytes) -> None:
        self._peer.deliver(request, payload)
        self._end(payload)

    def _end(self, payload: bytes) -> None:
        said = decode_outcome(payload)
        self._span.end(
            shard=said.shard, lane=said.lane, outcome=said.reason or State(said.state).name.lower()
        )


class _Refusal(msgspec.Struct, frozen=True):
    reason: str = ""


_decode_refusal = msgspec.msgpack.Decoder(_Refusal).decode


def _reason_of(answer: Answer) -> str:
    try:
        return _decode_refusal(answer.payload).reason or answer.code.name
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return answer.code.name
