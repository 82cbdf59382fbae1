"""A handler that does what its items say, so that a test decides when and how each of them ends."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any, NamedTuple


class Item(NamedTuple):
    number: int
    plan: str = "return"
    """`return`, `raise`, `cancel` (itself), `wait` (until `release`) or `stubborn` (so, whoever cancels it).

    With `async-` before it one of the first three happens in a coroutine, with `late-` after waiting a turn.
    """


class Boom(Exception):
    pass


class Scripted:
    def __init__(self) -> None:
        self.begun: dict[str, list[int]] = defaultdict(list)
        self.all_begun: list[int] = []
        self.running: dict[int, str] = {}
        """Number → key of the handlers that wait."""
        self._gates: dict[int, asyncio.Future[None]] = {}

    def __call__(self, key: str, item: Item) -> Any:
        self.begun[key].append(item.number)
        self.all_begun.append(item.number)
        how, _, what = item.plan.rpartition("-")
        if what in ("wait", "stubborn"):
            return self._wait(key, item)
        return self._later(what, item, how == "late") if how else self._now(what, item)

    def release(self, number: int) -> None:
        gate = self._gates[number]
        if not gate.done():
            gate.set_result(None)

    def _now(self, what: str, item: Item) -> str:
        if what == "raise":
            raise Boom(item.number)
        if what == "cancel":
            raise asyncio.CancelledError
        return f"did {item.number}"

    async def _later(self, what: str, item: Item, wait: bool) -> str:
        if wait:
            await asyncio.sleep(0)
        return self._now(what, item)

    def _wait(self, key: str, item: Item) -> Coroutine[Any, Any, str]:
        self._gates[item.number] = asyncio.get_running_loop().create_future()
        self.running[item.number] = key
        return self._until_released(item)

    async def _until_released(self, item: Item) -> str:
        gate = self._gates[item.number]
        try:
            while not gate.done():
                try:
                    await asyncio.shield(gate)
                except asyncio.CancelledError:
                    if item.plan != "stubborn":
                        raise
        finally:
            del self.running[item.number]
        return f"did {item.number}"


async def settle() -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(20):
        await asyncio.sleep(0)
