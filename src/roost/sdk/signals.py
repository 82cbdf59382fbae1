"""SIGTERM for a program that leaves it to us."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """SIGTERM cancels the task inside, so that it can clean up; then the signal takes its course.

    A program that handles SIGTERM itself is left alone.
    """
    mine = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and sys.platform != "win32"
    )
    if not mine:
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    terminated = False

    def on_sigterm() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, on_sigterm)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        if terminated:
            loop.call_later(0, _end_by_sigterm, task)


def _end_by_sigterm(task: asyncio.Task[Any]) -> None:
    """Once the task has cleaned up, end as if nobody had caught the signal."""
    task.add_done_callback(lambda _: signal.raise_signal(signal.SIGTERM))
