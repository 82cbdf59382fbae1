"""What becomes of an item: `submit` answers at once, and each accepted item ends exactly once.

submit ─┬─ Rejected(reason, …)     nothing was queued
        └─ Accepted ─┬─ the handler's result
                     ├─ Failed(error)
                     └─ NotDone.EXPIRED | HALTED | LATE | DROPPED
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from roost.core.errors import RoostError, Unavailable


class Reason(Enum):
    """Why an item was not accepted."""

    QUEUE_FULL = "the worker's queue is full; what is not urgent leaves its last part free"
    TOO_SLOW = "the head of the worker's queue has waited too long"
    KEY_HALTED = "the key is halted until somebody resumes it"
    CLOSING = "the executor takes nothing more"
    BAD_PLACE = "there is no such shard or lane"


class Accepted:
    """It will end exactly once. There is one of it: `ACCEPTED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Accepted()"


ACCEPTED: Final = Accepted()


class Rejected(NamedTuple):
    """It was not queued, and is never executed."""

    reason: Reason
    depth: int = 0
    """Items that wait in the queue of its worker."""
    wait_ms: int = 0
    """How long the head of that queue has waited."""
    retry_after_ms: int = 0
    """When there should be room, by the rate at which the worker got on; 0: it is not a matter of time."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised."""

    error: BaseException


class NotDone(Enum):
    """An accepted item without a result."""

    EXPIRED = "its deadline passed in the queue; it was not executed"
    HALTED = "its key was halted while it waited; it was not executed"
    LATE = "its handler took too long and was cancelled; it may have done a part"
    DROPPED = "the executor closed; it was not executed, or cancelled half-way"


Done = Callable[[Any], None]
"""Told how an accepted item ended: the handler's result, `Failed` or `NotDone`."""


Unfinished = Callable[[str, Any, Any], None]
"""Key, item, and `Failed` or `NotDone`: told of items that have no `done` of their own."""


class NotAccepted(Unavailable):
    """The executor does not take this item now."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.reason.value)
        self.rejected = rejected
        self.retry_after_s = rejected.retry_after_ms / 1000


class NotExecuted(RoostError):
    """The item was accepted and has no result."""

    def __init__(self, outcome: NotDone) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
