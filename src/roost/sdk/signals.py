"""SIGTERM for a program that leaves it to us."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_inside: list[asyncio.Task[Any]] = []
"""Tasks with a block that is open; one with several stands here as often. A process has one SIGTERM."""


@contextlib.contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """SIGTERM cancels every task that is inside such a block, so that it can clean up.

    When the last of them has ended the signal takes its course. A program that handles SIGTERM itself is
    left alone.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _inside.clear()  # of a loop that was closed with blocks open
        loop.add_signal_handler(signal.SIGTERM, _cancel_all, loop)
    elif not _inside:
        yield
        return
    _inside.append(task)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # of a loop that was closed, and forgotten
            _inside.remove(task)
        if not _inside:
            loop.remove_signal_handler(signal.SIGTERM)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Once all have cleaned up, end as if nobody had caught the signal."""
    cancelled = set(_inside)
    unfinished = set(cancelled)

    def ended(task: asyncio.Task[Any]) -> None:
        unfinished.discard(task)
        if not unfinished:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    for task in cancelled:
        task.add_done_callback(ended)
        task.cancel()
