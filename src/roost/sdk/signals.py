"""SIGTERM for a program that leaves it to us."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 1.0
"""With a task that ends, before those that it began inside its block are cancelled too."""

_Task = asyncio.Task[Any]


@dataclass
class _Open:
    """The blocks of one task that are open."""

    outer: _Task | None
    """Inside whose block the task was begun: it may cancel this one as it ends."""
    blocks: int = 0


_inside: dict[_Task, _Open] = {}
"""Of the main thread's loop. A process has one SIGTERM."""
_current: ContextVar[_Task | None] = ContextVar("roost_sigterm", default=None)


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
    before = _current.get()
    mine = _inside.setdefault(task, _Open(before))
    mine.blocks += 1
    _current.set(task)
    try:
        yield
    finally:
        _current.set(before)
        mine.blocks -= 1
        if not mine.blocks:
            _inside.pop(task, None)
        if not _inside:
            loop.remove_signal_handler(signal.SIGTERM)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Once all have cleaned up, end as if nobody had caught the signal.

    NB: a task that is cancelled twice does not clean up, so one that another began is left to that one.
    """
    outer_of = {task: mine.outer for task, mine in _inside.items()}
    unfinished = set(outer_of)

    def ended(task: _Task) -> None:
        unfinished.discard(task)
        _cancel([one for one in unfinished if outer_of[one] is task])
        if not unfinished:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    for task in outer_of:
        task.add_done_callback(ended)
    _cancel([task for task, outer in outer_of.items() if outer not in outer_of])
    loop.call_later(PATIENCE_S, lambda: _cancel(unfinished))


def _cancel(tasks: Iterable[_Task]) -> None:
    for task in tasks:
        if not task.done() and not task.cancelling():
            task.cancel()
