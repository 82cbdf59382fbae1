"""Discovery at hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    EndCause,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.core.events import Mark
from roost.discovery.probes import Prober
from roost.discovery.service import Discovery


class DirectRegistry:
    def __init__(self, discovery: Discovery, prober: Prober) -> None:
        self._discovery = discovery
        self._prober = prober

    async def register(self, given: RegisterInput) -> Registered:
        return await self._discovery.register(given)

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        return await self._discovery.heartbeat(instance_id, beat)

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList:
        found = await self._discovery.discover(type_, group, labels)
        if verify:
            await self._prober.verify(found.instances)
        return found

    async def get(self, instance_id: str) -> InstanceDetail:
        return await self._discovery.get(instance_id)

    async def remove(
        self, instance_id: str, type_: str, group: str, life: str, cause: EndCause = "terminated"
    ) -> None:
        await self._discovery.remove(instance_id, type_, group, life=life, cause=cause)

    async def watch(
        self, type_: str, group: str, labels: Sequence[str], after: Mark | None
    ) -> AsyncGenerator[Change, None]:
        async for change in self._discovery.watch(type_, group, labels, after):
            yield change
