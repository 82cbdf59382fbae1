"""A command on its way through the executor to its shard, and the one answer that it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from roost.lanes.commands import Command
from roost.lanes.outcomes import NotDone
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code

if TYPE_CHECKING:
    from roost.lanes.shard import Shard
    from roost.lanes.worker import Worker

_NOT_DONE = {NotDone.EXPIRED: "EXPIRED", NotDone.HALTED: "KEY_HALTED"}

RETRY_MS = 200
"""When to come again where nobody can say better."""

SAID: dict[str, tuple[Code, str]] = {
    "NOT_OWNER": (Code.NOT_OWNER, "this server does not own the shard"),
    "MOVING": (Code.STALE, "the symbol is being moved to another shard"),
    "CLOCK_BEHIND": (Code.BUSY, "the clock is behind the ids that were made: no order can be numbered"),
    "QUEUE_FULL": (Code.BUSY, "too many commands wait for this lane"),
    "TOO_SLOW": (Code.BUSY, "commands wait for too long in this lane"),
    "OUTBOX_FULL": (Code.BUSY, "the database takes no more orders for now"),
    "KEY_HALTED": (Code.HALTED, "the symbol is halted"),
    "EXPIRED": (Code.BUSY, "its time was over before its turn came"),
    "CLOSING": (Code.CLOSING, "the server takes no new commands"),
    "UNKNOWN_ORDER": (Code.REFUSED, "nobody knows this order"),
    "TOO_OLD": (Code.REFUSED, "the answer to this number is kept no longer"),
    "DUPLICATE": (Code.REFUSED, "the client's number was used for another command"),
}
"""Every refusal of a command that was not executed: its code, and words for people."""


def refused(reason: str, *, retry_after_ms: int = 0, said: str = "", **more: Any) -> Answer:
    """The answer to a command that was not executed; `reason` is the word for programs."""
    code, words = SAID[reason]
    waits = retry_after_ms or (RETRY_MS if code is not Code.REFUSED else 0)
    return refusal(code, said or words, retry_after_ms=waits, reason=reason, **more)


class Route:
    """Where a symbol's commands go here: found once, and forgotten when shards or places change."""

    __slots__ = ("commands", "lane", "place", "shard", "symbol", "worker")

    def __init__(self, symbol: str, shard: Shard, lane: int) -> None:
        self.symbol = symbol
        self.shard = shard
        self.lane = lane
        self.place = (shard.number, lane)
        self.worker: Worker | None = None
        """Of the executor, once the first command has found it."""
        self.commands = 0
        """Queued since somebody last looked."""


class Caller(Protocol):
    """Who sent commands, each under a number of its own; each is answered once."""

    def reply_later(self, request: int, answer: Answer, /) -> None: ...

    def deliver(self, request: int, payload: bytes, /) -> None:
        """`reply_later` with the answer to a command that was executed."""


class Told:
    """The `Caller` of one command that no trader sent."""

    def __init__(self, reply: Callable[[Answer], None]) -> None:
        self._reply = reply

    def reply_later(self, _request: int, answer: Answer) -> None:
        self._reply(answer)

    def deliver(self, _request: int, payload: bytes) -> None:
        self._reply(Answer(payload))


class Work(msgspec.Struct):
    """A command that waits. `arrival` rises in each lane, which the auditor compares."""

    route: Route
    method: int
    command: Command
    payload: bytes
    arrival: int
    caller: Caller
    request: int


def unfinished(_symbol: str, work: Work, outcome: object) -> None:
    """Told by the executor; what was executed is answered by its shard."""
    reason = _NOT_DONE.get(outcome, "CLOSING") if isinstance(outcome, NotDone) else "CLOSING"
    work.route.shard.tally.refused[reason] += 1
    work.caller.reply_later(work.request, refused(reason))
