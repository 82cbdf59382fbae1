"""The calls of operators to the owners of shards, in the role of a gateway, and what a refusal means."""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext
from typing import Protocol

import msgspec

from roost.api.orders import LogCut, ShardUnowned, SymbolMoving, UnknownOrder
from roost.core.errors import Internal, InvalidInput, OutcomeUnknown, RoostError, Unavailable
from roost.lanes.commands import SERVICE
from roost.version import __version__
from roost.wire.answer import Answer
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.limits import DEFAULTS, Limits
from roost.wire.pool import Pool

CALL_MS = 5000
REPLAY_MS = 30_000
ROLE, ORDERS = "gateway", "orders"


class Owners(Protocol):
    """Order servers. `NotSent`, `OutcomeUnknown`: the answer was not heard; whatever is refused is raised."""

    async def call(self, address: str, method: int, payload: bytes, budget_ms: int = CALL_MS) -> bytes: ...

    async def close(self) -> None: ...


class WireOwners:
    """Over the wire, with one connection to each server."""

    def __init__(
        self,
        secret: Callable[[], bytes],
        *,
        tls: Callable[[], SSLContext | None] = lambda: None,
        limits: Limits = DEFAULTS,
    ) -> None:
        """`secret` and `tls` are asked for when the first server is called."""
        self._secret = secret
        self._tls = tls
        self._limits = limits
        self._pool = Pool(self._dial)

    async def call(self, address: str, method: int, payload: bytes, budget_ms: int = CALL_MS) -> bytes:
        host, _, port = address.rpartition(":")
        answer = await self._pool.at(host, int(port)).call(SERVICE, method, payload, budget_ms=budget_ms)
        if answer.code is not Code.OK:
            raise refusal_of(answer)
        return answer.payload

    async def close(self) -> None:
        await self._pool.close()

    def _dial(self, host: str, port: int) -> Peer:
        return Peer(
            host,
            port,
            secret=self._secret(),
            role=ROLE,
            version=__version__,
            ssl=self._tls(),
            expects=frozenset({ORDERS}),
            limits=self._limits,
        )


class _Reason(msgspec.Struct):
    reason: str = ""


_decode_reason = msgspec.msgpack.Decoder(_Reason).decode

_BY_REASON: dict[str, type[RoostError]] = {"LOG_CUT": LogCut, "UNKNOWN_ORDER": UnknownOrder}
_BY_CODE: dict[Code, type[RoostError]] = {
    Code.NOT_OWNER: ShardUnowned,
    Code.STALE: SymbolMoving,
    Code.BAD_REQUEST: InvalidInput,
    Code.DEADLINE: OutcomeUnknown,
    Code.FAILED: Internal,
}


def refusal_of(answer: Answer) -> RoostError:
    """The error that an order server's refusal stands for; `Unavailable` where nothing better fits."""
    error = _BY_REASON.get(_reason_of(answer)) or _BY_CODE.get(answer.code, Unavailable)
    raised = error(answer.message or f"the order server refuses: {answer.code.name}")
    if isinstance(raised, Unavailable):
        raised.retry_after_s = answer.retry_after_ms / 1000
    return raised


def _reason_of(answer: Answer) -> str:
    try:
        return _decode_reason(answer.payload).reason
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
