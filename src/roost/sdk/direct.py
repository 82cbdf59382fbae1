"""Straight to the store, or to a platform in this process: the part of the SDK that knows all of Roost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.core.backoff import jittered
from roost.core.errors import StoreError
from roost.core.lease import Tenure
from roost.discovery.probes import Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.settings import Loaded
from roost.store.keys import Keys
from roost.store.keys.discovery import discovery_keys
from roost.store.scopes import discovery
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.worlds import Worlds

log = logging.getLogger("roost.sdk")

QUIET_S = 5.0
"""Without a sweep for so long nobody else makes time pass: we do."""
LOOKS_PER_FLEET_S = 10.0
"""The fleet together looks about ten times a second, whatever its size."""


class DiscoveryTransport:
    """The verbs on a `Discovery` that is at hand."""

    def __init__(self, discovery: Discovery, prober: Prober, worlds: Callable[[], Worlds]) -> None:
        self._discovery = discovery
        self._prober = prober
        self._worlds = worlds

    async def register(self, given: RegisterInput) -> Registered:
        return await self._discovery.register(given)

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        return await self._discovery.heartbeat(instance_id, beat)

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList:
        found = await self._discovery.discover(type_, group, labels)
        if verify:
            await self._prober.verify(found.instances)
        return found

    async def get(self, instance_id: str) -> InstanceDetail:
        return await self._discovery.get(instance_id)

    async def remove(self, instance_id: str, type_: str, group: str, life: str) -> None:
        await self._discovery.remove(instance_id, type_, group, life=life)

    def watch(self, type_: str, group: str, labels: Sequence[str]) -> AsyncIterator[Change]:
        return self._discovery.watch(type_, group, labels)

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        return await self._worlds().consume(given)

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        return await self._worlds().release(world, server_id, given)

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        return await self._worlds().report(world, server_id, given)

    async def close(self) -> None:
        """The platform belongs to whoever opened it."""


class StoreTransport(DiscoveryTransport):
    """The verbs on a connection of our own to the store."""

    def __init__(self, store: Store, *, sweeps: bool) -> None:
        super().__init__(Discovery(store), Prober(allow_local=True), self._open_worlds)
        self._store = store
        self._opened: Worlds | None = None
        self._sweeper = asyncio.create_task(self._sweep_if_nobody_does()) if sweeps else None

    @classmethod
    async def open(cls, url: str, keys: Keys, *, folder: Path | None = None, sweeps: bool = True) -> Self:
        """`folder` is where `embedded:` without one keeps its data."""
        where = parse_store_url(url)
        store = await Store.open(where, keys=keys, client_name="roost-sdk", folder=folder, attach=True)
        return cls(store, sweeps=sweeps)

    def _open_worlds(self) -> Worlds:
        """With the settings of this machine: whoever goes straight to the store needs the keys too."""
        if self._opened is None:
            self._opened = Worlds(self._store, Loaded.load().settings)
        return self._opened

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._store.close()

    async def _sweep_if_nobody_does(self) -> None:
        """Where no gateway or manager runs, one of the clients makes time pass, by a short lease."""
        lease = self._store.leader(discovery(), "sweeper", job="sweep", ttl_ms=6000)
        reaper = Reaper(self._discovery, self._prober)
        seen: Any = None
        while True:
            await asyncio.sleep(jittered(await self._look_interval_s(), 0.3))
            try:
                looked = await self._looked_at()
                if looked != seen:
                    seen = looked
                    continue
                await self._lead(lease, reaper)
            except StoreError as error:
                log.debug("no look at the sweep", extra={"reason": error.message})

    async def _lead(self, lease: Any, reaper: Reaper) -> None:
        if not isinstance(await lease.campaign(), Tenure):
            return
        log.info("sweeping: no gateway or manager does")
        with contextlib.suppress(StoreError):
            while lease.tenure is not None:
                await reaper.step()
                await asyncio.sleep(jittered(1.0))
                await lease.campaign()

    async def _looked_at(self) -> Any:
        """When the lease clock was last looked at, by the store's time."""
        meta = discovery_keys(self._store.keys)["meta"]
        return await self._store.call("HGET", meta, "looked_us", key=meta, idempotent=True)

    async def _look_interval_s(self) -> float:
        leases = discovery_keys(self._store.keys)["leases"]
        try:
            fleet = int(await self._store.call("ZCARD", leases, key=leases, idempotent=True))
        except StoreError:
            fleet = 0
        return max(QUIET_S, fleet / LOOKS_PER_FLEET_S)
