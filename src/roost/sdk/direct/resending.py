"""One request to the owner of its shard, again and again under the same number until it has its one answer.

answered by the shard, or refused for good         that answer
the owner is another, away or being changed        look it up and send again
refused, but an attempt before was not answered     send again: the shard has the answer of that one
its time is over                                   the last refusal; `OutcomeUnknown` if it may be carried out
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from roost.core.backoff import Backoff
from roost.core.errors import NotSent, OutcomeUnknown
from roost.core.tracing import leaving_context
from roost.lanes.commands import SERVICE
from roost.sdk.direct.shard_owners import Owners
from roost.wire.answer import Answer
from roost.wire.codes import Code

ATTEMPT_MS = 3000
"""Then a server that says nothing is asked again: the number makes that safe."""

_ELSEWHERE = frozenset({Code.NOT_OWNER, Code.STALE, Code.MOVED, Code.MIGRATING})
_NOT_NOW = frozenset({Code.BUSY, Code.HALTED})


class Said(msgspec.Struct, frozen=True, rename="camel"):
    """What a refusal of an order server holds."""

    message: str = ""
    reason: str = ""
    retry_after_ms: int = 0
    depth: int = 0


class NotTaken(NamedTuple):
    """It was certainly not carried out."""

    said: Said


_decode = msgspec.msgpack.Decoder(Said).decode
_UNREACHABLE = Said("the owner of its shard cannot be reached", "UNREACHABLE", 1000)


class Sending:
    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self.attempts = 0
        self.resent = 0

    def close(self) -> None:
        """Send nothing any more: what is under way ends with what is known of it."""
        self._closed.set()

    async def send(
        self,
        method: int,
        payload: bytes,
        shard_of: Callable[[], int | None],
        until: float,
        *,
        has_effect: bool = True,
    ) -> bytes | NotTaken:
        """The result of a request that may arrive more than once. `until`: loop time.

        `has_effect`: the same one however often; a refusal then speaks of its own attempt alone.
        """
        pauses, may_be_done, last = Backoff(base_s=0.02, cap_s=0.5), False, _UNREACHABLE
        for attempt in range(1_000_000):
            left_ms = int((until - self._loop.time()) * 1000)
            if left_ms <= 0 or self._closed.is_set():
                break
            self.resent += attempt > 0
            answer = await self._attempt(method, payload, shard_of(), min(left_ms, ATTEMPT_MS))
            if isinstance(answer, Answer):
                if answer.code is Code.OK:
                    return answer.payload
                last = said_in(answer)
                says_nothing_of_before = may_be_done and (has_effect or answer.code in _NOT_NOW)
                if answer.code not in _ELSEWHERE and not says_nothing_of_before:
                    return NotTaken(last)
            elif isinstance(answer, OutcomeUnknown):
                may_be_done = True
            pause_s = max(pauses.next(), last.retry_after_ms / 1000 if may_be_done else 0.0)
            await self._pause(pause_s, until)
        if may_be_done:
            raise OutcomeUnknown("no order server has answered in time: it may or may not be carried out")
        return NotTaken(last)

    async def _pause(self, pause_s: float, until: float) -> None:
        """Then hear who owns what by now, unless the time is over or nothing is sent any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(self._loop.time() + pause_s, until)):
                await self._closed.wait()
                return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._owners.look_up()

    async def _attempt(
        self, method: int, payload: bytes, shard: int | None, budget_ms: int
    ) -> Answer | NotSent | OutcomeUnknown:
        address = self._owners.by_shard.get(shard) if shard is not None else None
        if address is None:
            return NotSent("nobody is known to own the shard")
        self.attempts += 1
        try:
            return await self._owners.peer_of(address).call(
                SERVICE, method, payload, budget_ms=budget_ms, traceparent=leaving_context()
            )
        except (NotSent, OutcomeUnknown) as error:
            return error


def said_in(answer: Answer) -> Said:
    try:
        said = _decode(answer.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = Said()
    return said if said.reason else msgspec.structs.replace(said, reason=answer.code.name)
