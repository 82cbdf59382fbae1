"""Who leads what, as the store has it. A lease whose clock stands still has nobody left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from roost.store import scopes
from roost.store.store import Store

SILENT_S = 15.0
"""Candidates look every second; a leader renews several times in the ten seconds of its lease."""


class Leaders:
    def __init__(
        self,
        store: Store,
        led: Callable[[], Mapping[str, scopes.Scope]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`led`: what people call it → the scope that is led; worlds come and go while somebody looks."""
        self._store = store
        self._led = led
        self._clock = clock
        self._advances: dict[str, tuple[bytes | None, float]] = {}

    async def look(self) -> dict[str, str | None]:
        """What is led → who leads; None: nobody does."""
        keys = {name: self._store.keys.leader(scope) for name, scope in self._led().items()}
        for name in self._advances.keys() - keys.keys():
            del self._advances[name]
        found = await asyncio.gather(
            *(
                self._store.call("HMGET", key, "holder", "last_advance_us", key=key, idempotent=True)
                for key in keys.values()
            )
        )
        return {name: self._leader(name, *kept) for name, kept in zip(keys, found, strict=True)}

    def _leader(self, name: str, holder: bytes | None, advanced: bytes | None) -> str | None:
        now = self._clock()
        before = self._advances.get(name)
        if before is None or before[0] != advanced:
            self._advances[name] = before = (advanced, now)
        is_silent = now - before[1] > SILENT_S
        return holder.decode() if holder and not is_silent else None
