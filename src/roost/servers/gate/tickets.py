"""Logging in by a ticket of a waiting room: the gate is then a server of that world."""

from __future__ import annotations

import asyncio

from roost.api.queue import How
from roost.core.errors import RoostError, TicketRefused, TokenRefused
from roost.core.passes import Passes
from roost.sdk.door import Door
from roost.servers.gameserver import for_player
from roost.servers.gate.session import Who

_HOW: dict[str, How] = {"closed": "clean", "failed": "failed"}
"""What becomes of a place, by how the session ended; all others are dropped, which holds it for a while."""


class Tickets:
    """An `Entrance`: consumes tickets through the door, and tells it who left."""

    def __init__(self, door: Door, world: str, passes: Passes) -> None:
        self.door = door
        self._world = world
        self._passes = passes
        self._leaving: dict[str, asyncio.Task[None]] = {}

    def owner_of(self, ticket: str) -> str:
        try:
            return self._passes.ticket(ticket, self._world).user
        except TokenRefused:
            raise TicketRefused from None

    async def enter(self, ticket: str, types: tuple[str, ...]) -> Who:
        leaving = self._leaving.get(self.owner_of(ticket))
        if leaving is not None:
            await asyncio.wait((leaving,))
        try:
            guest = await self.door.consume(ticket)
        except RoostError as error:
            raise for_player(error) from error
        who = Who(guest.user_id, guest.nickname, types)
        who.trace = guest.traceparent
        return who

    def leave(self, user: str, reason: str) -> None:
        guest = self.door.guests.get(user)
        if guest is None:
            return
        task = asyncio.create_task(
            self.door.leave(guest, _HOW.get(reason, "dropped")), name="roost gate leave"
        )
        self._leaving[user] = task
        task.add_done_callback(lambda done: self._left(user, done))

    def _left(self, user: str, done: asyncio.Task[None]) -> None:
        if self._leaving.get(user) is done:
            del self._leaving[user]

    async def close(self) -> None:
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()), timeout=2.0)
