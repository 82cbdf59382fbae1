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
import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    Instance,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.api.queue import WORLD
from roost.core.backoff import Backoff
from roost.core.errors import InvalidInput, ServerIdTaken, StoreError, StoreUnavailable, UnknownInstance
from roost.sdk.door import Door
from roost.sdk.heart import Heart, MakeTransport, Registration, Word
from roost.sdk.memory import CONFIRM_AFTER_S, ListDisk, ListGuard
from roost.sdk.transport import Transport

log = logging.getLogger("roost.sdk")

LONGEST_DEFAULT_TTL_S = 30.0


class Client:
    """One client for all of Roost. Use it as an async context manager, on one event loop."""

    def __init__(
        self,
        url: str,
        make_transport: MakeTransport,
        make_beat_transport: MakeTransport,
        *,
        ttl_seconds: float,
        heartbeat_interval_ms: int | None,
        cache_folder: Path | None,
    ) -> None:
        self.url = url
        self._make_transport = make_transport
        self._make_beat_transport = make_beat_transport
        self._ttl_seconds = ttl_seconds
        self._interval_ms = heartbeat_interval_ms
        self._disk = ListDisk(cache_folder, url) if cache_folder is not None else None
        self._guards: dict[tuple[str, str], ListGuard] = {}
        self._registrations: dict[str, Registration] = {}
        self._heart: Heart | None = None
        self._listeners: set[asyncio.Task[None]] = set()
        self._open: Transport | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await self._transport()
        except StoreUnavailable as error:
            # A server that starts while nobody answers goes on with what it knows; each call tries anew.
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
                self._open = await self._make_transport()
            return self._open

    # -- an instance speaks

    async def register(self, *, type: str, group: str, **fields: Any) -> Registered:  # noqa: A002 — the documented name
        """Make an instance known; fields as in `RegisterInput`. Host and systemInfo are filled in."""
        given = self._filled({"type": type, "group": group, **fields})
        registered = await (await self._transport()).register(given)
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
        return await (await self._transport()).heartbeat(
            instance_id, _beat(patch, known.life if known else "")
        )

    def start_auto_heartbeat(
        self, instance_id: str, on_word: Callable[[Word], None] | None = None
    ) -> Registration:
        """Beat for the instance from a thread of its own; set fields of the result to have them reported."""
        registration = self._registrations.get(instance_id)
        if registration is None:
            raise UnknownInstance(f"{instance_id} was not registered by this client")
        if on_word is not None:
            registration.on_word = on_word
        if self._heart is None:
            self._heart = Heart(self._make_beat_transport)
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
        await (await self._transport()).remove(instance_id, type, group, known.life if known else "")

    @contextlib.asynccontextmanager
    async def registered(
        self,
        *,
        type: str,  # noqa: A002
        group: str,
        on_word: Callable[[Word], None] | None = None,
        **fields: Any,
    ) -> AsyncIterator[Registration]:
        """Registered and beating inside the block; removed on the way out, also on SIGTERM.

        A server id that a crashed predecessor still bears is waited for, until its lease is over.
        """
        registered = await self._register_when_free(type=type, group=group, **fields)
        registration = self.start_auto_heartbeat(registered.instance_id, on_word)
        try:
            with _cancelled_by_sigterm():
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
        async with Door(
            await self._transport(), registration, world=world, capacity=capacity, url=url
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
        key = (type, group)
        guard = self._guards.setdefault(key, ListGuard())
        try:
            fresh = await (await self._transport()).discover(type, group, labels, verify)
        except StoreError as error:
            kept = self._disk.load(type, group) if self._disk is not None else None
            if kept is None or labels:
                raise
            log.warning("serving the last list", extra={"age_s": round(kept[1], 1), "reason": error.message})
            return kept[0].instances
        if labels:
            return fresh.instances
        believed = guard.believe(fresh, time.monotonic())
        if guard.doubts:
            log.warning("a list that cannot be true is doubted", extra={"type": type, "group": group})
        elif self._disk is not None:
            self._disk.save(type, group, believed)
        return believed.instances

    async def get(self, instance_id: str) -> InstanceDetail:
        """One instance, living or gone, with its history."""
        return await (await self._transport()).get(instance_id)

    async def watch(
        self,
        type: str = "*",  # noqa: A002
        group: str = "*",
        *,
        labels: Sequence[str] = (),
    ) -> AsyncIterator[Change]:
        """Every change, a snapshot first. Outlives outages; a snapshot that cannot be true is held back."""
        backoff = Backoff(0.1, 5.0)
        guard = ListGuard()
        while True:
            try:
                async for change in (await self._transport()).watch(type, group, labels):
                    backoff.reset()
                    if change.event == "snapshot" and not self._is_believed(guard, change):
                        await asyncio.sleep(CONFIRM_AFTER_S)
                        break  # a second snapshot will confirm it or not
                    yield change
            except StoreError as error:
                log.warning("watch interrupted", extra={"reason": error.message})
            await asyncio.sleep(backoff.next())

    @staticmethod
    def _is_believed(guard: ListGuard, change: Change) -> bool:
        listed = InstanceList(change.instances or [], change.revision, change.revision_at)
        return guard.believe(listed, time.monotonic()) is listed

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
        async def listen() -> None:
            known: dict[str, str] = {}
            async for change in self.watch(type_, group):
                _tell(change, known, added, removed)

        task = asyncio.create_task(listen(), name=f"roost listen {type_} {group}")
        self._listeners.add(task)
        task.add_done_callback(self._listeners.discard)
        return lambda: (task.cancel(), None)[1]

    def _filled(self, fields: dict[str, Any]) -> RegisterInput:
        own: dict[str, Any] = {"hostname": socket.gethostname(), "ttl_seconds": self._ttl_seconds}
        own["private_ip"] = _own_address(self.url)
        own["system_info"] = system_info()
        try:
            given = RegisterInput(**{**own, **fields})
            return msgspec.json.decode(msgspec.json.encode(given), type=RegisterInput)
        except (TypeError, msgspec.ValidationError) as error:
            raise InvalidInput(f"cannot register: {error}") from None


def _beat(patch: dict[str, Any], life: str) -> Beat:
    if unknown := patch.keys() - {"status", "load", "performance"}:
        raise InvalidInput(f"a beat does not carry {', '.join(sorted(unknown))}")
    return Beat(life=life, **patch)


def _tell(
    change: Change,
    known: dict[str, str],
    added: Callable[[Instance], None],
    removed: Callable[[str], None],
) -> None:
    """Turn changes into calls: once per life of an instance, also across snapshots."""
    listed = change.instances if change.event == "snapshot" else [change.instance]
    if change.event == "snapshot":
        present = {instance.instance_id for instance in change.instances or ()}
        for gone in known.keys() - present:
            del known[gone]
            removed(gone)
    elif change.event == "removed":
        if known.pop(change.instance_id, None) is not None:
            removed(change.instance_id)
        return
    for instance in listed or ():
        if instance is not None and known.get(instance.instance_id) != instance.life:
            known[instance.instance_id] = instance.life
            added(instance)


@contextlib.contextmanager
def _cancelled_by_sigterm() -> Any:
    """SIGTERM cancels the task inside, so that it can clean up; then the signal takes its course.

    A program that handles SIGTERM itself is left alone.
    """
    mine = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and sys.platform != "win32"
    )
    if not mine:
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    terminated = False

    def on_sigterm() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, on_sigterm)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        if terminated:
            loop.call_later(0, _end_by_sigterm, task)


def _end_by_sigterm(task: asyncio.Task[Any]) -> None:
    """Once the task has cleaned up, end as if nobody had caught the signal."""
    task.add_done_callback(lambda _: signal.raise_signal(signal.SIGTERM))


def system_info() -> dict[str, Any]:
    """What the machine is, for the record."""
    info: dict[str, Any] = {
        "os": platform.system().lower(),
        "arch": platform.machine(),
        "cpu": os.cpu_count() or 0,
    }
    with contextlib.suppress(ValueError, OSError, AttributeError):
        info["memoryMb"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return info


def _own_address(url: str) -> str:
    """Our address on the way to the other side; no packet is sent to learn it."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or 80
        if not host or "," in host:
            return ""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return str(probe.getsockname()[0])
    except (OSError, ValueError):
        return ""
