"""What a process of the demo hears from `roost up`, which started it: words, a line each, on standard input.

When the pipe ends `roost up` has ended, however that came about, and so does the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable


@contextlib.asynccontextmanager
async def following_parent(on_word: Callable[[str], None]) -> AsyncIterator[asyncio.Event]:
    """Inside the block words are heard; the event says that it is time to end."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    hearing = asyncio.create_task(_hear(reader, on_word, stop))
    try:
        yield stop
    finally:
        hearing.cancel()
        transport.close()


async def _hear(reader: asyncio.StreamReader, on_word: Callable[[str], None], stop: asyncio.Event) -> None:
    while line := await reader.readline():
        on_word(line.decode().strip())
    stop.set()
