"""The worlds of this process: each waiting room and what a process keeps beside it, by name."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

from roost.api.queue import (
    Asking,
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
    WorldPatch,
    WorldView,
)
from roost.core import errors as e
from roost.core.loops import Loops
from roost.store.store import Store
from roost.waitingroom import scripts as answers
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.desk import Desk
from roost.waitingroom.export import StatusExport
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.metrics import WorldMetrics
from roost.waitingroom.model import ServerLife
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.rules import parse_worlds
from roost.waitingroom.service import WaitingRoom
from roost.waitingroom.settings import QueueSettings
from roost.waitingroom.views import changes_in, world_view

log = logging.getLogger("roost.waitingroom.worlds")


@dataclass(slots=True)
class World:
    """One world: its room in the store, the loops that serve it, and the desk where its people ask."""

    room: WaitingRoom
    keyring: KeyRing
    loops: Loops
    presence: Presence = field(init=False)
    admitter: Admitter = field(init=False)
    push: Push = field(init=False)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.presence = Presence(self.room, self.loops)
        self.admitter = Admitter(self.room, self.loops)
        self.push = Push(self.room.feed, self.name, self.loops)
        self.desk = Desk(self.room, self.presence, self.push, self.keyring)

    @property
    def name(self) -> str:
        return self.room.world


class Worlds:
    """Every world that the settings name. It holds places for servers, so it is told when one ends."""

    def __init__(
        self,
        store: Store,
        settings: QueueSettings,
        keyring: KeyRing,
        *,
        namespace: str = "",
        loops: Loops | None = None,
    ) -> None:
        """`namespace` is what the exported status calls the region of this Roost."""
        loops = loops or Loops()
        policy = settings.policy()
        self.keyring = keyring
        self._store = store
        self._worlds = {
            name: World(WaitingRoom(store, name, policy), keyring, loops)
            for name in parse_worlds(settings.worlds)
        }
        first = self.all()[0]
        self.export = StatusExport(store, first.room, first.admitter, namespace or first.name, loops)

    def of(self, name: str) -> World:
        world = self._worlds.get(name)
        if world is None:
            raise e.UnknownWorld(f"there is no world {name[:40]!r}")
        return world

    def all(self) -> list[World]:
        return list(self._worlds.values())

    @property
    def metrics(self) -> WorldMetrics:
        return WorldMetrics(self)

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """What a process runs for its worlds; a manager also lets people in, where it leads."""
        running = [world.presence.run() for world in self.all()]
        if "manager" not in roles:
            return running
        return [*running, self.export.run(), *map(self._manage, self.all())]

    async def _manage(self, world: World) -> None:
        await self._store.leader(world.room.scope, "manager").lead(world.admitter.run)

    # -- what game servers say

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        world = self.of(given.world)
        try:
            ticket = self.keyring.passes.ticket(given.ticket_id, given.world)
        except e.TokenRefused as error:
            log.info("ticket refused", extra={"serverId": given.server_id, "reason": error.message})
            raise e.TicketRefused from None
        answer = await world.room.consume(
            ticket.user, ticket.tid, given.server_id, given.life, given.connection
        )
        log.info(
            "consume",
            extra={"userId": ticket.user, "ticketId": ticket.tid[:8], "result": type(answer).__name__},
        )
        match answer:
            case answers.Admitted(number, nickname, region, left_ms):
                return ConsumeReply(ticket.user, nickname, region, number, left_ms)
            case answers.ServerFull():
                raise e.ServerFull(f"server {given.server_id} takes nobody more")
            case answers.ServerUnknown():
                raise e.ServerNotReported(f"server {given.server_id}, life {given.life}, has not reported")
            case answers.Used():
                raise e.TicketUsed
            case answers.Expired():
                raise e.TicketRefused("the ticket has expired")
            case _:
                raise e.TicketRefused("there is no such ticket")

    async def release(self, name: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        answer = await self.of(name).room.release(
            given.user_id, server_id, given.life, given.connection, given.how
        )
        return ReleaseReply(answer.held_ms if isinstance(answer, answers.Released) else 0)

    async def report(self, name: str, server_id: str, given: ReportInput) -> ReportReply:
        answer = await self.of(name).room.report(
            server_id,
            given.life,
            number=given.number,
            capacity=given.capacity,
            users=given.users,
            counted=given.counted,
            url=given.url,
        )
        match answer:
            case answers.Reported(consumed, asking):
                return ReportReply(consumed, list(map(Asking, asking[::2], asking[1::2])))
            case answers.Stale():
                return ReportReply(given.counted)
            case answers.Fenced(life):
                raise e.FencedInstance(f"server {server_id} lives as life {life}")

    # -- what operators ask for

    async def view(self, name: str) -> WorldView:
        """As the store has it now, not as the board was a second ago."""
        room = self.of(name).room
        return world_view(name, await room.read_board(), room.policy, time.time() * 1e6)

    async def govern(self, name: str, patch: WorldPatch) -> WorldView:
        """Change how a world is run; `PolicyConflict` if it is not at the revision that the patch expects."""
        room = self.of(name).room
        answer = await room.govern(**changes_in(patch))
        if isinstance(answer, answers.Conflict):
            raise e.PolicyConflict(f"the world is at revision {answer.revision}")
        return await self.view(name)

    async def kick(self, name: str, user: str) -> None:
        """Take somebody's place or ticket away."""
        if isinstance(await self.of(name).room.leave(user, kicked=True), answers.Inside):
            raise e.InvalidInput("they are in the game: the game server must let them go")

    # -- what discovery says

    async def server_ended(self, server: ServerLife, died: bool) -> None:
        for world in self.all():
            await world.room.server_ended(server, died)

    async def only_these_live(self, servers: Collection[ServerLife], as_of_us: int) -> None:
        for world in self.all():
            await world.room.only_these_live(servers, as_of_us)
