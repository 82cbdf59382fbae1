"""The loop that writes `server:status` for the tools of others; Roost never reads it."""

from __future__ import annotations

from roost.core.loops import Loops
from roost.store.keys.waitingroom import status_keys
from roost.store.store import Store
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.service import WaitingRoom

EXPORT_S = 5.0


class StatusExport:
    """One world's numbers, about every 5 s by its leader. The keys end 30 s after the last.

    Region and version are the game's: the group and the version that most of the world's servers registered.
    """

    def __init__(
        self,
        store: Store,
        room: WaitingRoom,
        admitter: Admitter,
        fleet: Fleet,
        *,
        is_first: bool,
        loops: Loops | None = None,
    ) -> None:
        """The first world is also written to the documented key, which names no world."""
        self._store = store
        self._room = room
        self._admitter = admitter
        self._fleet = fleet
        self._keys = status_keys(store.keys, room.world, is_first=is_first)
        self._loops = loops or Loops()

    async def run(self) -> None:
        await self._loops.keep_running(f"status export {self._room.world}", self.step, pause_s=EXPORT_S)

    async def step(self) -> None:
        if not self._admitter.leading:
            return
        board = await self._room.board.get()
        region, version = self._fleet.region or self._room.world, self._fleet.version
        fields = ("max_cap", board.capacity, "current_users", board.inside, "region", region)
        for key in self._keys:
            await self._store.call("HSET", key, *fields, "version", version, key=key, idempotent=True)
            await self._store.call("EXPIRE", key, int(6 * EXPORT_S), key=key, idempotent=True)
