"""The store as the rest of Roost sees it: calls, scripts, feeds, leadership."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from roost.core.errors import (
    DataFolderInUse,
    FormatMismatch,
    InvalidInput,
    StartFailed,
    StoreAccessDenied,
    StoreRefused,
    StoreUnavailable,
)
from roost.core.loops import Loops
from roost.store.call import Call, pack
from roost.store.connection import Access
from roost.store.feed import Feed
from roost.store.keys import FORMAT as FORMAT_KEY
from roost.store.keys import Keys
from roost.store.leader import LeaderLease
from roost.store.link import Link, LinkOptions
from roost.store.pubsub import Doorbells
from roost.store.scopes import Scope
from roost.store.scripts import Library
from roost.store.topology import Topology
from roost.store.topology.cluster import Cluster
from roost.store.topology.embedded import EmbeddedServer, launch, running_address
from roost.store.topology.sentinel import Sentinel
from roost.store.topology.standalone import Standalone
from roost.store.url import Address, Credentials, StoreUrl

FORMAT = 3
"""Number of the data format that this code reads and writes."""


class Store:
    """One store, on one event loop. `await Store.open(…)`, then `close()`."""

    def __init__(
        self, topology: Topology, options: LinkOptions, keys: Keys, loops: Loops | None = None
    ) -> None:
        self.keys = keys
        self.loops = loops or Loops()
        """Every loop of this process that goes on for ever, ours and those of the store's users."""
        self.topology = topology
        self.library = Library(topology, options)
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._submit = topology.submit
        self._bells = Doorbells(topology, options.connect_timeout_s, self.loops)
        self._feeds: dict[Scope, Feed] = {}
        self._embedded: EmbeddedServer | None = None
        self._on_leader_lost: list[Callable[[str], None]] = []

    @classmethod
    async def open(
        cls,
        url: StoreUrl,
        *,
        options: LinkOptions | None = None,
        keys: Keys | None = None,
        client_name: str = "roost",
        folder: Path | None = None,
        attach: bool = False,
        binary: str = "",
        wait_s: float | None = None,
    ) -> Self:
        """Connect, and check that the data is of our format.

        `embedded:` starts the server of its folder, or of `folder` where the URL names none; with
        `attach` a server that another process owns will do. `wait_s` is how long a store that is away
        is waited for; None: one attempt.
        """
        options, loops = options or LinkOptions(), Loops()
        server: EmbeddedServer | None = None
        if url.shape == "embedded":
            address, server = await _embedded(url.folder or folder, binary, attach, loops)
            url = StoreUrl("standalone", (address,))
        topology = make_topology(url, options, client_name, loops)
        store = cls(topology, options, keys or Keys(), loops)
        store._embedded = server
        try:
            await topology.ready(wait_s)
            await store.check_format()
        except BaseException:
            await store.close()
            raise
        return store

    def call(
        self,
        *args: str | bytes | int | float,
        key: bytes | None = None,
        timeout_s: float | None = None,
        idempotent: bool = False,
        bulk: bool = False,
    ) -> asyncio.Future[Any]:
        """Send one command; the future ends with its reply or with a `StoreError`.

        `key` decides the node on a cluster. `bulk` is for replies above 256 KB. Blocking commands do
        not belong here: everybody behind them would wait.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        timeout = self._options.command_timeout_s if timeout_s is None else timeout_s
        self._submit(Call(future, pack(args), self._loop.time() + timeout, key, idempotent, bulk))
        return future

    def listen(self, channel: bytes, ring: Callable[[bytes], None]) -> Callable[[], None]:
        """Have `ring` called on every message of a shard channel; returns the way to stop."""
        return self._bells.listen(channel, ring)

    def feed(self, scope: Scope) -> Feed:
        """The feed of a scope; one follower serves every reader in this process."""
        if scope not in self._feeds:
            self._feeds[scope] = Feed(
                self, self.keys.feed(scope), self.keys.bell(scope), self.loops, str(scope)
            )
        return self._feeds[scope]

    def leader(self, scope: Scope, name: str, *, job: str = "", ttl_ms: int = 10_000) -> LeaderLease:
        """A candidate for the leadership of a scope, or of one job in it."""
        key = self.keys.leader(scope, job)
        return LeaderLease(
            self.library,
            key,
            name,
            ttl_ms,
            loops=self.loops,
            on_lost=lambda: self._lost_leader(job or scope.tag),
            job=job or str(scope),
            connection=lambda: self.topology.connection_for(key),
        )

    def on_leader_lost(self, callback: Callable[[str], None]) -> None:
        """Call back with the scope or job whose leadership this process loses, not one that it lays down."""
        self._on_leader_lost.append(callback)

    def _lost_leader(self, what: str) -> None:
        for callback in self._on_leader_lost:
            callback(what)

    def links(self) -> list[Link]:
        return self.topology.links()

    def answering_since(self) -> float | None:
        """Loop time since which every primary is connected; None while one is not, or none is known."""
        links = self.links()
        if not links or not all(link.connected for link in links):
            return None
        return max(link.up_since for link in links)

    async def ping(self, timeout_s: float = 1.0) -> float:
        """Seconds to every primary and back; raises what a call would raise."""
        started = time.perf_counter()
        deadline = self._loop.time() + timeout_s
        if not self.links():
            raise StoreUnavailable("no node of the store is known")
        calls = []
        for link in self.links():
            future: asyncio.Future[Any] = self._loop.create_future()
            link.submit(Call(future, pack(("PING",)), deadline, None, True, False))
            calls.append(future)
        await asyncio.gather(*calls)
        return time.perf_counter() - started

    async def reauthenticate(self, credentials: Credentials, sentinel: Credentials | None = None) -> None:
        """Use a new password from now on, on the open connections too; no call is interrupted.

        If a node refuses it, its connection stays as it was, and the old password is kept. `sentinel` is
        for the next connections to sentinels.
        """
        if sentinel is not None and isinstance(self.topology, Sentinel):
            self.topology.sentinel_access.credentials = sentinel
        former, self.topology.access.credentials = self.topology.access.credentials, credentials
        try:
            for link in self.links():
                for line in link.lines():
                    future: asyncio.Future[Any] = self._loop.create_future()
                    deadline = self._loop.time() + self._options.command_timeout_s
                    packed = pack(("AUTH", *credentials.auth_args))
                    line.submit(Call(future, packed, deadline, None, True, False))
                    await future
        except StoreRefused:
            self.topology.access.credentials = former
            raise

    async def take_up(self, fresh: StoreUrl, former: StoreUrl) -> None:
        """Use the passwords of a URL that was read again; `InvalidInput` if it names another store."""
        bare = Credentials()
        place, former_place = (
            replace(url, credentials=bare, sentinel_credentials=bare) for url in (fresh, former)
        )
        if place != former_place:
            raise InvalidInput(
                f"the store URL names another store now ({fresh}, it was {former})",
                hint="only the password can be changed while Roost runs; restart it for anything else",
            )
        await self.reauthenticate(fresh.credentials, fresh.sentinel_credentials)

    async def check_format(self) -> None:
        """Mark an empty store with our format number; refuse one that holds another."""
        key = self.keys.plain(FORMAT_KEY)
        found = await self.call("GET", key, key=key, idempotent=True)
        if found is None:
            with contextlib.suppress(StoreAccessDenied):  # who may only look changes nothing
                await self.call("SET", key, FORMAT, "NX", key=key, idempotent=True)
            found = await self.call("GET", key, key=key, idempotent=True)
        if found not in (str(FORMAT).encode(), None):
            raise FormatMismatch(
                f"the store holds data of format {found[:20].decode(errors='replace')}, "
                f"this version reads format {FORMAT}",
                hint="use an empty store (embedded: another --data) or another ROOST_NAMESPACE: servers "
                "register again by themselves, receipts bring places back; or run the version that wrote it",
            )

    async def close(self) -> None:
        """Hang up; an embedded server that is ours is stopped last."""
        for feed in self._feeds.values():
            await feed.close()
        await self._bells.close()
        await self.topology.close()
        if self._embedded is not None:
            await self._embedded.stop()


def make_topology(
    url: StoreUrl, options: LinkOptions, client_name: str, loops: Loops | None = None
) -> Topology:
    tls = url.tls.context() if url.tls else None
    access = Access(url.credentials, tls, url.db, client_name)
    if url.shape == "sentinel":
        return Sentinel(url.seeds, url.master, access, Access(url.sentinel_credentials, tls), options, loops)
    if url.shape == "cluster":
        return Cluster(url.seeds, access, options, loops)
    return Standalone(url.seeds[0], access, options, loops)


async def _embedded(
    folder: Path | None, binary: str, attach: bool, loops: Loops
) -> tuple[Address, EmbeddedServer | None]:
    if folder is None:
        raise StartFailed("embedded: needs a folder", hint="write embedded:/folder or set ROOST_DATA")
    try:
        server = await launch(folder, binary)
    except DataFolderInUse:
        if attach and (address := await running_address(folder)) is not None:
            return address, None
        raise
    server.watch(loops)
    return server.address, server
