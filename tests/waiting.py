"""Waiting in tests: for a condition, with a deadline, never for a fixed time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    """Return as soon as the condition holds; fail with `what` was waited for when it takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not condition():
        if loop.time() > deadline:
            raise AssertionError(f"waited {timeout_s:g} s for {what}")
        await asyncio.sleep(0.002)
