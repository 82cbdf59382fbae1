"""The calls that wait for a node: for room on its connection, or for the node itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from roost.core.errors import StoreUnavailable
from roost.store.call import Call


class WaitingCalls:
    """In the order in which they came. `calls` is always the same object, so that a caller may keep it."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: deque[Call] = deque()

    def put_back(self, calls: Iterable[Call]) -> None:
        """To the front, in their order: they were here before those that wait now."""
        self.calls.extendleft(reversed(list(calls)))

    def withdraw(self, which: Callable[[Call], bool]) -> list[Call]:
        """Give up calls that were not sent, for somebody who knows a better link for them."""
        taken = [call for call in self.calls if which(call)]
        self._keep(call for call in self.calls if not which(call))
        return taken

    def expire(self, now: float, why: str) -> int:
        """End those whose time is over, and forget those that nobody waits for; returns how many ended."""
        if not any(call.deadline <= now or call.future.done() for call in self.calls):
            return 0
        late = [call for call in self.calls if call.deadline <= now]
        self._keep(call for call in self.calls if call.deadline > now and not call.future.done())
        for call in late:
            call.fail(StoreUnavailable(f"not sent within its time; {why}"))
        return len(late)

    def _keep(self, calls: Iterable[Call]) -> None:
        kept = list(calls)
        self.calls.clear()
        self.calls.extend(kept)
