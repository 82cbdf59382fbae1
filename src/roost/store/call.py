"""A command on its way to a node, from the moment it is asked for until it ends.

A call ends exactly once: with its own reply or with an honest error. It may pass through several
links (a redirect, a reconnect) before that; the caller holds one future all the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import hiredis

from roost.core.errors import (
    OutcomeUnknown,
    StoreAccessDenied,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
)

Pack = Callable[[tuple[Any, ...]], bytes]
pack: Pack = cast(Pack, hiredis.pack_command)
"""A command as the bytes that go over the wire."""


class Call:
    """One command, packed once, with the deadline that the caller gave it."""

    __slots__ = ("asking", "bulk", "deadline", "future", "idempotent", "key", "packed", "script")

    def __init__(
        self,
        future: asyncio.Future[Any],
        packed: bytes,
        deadline: float,
        key: bytes | None,
        idempotent: bool,
        bulk: bool,
    ) -> None:
        self.future = future
        self.packed = packed
        self.deadline = deadline
        """Loop time after which the caller no longer waits."""
        self.key = key
        """A key of the slot that the command belongs to; None goes to any primary."""
        self.idempotent = idempotent
        """Whether sending it twice does what sending it once does."""
        self.bulk = bulk
        self.asking = False
        """Whether the next node must be told ASKING first (a slot on the move)."""
        self.script: tuple[bytes, bytes, tuple[Any, ...]] | None = None
        """Command, source and parameters, for a node that does not know the script yet."""

    def load_script(self) -> bool:
        """Turn EVALSHA into EVAL, which runs the script and loads it; False if that was done already."""
        if self.script is None:
            return False
        command, source, parameters = self.script
        self.packed = pack((command, source, *parameters))
        self.script = None
        return True

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            # The caller may have gone (a cancelled task): its error is then nobody's, not a warning.
            self.future.exception()

    def refuse(self, message: str) -> None:
        """End with the server's own error."""
        self.fail(refusal(message))

    def lose(self, why: str) -> None:
        """End after it was sent and before its reply came."""
        if self.idempotent:
            self.fail(StoreUnavailable(f"{why}; it may safely be repeated"))
        else:
            self.fail(OutcomeUnknown(f"the reply was lost: {why}"))


_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")
_DENIED_TOO = ("invalid password", "invalid username", "ACL failure in script")


def refusal(message: str) -> StoreRefused:
    word = message.partition(" ")[0]
    if word in _DENIED or any(said in message for said in _DENIED_TOO):
        return StoreAccessDenied(f"the store refuses access: {message}")
    if word == "OOM":
        return StoreFull(f"the store is out of memory: {message}")
    return StoreRefused(message)
