"""What follows when a server ends: every holder of something for it lets go.

One process does it at a time (a leader lease). It works from levels, not edges: at its start, and after every
gap, it says who lives, and everything held for anybody else goes. So an end that nobody saw (the leader
died, the store was away) is made good by the next leader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from roost.api.discovery import Change, Instance, Watcher
from roost.core.lease import Tenure
from roost.core.loops import Loops

RETRY_S = 1.0


class ServerLife(NamedTuple):
    """One life of one server."""

    server_id: str
    instance_id: str
    life: str


class Holder(Protocol):
    """Holds something for servers: places in a waiting room, users in a binding. A verb may be repeated."""

    async def server_ended(self, server: ServerLife, died: bool) -> None: ...

    async def only_these_live(self, servers: Collection[ServerLife], as_of_us: int) -> None:
        """Nobody else lived at that moment, in the time that lives are numbered by."""


class Failover:
    def __init__(self, discovery: Watcher, holders: Sequence[Holder], loops: Loops | None = None) -> None:
        self._discovery = discovery
        self._holders = holders
        self._loop = (loops or Loops()).loop("failover")

    async def run(self, _tenure: Tenure) -> None:
        """The leader's work, for ever. A holder that could not be told is told who lives, a moment later."""
        await self._loop.keep_running(self._follow, pause_s=RETRY_S)

    async def _follow(self) -> None:
        async for change in self._discovery.watch("*", "*"):
            await self.pass_on(change)
            self._loop.good()

    async def pass_on(self, change: Change) -> None:
        for holder in self._holders:
            if change.event == "snapshot":
                lives = [life_of(instance) for instance in change.instances or ()]
                await holder.only_these_live(lives, int(change.revision_at))
            elif change.event == "removed":
                server = ServerLife(change.server_id, change.instance_id, change.life)
                await holder.server_ended(server, change.status == "no-response")


def life_of(instance: Instance) -> ServerLife:
    return ServerLife(instance.server_id or instance.instance_id, instance.instance_id, instance.life)
