"""A world with a clock in the test's hand, around the real scripts on a real server.

Holders measure time by `clock`; the server's clock is that time plus `offset_s`, which a test may step.
Calls may be lost on their way back, and the store may be away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from roost.core.errors import StoreUnavailable
from roost.store import scopes
from roost.store.leader import LeaderLease
from roost.store.scripts import Library
from roost.store.store import Store
from roost.testing import FakeClock, eventually

STEP_S = 0.05


async def _at_once() -> None:
    pass


class SteppedWorld:
    def __init__(self, store: Store, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock(start=1_000_000.0)
        self.offset_s = 0.0
        self.away = False
        self.loses_reply: Callable[[], bool] = lambda: False
        self.on_the_way: Callable[[], Awaitable[None]] = _at_once
        """Runs before a call reaches the store, and again before its reply arrives."""
        self._store = store
        self._calls = 0

    def lease(self, name: str, ttl_ms: int = 10_000, scope: str = "main") -> LeaderLease:
        key = self._store.keys.leader(scopes.world(scope))
        return LeaderLease(cast(Library, self), key, name, ttl_ms, self.clock)

    def now_us(self) -> int:
        return round((self.clock.monotonic() + self.offset_s) * 1_000_000)

    async def run(self, seconds: float) -> None:
        """Let time pass in small steps, each ending when no call is under way."""
        for _ in range(round(seconds / STEP_S)):
            await self.clock.advance(STEP_S)
            await self.settle()

    async def settle(self) -> None:
        await self.clock.advance(0.0)
        while self._calls:
            await eventually(lambda: not self._calls, "calls to end")
            await self.clock.advance(0.0)

    def script(self, capability: str, name: str, *answers: type[Any]) -> Callable[..., Awaitable[Any]]:
        """Stands in for `Library.script`."""
        script = self._store.library.script(capability, name, *answers)

        async def call(**named: Any) -> Any:
            self._calls += 1
            try:
                await self.on_the_way()
                if self.away:
                    raise StoreUnavailable("switched off by the test")
                if "now" in {parameter.name for parameter in script.contract.args}:
                    named["now"] = self.now_us()
                answer = await script(**named)
                await self.on_the_way()
                if self.loses_reply():
                    raise StoreUnavailable("the reply was lost")
                return answer
            finally:
                self._calls -= 1

        return call
