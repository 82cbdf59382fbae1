"""The waiting rooms at hand."""

from __future__ import annotations

from collections.abc import Callable

from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.waitingroom.worlds import Worlds


class DirectAdmission:
    """`worlds` is asked for on use: most clients have no door, and reading the keys costs a file."""

    def __init__(self, worlds: Callable[[], Worlds]) -> None:
        self._worlds = worlds
        self._checked: set[str] = set()
        """Worlds whose gateways sign tickets with a key that this process has."""

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        return await self._worlds().consume(given)

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        return await self._worlds().release(world, server_id, given)

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        if world not in self._checked and await self._worlds().check_ticket_keys(world):
            self._checked.add(world)
        return await self._worlds().report(world, server_id, given)
