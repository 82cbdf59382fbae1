"""What a double does with the calls it gets (refuse, lose the reply, make it wait), and which calls came."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any, TypeVar

from roost.core.errors import OutcomeUnknown

Reply = TypeVar("Reply")

ALL = "*"
"""Every verb."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that arrived, whatever became of it."""

    verb: str
    subject: str
    """An instance, a server or a user, by the verb."""
    given: Any = None


class Gate:
    """Opens once, for good. May be waited for on any loop and opened from any thread."""

    def __init__(self) -> None:
        self._is_open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def wait(self) -> None:
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        if not self._is_open:
            await event.wait()

    def open(self) -> None:
        self._is_open = True
        for loop, event in self._waiting:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there
                loop.call_soon_threadsafe(event.set)


class Script:
    """What happens to calls, by verb (`*` for all). Without instructions each is carried out at once."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._refusals: dict[str, list[tuple[Exception, float]]] = {}
        self._losses: dict[str, list[Exception]] = {}
        self._gates: dict[str, dict[str, Gate]] = {}

    def count(self, verb: str) -> int:
        return sum(call.verb == verb for call in self.calls)

    def refuse(self, verb: str, error: Exception, times: float = float("inf")) -> None:
        """Nothing is done, the error is raised: so many times, or until `allow`."""
        self._refusals.setdefault(verb, []).append((error, times))

    def lose(self, verb: str, times: int = 1, error: Exception | None = None) -> None:
        """It is done, and the caller gets the error (OutcomeUnknown) in place of the reply."""
        self._losses.setdefault(verb, []).extend([error or OutcomeUnknown()] * times)

    def hold(self, verb: str) -> dict[str, Gate]:
        """It is done, and the reply waits. A gate by subject appears here with each call that waits."""
        return self._gates.setdefault(verb, {})

    def allow(self, verb: str = ALL) -> None:
        """Forget all instructions for the verb, or for all verbs; replies that are held stay held."""
        for instructions in (self._refusals, self._losses, self._gates):
            for known in list(instructions) if verb == ALL else [verb]:
                instructions.pop(known, None)

    def arrive(self, verb: str, subject: str, given: Any = None) -> None:
        """Record a call; raise if it is to be refused."""
        self.calls.append(Call(verb, subject, given))
        for name in (verb, ALL):
            if refusals := self._refusals.get(name):
                error, times = refusals[0]
                refusals[:1] = [(error, times - 1)] if times > 1 else []
                raise error

    async def reply(self, verb: str, subject: str, reply: Reply) -> Reply:
        """Deliver the reply of a call that was carried out, or lose it."""
        if verb in self._gates:
            await self._gates[verb].setdefault(subject, Gate()).wait()
        if losses := self._losses.get(verb):
            raise losses.pop()
        return reply
