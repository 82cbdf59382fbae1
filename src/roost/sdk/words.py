"""What a gate says, as a player reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from roost.core.errors import OutcomeUnknown, RoostError


class GateRefused(RoostError):
    """The gate refuses this.

    `reason` is its word (QUEUE_FULL, MIGRATING, NO_SERVER, FAILED, TAKEN_OVER …). Nothing was executed,
    except where the entity itself says FAILED.
    """

    def __init__(self, reason: str, message: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.retry_after_s = retry_after_s


class Push(NamedTuple):
    """What a home sent unasked."""

    type: str
    body: Any
    epoch: int
    n: int


class Reply(NamedTuple):
    """An answer with what it rests on."""

    result: Any
    seq: int
    durability: str
    epoch: int


class Fault(msgspec.Struct, rename="camel"):
    code: str = ""
    message: str = ""
    retry_after_ms: int = 0

    def raised(self) -> RoostError:
        if self.code == "OUTCOME_UNKNOWN":
            return OutcomeUnknown(self.message)
        return GateRefused(self.code, self.message, self.retry_after_ms / 1000)


class Standing(msgspec.Struct, rename="camel"):
    last_seq: int
    reason: str = ""
    durability: str = ""
    epoch: int = 0


class Welcome(msgspec.Struct, rename="camel"):
    user: str
    session: str
    resume: str
    types: dict[str, Standing]
    max_bytes: int = 65_536


class FromGate(msgspec.Struct):
    welcome: Welcome | None = None
    seq: int = 0
    type: str = ""
    result: Any = None
    durability: str = ""
    epoch: int = 0
    error: Fault | None = None
    push: Any = msgspec.UNSET
    n: int = 0
    resume: str = ""
    bye: Fault | None = None


read_words = msgspec.msgpack.Decoder(FromGate).decode
