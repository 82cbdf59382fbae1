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
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self

from roost.api.discovery import Beat, BeatReply, Change, Instance, InstanceDetail, Registered
from roost.api.queue import WORLD
from roost.core.errors import InvalidInput, ServerIdTaken, StoreError, StoreUnavailable, UnknownInstance
from roost.core.loops import Loops
from roost.sdk.door import Door
from roost.sdk.heart import Directive, Heart, Registration
from roost.sdk.machine import filled
from roost.sdk.memory import ListDisk, ListMemory
from roost.sdk.ports import OpenTransport, Registry, Transport
from roost.sdk.signals import cancelled_by_sigterm
from roost.sdk.watching import Watch, tell

log = logging.getLogger("roost.sdk")

LONGEST_DEFAULT_TTL_S = 30.0


class Client:
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
        self.url = url
        self.loops = loops or Loops()
        """Everything that this client repeats in the background, and how it is doing."""
        self._open_transport = open_transport
        self._open_beat_transport = open_beat_transport
        self._ttl_seconds = ttl_seconds
        self._interval_ms = heartbeat_interval_ms
        self._lists = ListMemory(ListDisk(cache_folder, url) if cache_folder is not None else None)
        self._registrations: dict[str, Registration] = {}
        self._heart: Heart | None = None
        self._listeners: set[asyncio.Task[None]] = set()
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
        for task in self._listeners:
            task.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)
        await self.stop_auto_heartbeat()
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def _transport(self) -> Transport:
        async with self._opening:
            if self._open is None:
                self._open = await self._open_transport()
            return self._open

    async def _registry(self) -> Registry:
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
        )
        return registered

    async def heartbeat(self, instance_id: str, **patch: Any) -> BeatReply:
        """One beat by hand; `patch` may hold status, load, performance."""
        known = self._registrations.get(instance_id)
        return await (await self._registry()).heartbeat(
            instance_id, _beat(patch, known.life if known else "")
        )

    def start_auto_heartbeat(
        self, instance_id: str, on_directive: Callable[[Directive], None] | None = None
    ) -> Registration:
        """Beat for the instance from a thread of its own; set fields of the result to have them reported."""
        registration = self._registrations.get(instance_id)
        if registration is None:
            raise UnknownInstance(f"{instance_id} was not registered by this client")
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

    async def remove(self, instance_id: str, type: str = "", group: str = "") -> None:  # noqa: A002
        """Take the instance out for good."""
        known = self._registrations.pop(instance_id, None)
        if self._heart is not None:
            self._heart.drop(instance_id)
        await (await self._registry()).remove(instance_id, type, group, known.life if known else "")

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

        A server id that a crashed predecessor still bears is waited for, until its lease is over.
        """
        registered = await self._register_when_free(type=type, group=group, **fields)
        registration = self.start_auto_heartbeat(registered.instance_id, on_directive)
        try:
            with cancelled_by_sigterm():
                yield registration
        finally:
            if registration.ended is None:
                with contextlib.suppress(StoreError, UnknownInstance):
                    await asyncio.shield(self.remove(registered.instance_id, type, group))

    async def _register_when_free(self, **fields: Any) -> Registered:
        deadline = time.monotonic() + 2 * (self._ttl_seconds or LONGEST_DEFAULT_TTL_S)
        while True:
            try:
                return await self.register(**fields)
            except ServerIdTaken as taken:
                if time.monotonic() > deadline:
                    raise
                log.warning("waiting for the server id", extra={"reason": taken.message})
                await asyncio.sleep(1.0)

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

    # -- somebody looks

    async def discover(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        verify: bool = False,
        labels: Sequence[str] = (),
    ) -> list[Instance]:
        """Live instances. While nobody answers: the last list that was believed, from memory or disk."""
        try:
            fresh = await (await self._registry()).discover(type, group, labels, verify)
        except StoreError as error:
            kept = None if labels else self._lists.recall(type, group, error.message)
            if kept is None:
                raise
            return kept
        return fresh.instances if labels else self._lists.believe(type, group, fresh)

    async def get(self, instance_id: str) -> InstanceDetail:
        """One instance, living or gone, with its history."""
        return await (await self._registry()).get(instance_id)

    def watch(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        labels: Sequence[str] = (),
    ) -> AsyncGenerator[Change, None]:
        """Every change, a snapshot first. Outlives outages; a snapshot that cannot be true is held back."""
        return Watch(self._registry, (type, group, labels), self.loops.loop("sdk-watch")).changes()

    def on_server_added(
        self,
        callback: Callable[[Instance], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        """Call back for every instance that is there or appears; returns the way to stop."""
        return self._listen(type, group, added=callback)

    def on_server_removed(
        self,
        callback: Callable[[str], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        """Call back with the id of every instance that leaves; returns the way to stop."""
        return self._listen(type, group, removed=callback)

    def _listen(
        self,
        type_: str,
        group: str,
        added: Callable[[Instance], None] = lambda instance: None,
        removed: Callable[[str], None] = lambda instance_id: None,
    ) -> Callable[[], None]:
        known: dict[str, str] = {}
        loop = self.loops.loop("sdk-listen")

        async def listen() -> None:
            async with contextlib.aclosing(self.watch(type_, group)) as changes:
                async for change in changes:
                    tell(change, known, added, removed)
                    loop.good()

        task = asyncio.create_task(loop.keep_running(listen), name=f"roost listen {type_} {group}")
        self._listeners.add(task)
        task.add_done_callback(self._listeners.discard)
        return lambda: (task.cancel(), None)[1]


def _beat(patch: dict[str, Any], life: str) -> Beat:
    if unknown := patch.keys() - {"status", "load", "performance"}:
        raise InvalidInput(f"a beat does not carry {', '.join(sorted(unknown))}")
    return Beat(life=life, **patch)
