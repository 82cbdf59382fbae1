"""The worlds of this process: each waiting room and what a process keeps beside it, by name."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

from roost.api.discovery import Watcher
from roost.api.queue import (
    Asking,
    ConsumeInput,
    ConsumeReply,
    Forecast,
    ForecastInput,
    PersonView,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
    WorldPatch,
    WorldView,
)
from roost.core import errors as e
from roost.core.loops import Loops
from roost.core.tracing import Tracer, admit_context
from roost.store.store import Store
from roost.waitingroom import scripts as answers
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.desk import Desk
from roost.waitingroom.export import StatusExport
from roost.waitingroom.fleet import Fleet
from roost.waitingroom.keyring import KeyRing
from roost.waitingroom.metrics import WorldMetrics
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.rules import parse_worlds
from roost.waitingroom.service import WaitingRoom
from roost.waitingroom.settings import QueueSettings
from roost.waitingroom.views import changes_in, forecast_view, person_view, world_view

log = logging.getLogger("roost.waitingroom.worlds")

USUAL_OUTCOMES = ("WAITING", "PROMOTED")


@dataclass(slots=True)
class World:
    """One world: its room in the store, the loops that serve it, and the desk where its people ask."""

    room: WaitingRoom
    keyring: KeyRing
    loops: Loops
    discovery: Watcher
    server_type: str
    tracer: Tracer | None = None
    presence: Presence = field(init=False)
    fleet: Fleet = field(init=False)
    admitter: Admitter = field(init=False)
    push: Push = field(init=False)
    desk: Desk = field(init=False)
    export: StatusExport = field(init=False)

    def __post_init__(self) -> None:
        self.presence = Presence(self.room, self.loops, self.keyring)
        self.fleet = Fleet(self.room, self.discovery, self.server_type, self.loops)
        self.admitter = Admitter(self.room, self.fleet, self.loops, self.tracer)
        self.push = Push(self.room.feed, self.name, self.loops)
        self.desk = Desk(self.room, self.presence, self.push, self.keyring)

    @property
    def name(self) -> str:
        return self.room.world


class Worlds:
    """Every world that the settings name."""

    def __init__(
        self,
        store: Store,
        settings: QueueSettings,
        keyring: KeyRing,
        discovery: Watcher,
        *,
        loops: Loops | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """`discovery` says which servers there are."""
        self._tracer = tracer
        self.keyring = keyring
        self._store = store
        self._policy = settings.policy()
        self._discovery = discovery
        self._loops = loops or Loops()
        self._worlds: dict[str, World] = {}
        self.entries: Counter[tuple[str, str]] = Counter()
        """Calls for entry by world and outcome: the status of the answer, or the code of the refusal."""
        for name, type_ in parse_worlds(settings.worlds).items():
            self.add(name, type_)

    def of(self, name: str) -> World:
        world = self._worlds.get(name)
        if world is None:
            raise e.UnknownWorld(f"there is no world {name[:40]!r}")
        return world

    def add(self, name: str, server_type: str) -> World:
        """One more world; its loops are the caller's to run, see `loops_of`."""
        room = WaitingRoom(self._store, name, self._policy, self._tracer)
        world = World(room, self.keyring, self._loops, self._discovery, server_type, self._tracer)
        world.export = StatusExport(
            self._store, room, world.admitter, world.fleet, is_first=not self._worlds, loops=self._loops
        )
        self._worlds[name] = world
        self.entries.update({(name, outcome): 0 for outcome in USUAL_OUTCOMES})
        return world

    def remove(self, name: str) -> None:
        """Nobody is served there any more; what the store holds of it stays."""
        if self._worlds.pop(name, None) is not None:
            for key in [key for key in self.entries if key[0] == name]:
                del self.entries[key]

    def all(self) -> list[World]:
        return list(self._worlds.values())

    @property
    def metrics(self) -> WorldMetrics:
        return WorldMetrics(self)

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """What a process runs for its worlds: a gateway tells who is there, a leader lets people in.

        Only a gateway signs: its sign says that people can be heard.
        """
        return [loop for world in self.all() for loop in self.loops_of(world, roles)]

    def loops_of(self, world: World, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """What a process runs for one of them."""
        running = [world.presence.run()] if "gateway" in roles else []
        if "manager" in roles:
            running += [world.export.run(), self._manage(world)]
        return running

    async def _manage(self, world: World) -> None:
        await self._store.leader(world.room.scope, "manager").lead(world.admitter.run)

    # -- what game servers say

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        world, began_ns = self.of(given.world), time.time_ns()
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
            case answers.Admitted(number, nickname, region, left_ms, trace):
                above = admit_context(trace, ticket.tid) if trace else ""
                traceparent = self._consumed(above, given, began_ns) if above else ""
                return ConsumeReply(ticket.user, nickname, region, number, left_ms, traceparent)
            case answers.ServerFull():
                raise e.ServerFull(f"server {given.server_id} takes nobody more")
            case answers.ServerUnknown():
                raise e.ServerNotReported(
                    f"server {given.server_id}, life {given.life}, is not known here or has not reported",
                    hint=f"world {given.world} takes servers of type {world.server_type} that are registered",
                )
            case answers.Used():
                raise e.TicketUsed
            case answers.Expired():
                raise e.TicketRefused("the ticket has expired")
            case _:
                raise e.TicketRefused("there is no such ticket")

    def _consumed(self, above: str, given: ConsumeInput, began_ns: int) -> str:
        """Tells the span of a consume; returns the context for what follows."""
        if self._tracer is None:
            return above
        span = self._tracer.begin(
            "consume", above, began_ns=began_ns, world=given.world, server_id=given.server_id
        )
        span.end(outcome="admitted")
        return span.context

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
                return ReportReply(consumed, asking=list(map(Asking, asking[::2], asking[1::2])))
            case answers.Pending():
                return ReportReply(given.counted, known=False)
            case answers.Stale():
                return ReportReply(given.counted)
            case answers.Fenced(life):
                raise e.FencedInstance(f"life {life} of server {server_id} has ended")

    async def check_ticket_keys(self, name: str) -> bool:
        """`InvalidInput` where tickets of the gateways could not be read here: they sign with another key.

        False: no gateway has signed yet.
        """
        theirs = (await self.of(name).room.read_board()).numbers.get("ticket_key", "")
        if theirs and theirs not in self.keyring.ticket_digests:
            raise e.InvalidInput(
                "the gateways sign tickets with a key that this process lacks: it would refuse all",
                hint="give it their ROOST_TICKET_KEYS (profile dev: their data folder)",
            )
        return bool(theirs)

    # -- what operators ask for

    async def view(self, name: str) -> WorldView:
        """As the store has it now, not as the board was a second ago."""
        world = self.of(name)
        board = await world.room.read_board()
        return world_view(name, world.server_type, board, world.room.policy, time.time() * 1e6)

    async def person(self, name: str, user: str) -> PersonView:
        """What somebody has here; a place whose time is not known has none."""
        world = self.of(name)
        seen, board = await world.room.look(user), await world.room.read_board()
        return person_view(name, user, seen, board, world.room.policy, time.time() * 1e6)

    async def forecast(self, name: str, asked: ForecastInput) -> Forecast:
        """How long people would wait under another limit or rate."""
        world = self.of(name)
        return forecast_view(await world.room.read_board(), world.room.policy, asked)

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

    async def drop_server(self, name: str, server_id: str) -> None:
        """Take a server's life out of the ledger, whatever discovery says; its people keep their order."""
        if not await self.of(name).room.drop(server_id):
            raise e.UnknownInstance(f"no server {server_id[:40]!r} is in the ledger of world {name}")
