"""What every process in the foreground does: it ends by a signal, also while it is still starting."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

Opened = TypeVar("Opened")


def stop_signal() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return stop


@contextlib.contextmanager
def hearing_hangups(call: Callable[[], None]) -> Iterator[None]:
    """Inside the block SIGHUP calls, instead of ending the process."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, call)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


@contextlib.asynccontextmanager
async def unless(
    stop: asyncio.Event, opening: contextlib.AbstractAsyncContextManager[Opened]
) -> AsyncIterator[Opened | None]:
    """What is opened, or None if a signal comes while it waits to be: a start can take its time."""
    async with contextlib.AsyncExitStack() as stack:
        entering = asyncio.create_task(stack.enter_async_context(opening))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not entering.done():
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            yield None
        else:
            yield entering.result()
