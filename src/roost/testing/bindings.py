"""A partition's leader in the test's hand: it writes the servers that the test shows it, and ticks when told.

leader = await BindingLeader.of(store, bindings)
await leader.shows("501", "7")
await leader.round()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from roost.api.discovery import Change, Instance
from roost.binding.fleet import Fleet
from roost.binding.keeper import Keeper
from roost.binding.service import Bindings
from roost.core.lease import Tenure
from roost.store.store import Store


class _Nobody:
    async def watch(self, type: str, group: str, /) -> AsyncIterator[Change]:  # noqa: A002
        return
        yield


class BindingLeader:
    """Leads every partition by force, as a manager would; discovery is what `shows` and `hides` say."""

    def __init__(self, store: Store, bindings: Bindings, type_: str) -> None:
        self._store = store
        self._type = type_
        self._leases = [store.leader(one.scope, "test") for one in bindings.partitions]
        self._fleets: list[Fleet] = []
        self.keepers: list[Keeper] = []
        for partition in bindings.partitions:
            changed = asyncio.Event()
            fleet = Fleet(partition, _Nobody(), type_, changed)
            fleet.hear(Change("snapshot", 0, "0", instances=[]))
            self._fleets.append(fleet)
            self.keepers.append(Keeper(partition, [fleet], changed))

    @classmethod
    async def of(cls, store: Store, bindings: Bindings, type_: str = "entity") -> Self:
        leader = cls(store, bindings, type_)
        await leader.round()
        return leader

    async def shows(self, server_id: str, life: str, *, willing: bool = True) -> None:
        """Discovery shows this life of the server."""
        instance = Instance(
            type=self._type,
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

    async def round(self) -> None:
        """One look at every partition."""
        for at, keeper in enumerate(self.keepers):
            assert await keeper.round(await self._lead(at)), "somebody else leads"

    async def _tell(self, change: Change) -> None:
        for fleet in self._fleets:
            fleet.hear(change)
        await self.round()

    async def _lead(self, at: int) -> Tenure:
        """By force: whoever leads now is forgotten."""
        tenure = await self._leases[at].campaign()
        if not isinstance(tenure, Tenure):
            key = self._store.keys.leader(self.keepers[at].partition.scope)
            await self._store.call("DEL", key, key=key)
            return await self._lead(at)
        return tenure
