"""A store and servers that fail at chosen calls of a drain, each named by the place that makes it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from types import FrameType
from typing import Any, Literal

from roost.binding.drain.movers import WireMovers
from roost.binding.drain.runner import Runner
from roost.binding.drain.view import View
from roost.core.errors import RoostError, StoreUnavailable
from roost.core.lease import Tenure
from roost.core.loops import END
from tests.store.drain.town import SECRET, TYPE, Town

When = Literal["before", "after"]
"""Whether the call is not carried out, or nobody hears its answer."""
HERE = "roost.binding.drain."


class Faults:
    """Nothing fails before `fail` was called. `seen`: how often each place has called."""

    def __init__(self) -> None:
        self.seen = Counter[str]()
        self.raised = 0
        self._failing: dict[str, tuple[Collection[int], When]] = {}

    def fail(self, site: str, at: Collection[int] = (1,), when: When = "before") -> None:
        """At the calls of these numbers, from now on, that `site` (`module.function verb`) makes."""
        self._failing = {site: (at, when)}
        self.seen.clear()

    def fail_too(self, site: str, at: Collection[int] = (1,), when: When = "before") -> None:
        self._failing[site] = (at, when)

    def wrap(self, inner: Any) -> Any:
        return _Wrapped(inner, self)

    def called(self, verb: str, frame: FrameType | None) -> When | None:
        site = f"{_place(frame)} {verb}"
        self.seen[site] += 1
        at, when = self._failing.get(site, ((), "before"))
        if self.seen[site] not in at:
            return None
        self.raised += 1
        return when


class _Wrapped:
    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found) and "Coroutine" not in _answer_of(found):
            return found
        verb: Callable[..., Awaitable[Any]] = found

        def call(*args: Any, **more: Any) -> Awaitable[Any]:
            return self._call(self._faults.called(name, inspect.currentframe()), verb, args, more)

        return call

    async def _call(
        self, fails: When | None, verb: Callable[..., Awaitable[Any]], args: Any, more: Any
    ) -> Any:
        if fails == "before":
            raise StoreUnavailable("it does not answer")
        answer = await verb(*args, **more)
        if fails == "after":
            raise StoreUnavailable("its answer was lost")
        return answer


def _answer_of(found: Any) -> str:
    return str(getattr(found, "__annotations__", {}).get("return", ""))


def _place(frame: FrameType | None) -> str:
    """The function of the drain that calls; a comprehension is part of the function around it."""
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith(HERE) and not name.startswith("<"):
            return f"{module.removeprefix(HERE)}.{name}"
        frame = frame.f_back
    return ""


class Controller:
    """The controller of one job in the test's hand; as its loop does, it steps again after a failure."""

    def __init__(self, town: Town, tenure: Tenure, faults: Faults) -> None:
        self._town = town
        self._tenure = tenure
        self._faults = faults
        self._records = faults.wrap(town.drains.records)

    async def take_up(self, job_id: str) -> Runner:
        bindings, directory = self._faults.wrap(self._town.bindings), self._faults.wrap(self._town.discovery)
        view = View(directory, bindings, self._records, TYPE)
        kept = await self._town.drains.records.get(job_id)
        return Runner(kept, self._tenure, self._records, view, self._faults.wrap(WireMovers(lambda: SECRET)))


async def one_step(runner: Runner) -> bool:
    """False: it was the last one. What fails is taken again, as by the loop that runs it."""
    try:
        return await runner.step() is not END
    except RoostError:
        return True
