"""Waiting in tests: for a condition, with a deadline, never for a fixed time.

`eventually` for coroutines, `wait_until` for plain functions. Both fail with an AssertionError that says what
was waited for, so that a test which waits in vain reads like any other failed assertion.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

TIMEOUT_S = 20.0
"""Long enough for a busy machine; a test that passes never waits it out."""

START_S = 60.0
"""For a process to be ready: on a busy machine what it imports takes ten times as long."""

ASYNC_PAUSE_S = 0.002
PAUSE_S = 0.01
"""Between two looks. A plain condition often reads a file or opens a connection, so it is asked less."""


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]],
    what: str = "a condition",
    timeout_s: float = TIMEOUT_S,
    details: Callable[[], str] = str,
) -> None:
    """Return as soon as the condition holds; fail with `what` and the details when it takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not await _holds(condition):
        if loop.time() > deadline:
            raise _in_vain(what, timeout_s, details)
        await asyncio.sleep(ASYNC_PAUSE_S)


def wait_until(
    condition: Callable[[], bool],
    what: str,
    details: Callable[[], str] = str,
    timeout_s: float = TIMEOUT_S,
) -> None:
    """`eventually` where no event loop runs: for processes, files and threads."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise _in_vain(what, timeout_s, details)
        time.sleep(PAUSE_S)


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    found = condition()
    return await found if inspect.isawaitable(found) else found


def _in_vain(what: str, timeout_s: float, details: Callable[[], str]) -> AssertionError:
    return AssertionError(f"waited {timeout_s:g} s for {what}. {details()}".rstrip())
