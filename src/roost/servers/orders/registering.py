"""The entry of an order server in discovery, made beside its work.

Shards are owned by leases of their own. A server that was killed and is started again under its id finds
the id taken until discovery takes its predecessor for dead, and for as long as no gateway runs. Its shards
are free much sooner, and it serves them meanwhile. One whose id another bears in fact finds no shard free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from roost.api.discovery import HealthCheck
from roost.app import Platform
from roost.core.errors import RoostError, ServerIdTaken, StoreError
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.heart import Directive, Registration
from roost.servers.orders.settings import parse_shards
from roost.web.ops import OPS_PORT_ABOVE

log = logging.getLogger("roost.orders")

TYPE = "orders"
"""The service type of order servers in discovery."""

FIXED_SHARDS = "shards"
"""The label of an order server that is fixed to a list of shards: the others leave these to it."""

ANY_ADDRESS = ("0.0.0.0", "::")
"""Hosts to listen at that say nothing of where others reach it."""

AT_ONCE_S = 1.0
"""How long a start waits for its entry; a fault within it is a fault of the start."""

AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class OrdersIdentity:
    """Who it is in discovery."""

    server_id: str
    version: str = "1.0"
    group: str = "main"
    ttl_seconds: float = 0.0
    type: str = TYPE


class Registering:
    """`me` is None until discovery has the server; `fault` is why it never will."""

    def __init__(
        self,
        registered: Callable[[], AbstractAsyncContextManager[Registration]],
        on_end: Callable[[], None],
    ) -> None:
        self.me: Registration | None = None
        self.fault: RoostError | None = None
        self.why_not = "not registered yet"
        self._registered = registered
        self._on_end = on_end
        self._is_there = asyncio.Event()
        self._leaves = asyncio.Event()

    async def run(self) -> None:
        """Registered from now on until `leave`; while that cannot be it is tried again."""
        while self.me is None and not self._leaves.is_set():
            try:
                async with self._registered() as self.me:
                    self._is_there.set()
                    await self._leaves.wait()
            except (StoreError, ServerIdTaken) as error:
                self.why_not = error.message
                log.error("still not in discovery", extra={"reason": error.message})
                await asyncio.sleep(AGAIN_S)
            except RoostError as error:
                self._fail(error)
                return

    async def begun(self) -> None:
        """Returns when the entry is there, or takes longer: then the server begins without it."""
        try:
            async with asyncio.timeout(AT_ONCE_S):
                await self._is_there.wait()
        except TimeoutError:
            log.warning("serving before discovery has this server: its id is taken, or the store is slow")
        if self.fault is not None:
            raise self.fault

    def leave(self) -> None:
        self._leaves.set()

    def _fail(self, error: RoostError) -> None:
        log.error("this server cannot be registered: it ends", extra={"reason": error.message})
        self.fault = error
        self._is_there.set()
        self._on_end()


@asynccontextmanager
async def registering(
    platform: Platform, identity: OrdersIdentity, on_end: Callable[[], None]
) -> AsyncIterator[Registering]:
    """In discovery inside the block, as soon as that is possible; out of it on the way out."""
    cache = platform.settings.data / "cache"
    async with connect(platform, ttl_seconds=identity.ttl_seconds, cache_folder=cache) as client:
        found = Registering(partial(_registered, client, platform, identity, on_end), on_end)
        running = asyncio.create_task(found.run(), name="roost registering")
        try:
            await found.begun()
            yield found
        finally:
            found.leave()
            if found.me is None:
                running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    if found.fault is not None:
        raise found.fault


def _registered(
    client: Client, platform: Platform, identity: OrdersIdentity, on_end: Callable[[], None]
) -> AbstractAsyncContextManager[Registration]:
    own = platform.settings.orders
    host = "127.0.0.1" if own.host == "localhost" else own.host  # as its socket is named, and so its leases
    where = {} if host in ANY_ADDRESS else {"private_ip": host}
    return client.registered(
        type=identity.type,
        group=identity.group,
        server_id=identity.server_id,
        version=identity.version,
        ports={"wire": own.port, "metrics": own.port + OPS_PORT_ABOVE},
        labels=_labels(own.shards),
        health=HealthCheck("http", "metrics", "/healthz"),
        on_directive=partial(_heed, on_end=on_end),
        **where,
    )


def _labels(shards: str) -> dict[str, str]:
    return {} if shards == "auto" else {FIXED_SHARDS: ",".join(map(str, sorted(parse_shards(shards))))}


def _heed(directive: Directive, on_end: Callable[[], None]) -> None:
    if directive == "drain":
        log.info("draining: its shards are handed over")
    else:
        on_end()
