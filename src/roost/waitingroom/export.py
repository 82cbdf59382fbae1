"""The loop that writes `server:status` for the tools of others; Roost never reads it."""

from __future__ import annotations

from roost.core.loops import Loops
from roost.store.keys.waitingroom import STATUS
from roost.store.store import Store
from roost.version import __version__
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.service import WaitingRoom

EXPORT_S = 5.0


class StatusExport:
    """One world's numbers, about every 5 s by its leader. The key ends 30 s after the last."""

    def __init__(
        self, store: Store, room: WaitingRoom, admitter: Admitter, region: str, loops: Loops | None = None
    ) -> None:
        self._store = store
        self._room = room
        self._admitter = admitter
        self._region = region
        self._loops = loops or Loops()

    async def run(self) -> None:
        await self._loops.keep_running("status export", self.step, pause_s=EXPORT_S)

    async def step(self) -> None:
        if not self._admitter.leading:
            return
        store, key, board = self._store, self._store.keys.plain(STATUS), await self._room.board.get()
        fields = ("max_cap", board.capacity, "current_users", board.inside, "region", self._region)
        await store.call("HSET", key, *fields, "version", __version__, key=key, idempotent=True)
        await store.call("EXPIRE", key, int(6 * EXPORT_S), key=key, idempotent=True)
