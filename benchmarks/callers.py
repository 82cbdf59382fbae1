"""Callers that each repeat one call as soon as its reply is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Once = Callable[[], Awaitable[Any]]
"""One call and its reply."""


async def rate(once: Once, callers: int, seconds: float) -> float:
    """Replies per second of `callers` that each have one call under way all the time."""
    loop = asyncio.get_running_loop()
    running = True
    replies = 0

    async def caller() -> None:
        nonlocal replies
        while running:
            await once()
            replies += 1

    started = loop.time()
    tasks = [loop.create_task(caller()) for _ in range(callers)]
    await asyncio.sleep(seconds)
    running = False
    await asyncio.gather(*tasks)
    return replies / (loop.time() - started)
