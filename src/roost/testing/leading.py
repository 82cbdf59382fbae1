"""A world's leader in the test's hand: it writes the servers that the test shows it, and ticks when told.

leader = await Leader.of(store, room)
await leader.shows("501", "7")
await leader.tick(100)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from roost.api.discovery import Change, Instance
from roost.core.lease import Tenure
from roost.store.store import Store
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.scripts import Ticked
from roost.waitingroom.service import WaitingRoom


class _Nobody:
    async def watch(self, type: str, group: str, /) -> AsyncIterator[Change]:  # noqa: A002
        return
        yield


class Leader:
    """Leads as a manager does, whoever led before; discovery is what `shows` and `hides` say."""

    def __init__(self, store: Store, room: WaitingRoom) -> None:
        self._store = store
        self._room = room
        self._lease = store.leader(room.scope, "test")
        self._epoch = 0
        self._fleet = Fleet(room, _Nobody(), "game")
        self._fleet.hear(Change("snapshot", 0, "0", instances=[]))
        self.admitter = Admitter(room, self._fleet)

    @classmethod
    async def of(cls, store: Store, room: WaitingRoom) -> Self:
        leader = cls(store, room)
        await leader._lead()
        return leader

    async def shows(self, server_id: str, life: str, *, willing: bool = True) -> None:
        """Discovery shows this life of the server."""
        instance = Instance(
            type="game",
            group="test",
            instance_id=server_id,
            server_id=server_id,
            life=life,
            status="ready",
            accepting=willing,
            willing=willing,
            last_heartbeat="",
        )
        await self._tell(Change("changed", 0, "0", server_id, life, server_id, "ready", instance))

    async def hides(self, server_id: str, life: str) -> None:
        """This life of the server has ended."""
        await self._tell(Change("removed", 0, "0", server_id, life, server_id, "no-response"))

    async def tick(self, batch: int | None = None) -> Ticked:
        """A gateway signs, and the leader ticks."""
        await self._room.touch(())
        tenure = await self._write()
        ticked = await self.admitter.tick(tenure, self._room.policy.batch if batch is None else batch)
        assert isinstance(ticked, Ticked), ticked
        return ticked

    async def _tell(self, change: Change) -> None:
        self._fleet.hear(change)
        await self._write()

    async def _write(self) -> Tenure:
        tenure = await self._lead()
        assert await self._fleet.write(tenure), "somebody else leads"
        return tenure

    async def _lead(self) -> Tenure:
        """By force: whoever leads now is forgotten. A new grant begins with all that was shown."""
        tenure = await self._lease.campaign()
        if not isinstance(tenure, Tenure):
            key = self._store.keys.leader(self._room.scope)
            await self._store.call("DEL", key, key=key)
            return await self._lead()
        if tenure.epoch != self._epoch:
            self._epoch = tenure.epoch
            self._fleet.forget_written()
        return tenure
