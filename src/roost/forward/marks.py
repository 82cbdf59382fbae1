"""How far a forwarder has come, kept in the store; and the fence against one that does not lead any more."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.errors import Unavailable
from roost.core.events import Mark
from roost.core.lease import Tenure
from roost.forward.event import mark_of, text_of
from roost.store.keys.forward import forward_keys
from roost.store.scripts import ScopedScript
from roost.store.store import Store


@dataclass(frozen=True, slots=True)
class Kept:
    pass


@dataclass(frozen=True, slots=True)
class Deposed:
    pass


class Marks:
    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        keys = forward_keys(store.keys, name)
        self._key = keys["marks"]
        self._mark: ScopedScript[Kept | Deposed] = ScopedScript(
            store.library.script("forward", "mark", Kept, Deposed), keys
        )

    async def of(self, source: str) -> Mark | None:
        """None: nothing of it was ever told."""
        found = await self._store.call("HGET", self._key, source, key=self._key, idempotent=True)
        return mark_of(found.decode()) if found else None

    async def keep(self, tenure: Tenure, source: str, mark: Mark) -> None:
        answer = await self._mark(
            holder=tenure.holder, epoch=str(tenure.epoch), source=source, mark=text_of(mark)
        )
        if isinstance(answer, Deposed):
            raise Unavailable("another forwarder leads")
