"""Running a handler without a task for as long as it does not wait.

Most handlers answer at once; a task for each would cost more than the answer. So a coroutine is stepped once
by hand, and only if it waits for something does a task take it over from there.

NB: the first step runs outside any task, so `asyncio.timeout` and `current_task` do not work before the
handler's first await; a handler that needs them is registered with `in_task=True`.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blocked:
    """It waits; `rest` is a coroutine that goes on where it stopped."""

    rest: Coroutine[Any, Any, Any]


def step(coroutine: Coroutine[Any, Any, T]) -> T | Blocked:
    """What it returns, if it does so without waiting; whatever it raises passes through."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    return Blocked(_go_on(coroutine, waits_for))


async def _go_on(coroutine: Coroutine[Any, Any, T], waits_for: Any) -> T:
    return await _resumed(coroutine, waits_for)


@types.coroutine
def _resumed(coroutine: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Hand what the coroutine waits for to the task, then the task's answers to the coroutine."""
    while True:
        try:
            yield waits_for
        except BaseException as error:  # a cancellation, or what it waited for failed
            try:
                waits_for = coroutine.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
        else:
            return (yield from coroutine)  # type: ignore[no-any-return]
