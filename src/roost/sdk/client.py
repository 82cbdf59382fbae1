"""The client: `async with roost.connect(url) as client`.

async with roost.connect("http://127.0.0.1:8400", token=…) as client:
    async with client.registered(type="game", group="kr-1", ports={"udp": 7777}) as me:
        me.load = 12
        servers = await client.discover("game", "kr-1")
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from roost.api.binding import ENTITY, Home
from roost.api.discovery import Beat, BeatReply, EndCause, Registered
from roost.api.queue import WORLD
from roost.core.backoff import Backoff
from roost.core.errors import CURABLE, InvalidInput, ServerIdTaken, StoreUnavailable, UnknownInstance
from roost.core.loops import Loops
from roost.sdk.door import Door
from roost.sdk.finding import find
from roost.sdk.heart import Directive, Heart, Registration, stranger
from roost.sdk.looking import Looking
from roost.sdk.machine import filled
from roost.sdk.memory import ListDisk, ListMemory
from roost.sdk.ports import OpenTransport, Registry, Transport
from roost.sdk.signals import cancelled_by_sigterm

if TYPE_CHECKING:
    from roost.sdk.direct.trader import Trader
    from roost.settings import Settings

log = logging.getLogger("roost.sdk")

LONGEST_DEFAULT_TTL_S = 30.0
HELD_BACK_S = 60.0
"""Where several die together, leases are prolonged: only some of a fleet end in ten seconds (`reaper.py`)."""
ID_RETRY_S = 1.0
LAST_S = 1.0
"""How long a server that ends tries to be removed: who stops it does not wait for ever."""
STRANGER_INTERVAL_S = 5.0
"""Between the beats for somebody whose lease we do not know: three in the shortest default one."""


class Client(Looking):
    """One client for all of Roost. Use it as an async context manager, on one event loop."""

    def __init__(
        self,
        url: str,
        open_transport: OpenTransport,
        open_beat_transport: OpenTransport,
        *,
        loops: Loops | None = None,
        ttl_seconds: float = 0.0,
        heartbeat_interval_ms: int | None = None,
        cache_folder: Path | None = None,
    ) -> None:
        """`open_beat_transport` is called by the heart, which lives in a thread and on a loop of its own."""
        lists = ListMemory(ListDisk(cache_folder, url) if cache_folder is not None else None)
        super().__init__(self._opened_registry, loops or Loops(), lists)
        self.url = url
        self._open_transport = open_transport
        self._open_beat_transport = open_beat_transport
        self._ttl_seconds = ttl_seconds
        self._interval_ms = heartbeat_interval_ms
        self._registrations: dict[str, Registration] = {}
        self._heart: Heart | None = None
        self._open: Transport | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await self._transport()
        except StoreUnavailable as error:
            # A server that starts while nobody answers goes on with what it knows; each call tries again.
            log.warning("nobody answers yet", extra={"reason": error.message})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop beating and hang up. What is registered stays, until its lease ends or it is removed."""
        await self._stop_listening()
        await self.stop_auto_heartbeat()
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def _transport(self) -> Transport:
        async with self._opening:
            if self._open is None:
                self._open = await self._open_transport()
            return self._open

    async def _opened_registry(self) -> Registry:
        return (await self._transport()).registry

    # -- an instance speaks

    async def register(self, *, type: str, group: str, **fields: Any) -> Registered:  # noqa: A002 — the documented name
        """Make an instance known; fields as in `RegisterInput`. Host and systemInfo are filled in."""
        given = filled({"type": type, "group": group, "ttl_seconds": self._ttl_seconds, **fields}, self.url)
        registered = await (await self._registry()).register(given)
        self._registrations[registered.instance_id] = Registration(
            given,
            registered.instance_id,
            registered.life,
            (self._interval_ms or registered.heartbeat_interval_ms) / 1000,
            given.status,
            given.load,
            given.performance,
            proofs={registered.life: registered.proof},
        )
        return registered

    async def heartbeat(self, instance_id: str, **patch: Any) -> BeatReply:
        """One beat by hand; `patch` may hold status, load, performance. The id may be a server id."""
        registry = await self._registry()
        if (known := self._own(instance_id)) is not None:
            beat = _beat(patch, known.life, known.proof)
            reply = await registry.heartbeat(known.instance_id, beat)
            known.renew_proof(beat, reply)
            return reply
        try:
            return await registry.heartbeat(instance_id, _beat(patch, ""))
        except UnknownInstance:
            found = (await find(registry, instance_id)).instance
            if found is None or found.instance_id == instance_id:
                raise
            return await registry.heartbeat(found.instance_id, _beat(patch, ""))

    def start_auto_heartbeat(
        self, instance_id: str, on_directive: Callable[[Directive], None] | None = None
    ) -> Registration:
        """Beat for the instance from a thread of its own; set fields of the result to have them reported.

        Any id will do, also a server id, and one that another process registered: its beats carry only what
        is set here, and should the store forget it, nobody here can register it again.
        """
        registration = self._own(instance_id)
        if registration is None:
            interval_s = self._interval_ms / 1000 if self._interval_ms else STRANGER_INTERVAL_S
            registration = stranger(instance_id, interval_s)
        if on_directive is not None:
            registration.on_directive = on_directive
        if self._heart is None:
            self._heart = Heart(self._open_beat_transport, self.loops)
        self._heart.add(registration)
        return registration

    async def stop_auto_heartbeat(self) -> None:
        heart, self._heart = self._heart, None
        if heart is not None:
            await heart.stop()

    async def remove(
        self,
        instance_id: str,
        type: str = "",  # noqa: A002
        group: str = "",
        *,
        cause: EndCause = "terminated",
    ) -> None:
        """Take it out; `crashed` tells the others that what it did is lost. The id may be a server's."""
        registry, life = await self._registry(), ""
        if (known := self._own(instance_id)) is not None:
            instance_id, life = known.instance_id, known.life
        self._stop_beating(instance_id)
        try:
            await registry.remove(instance_id, type, group, life, cause)
        except UnknownInstance:
            found = (await find(registry, instance_id, type or "*")).instance
            if found is None or found.instance_id == instance_id:
                raise
            await registry.remove(found.instance_id, type, group, life, cause)

    def _stop_beating(self, instance_id: str) -> None:
        self._registrations.pop(instance_id, None)
        if self._heart is not None:
            self._heart.drop(instance_id)

    def _own(self, any_id: str) -> Registration | None:
        """What this client registered under that instance or server id."""
        if any_id in self._registrations:
            return self._registrations[any_id]
        named = (one for one in self._registrations.values() if one.given.server_id == any_id)
        return next(named, None)

    @contextlib.asynccontextmanager
    async def registered(
        self,
        *,
        type: str,  # noqa: A002
        group: str,
        on_directive: Callable[[Directive], None] | None = None,
        **fields: Any,
    ) -> AsyncIterator[Registration]:
        """Registered and beating inside the block; removed on the way out, also on SIGTERM.

        A server id that a crashed predecessor still bears is waited for, until its lease is over, also where
        that was prolonged because others died with it. Who lives longer is no predecessor: `ServerIdTaken`.
        """
        registered = await self._register_when_free(type=type, group=group, **fields)
        registration = self.start_auto_heartbeat(registered.instance_id, on_directive)
        try:
            with cancelled_by_sigterm():
                yield registration
        finally:
            if registration.ended is None:
                self._stop_beating(registration.instance_id)
                await asyncio.shield(_remove_at_last(self._registry, registration, type, group))

    async def _register_when_free(self, **fields: Any) -> Registered:
        deadline = time.monotonic() + 2 * (self._ttl_seconds or LONGEST_DEFAULT_TTL_S) + HELD_BACK_S
        while True:
            try:
                return await self.register(**fields)
            except ServerIdTaken as taken:
                if time.monotonic() > deadline:
                    raise
                log.warning("waiting for the server id", extra={"reason": taken.message})
                await asyncio.sleep(ID_RETRY_S)

    # -- where users are

    async def home_of(self, user: str, type: str = ENTITY) -> Home:  # noqa: A002
        """Which server holds a user, since when and why; `UnknownBinding` if none does."""
        return await (await self._transport()).homes.home_of(type, user)

    # -- a game server lets people in

    @contextlib.asynccontextmanager
    async def door(
        self,
        registration: Registration,
        *,
        world: str = WORLD,
        capacity: int | None = None,
        url: str = "",
    ) -> AsyncIterator[Door]:
        """The door of a registered server to the waiting room of a world, reporting while the block runs."""
        admission = (await self._transport()).admission
        async with Door(
            admission, registration, world=world, capacity=capacity, url=url, loops=self.loops
        ) as door:
            yield door

    # -- a program that trades

    def trader(
        self,
        account: str,
        *,
        servers: Sequence[str] = (),
        timeout_s: float = 15.0,
        cursor: Mapping[int, int] | None = None,
        next_seq: int = 0,
        settings: Settings | None = None,
    ) -> Trader:
        """A trader of this account at the order servers: `async with client.trader("acct-7") as trader`.

        `servers` are their addresses (host:port), by default those that discovery shows. A command without
        an answer ends with `OutcomeUnknown` after `timeout_s`; an owner that died is replaced after its lease
        (6 s). `cursor` is that of an earlier trader: its fills go on from there. Numbers of commands begin at
        `next_seq`, by default at the microseconds since 1970, so a later trader is above an earlier one.
        `settings`: where the secret of the servers comes from, by default those of this machine.
        """
        from roost.sdk.direct.trading import open_trader

        return open_trader(
            self,
            account,
            servers=servers,
            timeout_s=timeout_s,
            cursor=cursor or {},
            next_seq=next_seq,
            settings=settings,
        )


async def _remove_at_last(
    registry: Callable[[], Awaitable[Registry]], me: Registration, type_: str, group: str
) -> None:
    """On the way out: tried again for a moment. Where the store stays away the lease ends by itself."""
    until, pauses, why = time.monotonic() + LAST_S, Backoff(), ""
    while time.monotonic() < until:
        try:
            await (await registry()).remove(me.instance_id, type_, group, me.life, "terminated")
            return
        except UnknownInstance:
            return
        except CURABLE as error:
            why = error.message
        await asyncio.sleep(pauses.next())
    log.warning("not removed", extra={"instanceId": me.instance_id, "reason": why})


def _beat(patch: dict[str, Any], life: str, proof: str = "") -> Beat:
    if unknown := patch.keys() - {"status", "load", "performance"}:
        raise InvalidInput(f"a beat does not carry {', '.join(sorted(unknown))}")
    return Beat(life=life, proof=proof, **patch)
