"""What an answer says: the protocol's own codes below 16, those of applications from 16 on."""

from __future__ import annotations

from enum import IntEnum

from roost.core.errors import Mistake


class Code(IntEnum):
    OK = 0
    """Carried out; the payload is the result."""
    BAD_REQUEST = 1
    """The request, or the whole connection, is not what the protocol or the method asks for. Not executed."""
    UNKNOWN_METHOD = 2
    """Nobody serves this (service, method) here. Not executed."""
    UNAUTHENTICATED = 3
    """The peer did not prove that it knows the secret, or may not have this role. Not executed."""
    TOO_LARGE = 4
    """The frame is larger than the limit. Not executed."""
    OVERLOADED = 5
    """Too much work is in flight. Not executed: try again after `retryAfterMs`."""
    DEADLINE = 6
    """The budget ended while the handler was at work: it may or may not have been carried out."""
    FAILED = 7
    """The handler failed: what it had done by then is done."""
    CLOSING = 8
    """The server drains and takes nothing new. Not executed: try elsewhere."""

    NOT_OWNER = 16
    """The server does not own this user or shard. Not executed; `owner` says who does, if that is known."""
    MOVED = 17
    """The user's home is elsewhere: look it up again. Not executed, unless it says `executed`."""
    MIGRATING = 18
    """The user is being moved: wait, then look it up again. Not executed."""
    FULL = 19
    """The server takes no more users."""
    OUT_OF_ORDER = 20
    """A message before this one is missing. Not executed: send again from the missing one on."""
    REFUSED = 21
    """The application says no; the message says why."""
    BUSY = 22
    """The lane is full or slow. Not executed: `reason`, `depth` and `retryAfterMs` say how it stands."""
    STALE = 23
    """The sender's picture of places is old. Not executed: look them up again."""
    HALTED = 24
    """The symbol is halted. Not executed."""


BY_NUMBER: dict[int, Code] = {int(code): code for code in Code}


def code_of(number: int) -> Code:
    """The code with this number; `FAILED` for one of a newer peer that is not known here."""
    return BY_NUMBER.get(number, Code.FAILED)


class ProtocolError(Mistake):
    """The peer does not speak the protocol.

    The connection ends of it; `says` is the code by which the peer is told. It never reaches a caller: calls
    in flight end with `OutcomeUnknown`.
    """

    def __init__(self, message: str = "", says: Code = Code.BAD_REQUEST) -> None:
        super().__init__(message)
        self.says = says
