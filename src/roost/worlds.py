"""The worlds of this process: each waiting room, what a process keeps beside it, and the keys that sign."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from roost.api.queue import (
    Asking,
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.core import errors as e
from roost.core.passes import Passes
from roost.core.signing import MasterKey, parse_keys
from roost.discovery.failover import ServerLife
from roost.settings import Settings
from roost.store.keys.waitingroom import STATUS
from roost.store.store import Store
from roost.version import __version__
from roost.waitingroom import scripts as answers
from roost.waitingroom.admitter import Admitter
from roost.waitingroom.presence import Presence
from roost.waitingroom.push import Push
from roost.waitingroom.rules import parse_worlds
from roost.waitingroom.service import WaitingRoom

log = logging.getLogger("roost.worlds")

EXPORT_S = 5.0


@dataclass(slots=True)
class World:
    name: str
    room: WaitingRoom
    presence: Presence = field(init=False)
    admitter: Admitter = field(init=False)
    push: Push = field(init=False)
    entries: int = 0
    """Entries that this process answered."""

    def __post_init__(self) -> None:
        self.presence = Presence(self.room)
        self.admitter = Admitter(self.room)
        self.push = Push(self.room.feed)


class Worlds:
    """Every world that the settings name. It holds places for servers, so it is told when one ends."""

    def __init__(self, store: Store, settings: Settings) -> None:
        policy = settings.queue.policy()
        self._worlds = {
            name: World(name, WaitingRoom(store, name, policy))
            for name in parse_worlds(settings.queue.worlds)
        }
        self._settings = settings
        self._store = store
        self._passes: Passes | None = None
        self.takes_unsigned = settings.is_dev() and not settings.queue_keys

    def of(self, name: str) -> World:
        world = self._worlds.get(name)
        if world is None:
            raise e.UnknownWorld(f"there is no world {name[:40]!r}")
        return world

    def all(self) -> list[World]:
        return list(self._worlds.values())

    @property
    def passes(self) -> Passes:
        """Made on first use: who runs no waiting room needs no keys."""
        if self._passes is None:
            self._passes = Passes(
                _keys(self._settings, self._settings.queue_keys, "ROOST_QUEUE_KEYS"),
                _keys(self._settings, self._settings.ticket_keys, "ROOST_TICKET_KEYS"),
            )
            if self.takes_unsigned:
                log.warning("entries need no signature: profile dev without ROOST_QUEUE_KEYS")
        return self._passes

    async def export_status(self) -> None:
        """Write `server:status` for the tools of others, every 5 s while we lead the first world."""
        world, key = self.all()[0], self._store.keys.plain(STATUS)
        while True:
            await asyncio.sleep(EXPORT_S)
            if not world.admitter.leading:
                continue
            try:
                board = await world.room.board.get()
                region = self._settings.namespace or world.name
                fields = ("max_cap", board.capacity, "current_users", board.inside, "region", region)
                await self._store.call("HSET", key, *fields, "version", __version__, key=key, idempotent=True)
                await self._store.call("EXPIRE", key, int(6 * EXPORT_S), key=key, idempotent=True)
            except e.StoreError as error:
                log.debug("status not exported", extra={"reason": error.message})

    # -- what game servers say

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        world = self.of(given.world)
        try:
            ticket = self.passes.ticket(given.ticket_id, given.world)
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

    # -- what discovery says

    async def server_ended(self, server: ServerLife, died: bool) -> None:
        for world in self.all():
            await world.room.server_ended(server, died)

    async def only_these_live(self, servers: Collection[ServerLife], as_of_us: int) -> None:
        for world in self.all():
            await world.room.only_these_live(servers, as_of_us)


def _keys(settings: Settings, configured: str, variable: str) -> tuple[MasterKey, ...]:
    """The configured keys; in profile dev one that is made once and kept in the data folder."""
    if configured:
        return parse_keys(configured)
    if not settings.is_dev():
        raise e.WorldClosed(f"no keys to sign with: {variable} is not set", hint="`roost config --example`")
    path = settings.data / "dev-keys"
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        ours = path.with_name(f"dev-keys.{secrets.token_hex(4)}")
        with os.fdopen(os.open(ours, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("dev:" + base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
        with suppress(FileExistsError):  # whoever was first; nobody reads it half written
            os.link(ours, path)
        ours.unlink()
    return parse_keys(path.read_text(encoding="utf-8").strip())
