"""Where no gateway or manager runs, one of the clients makes the leases of discovery end."""

from __future__ import annotations

import logging
from typing import Any

from roost.core.backoff import jittered
from roost.core.errors import StoreError
from roost.core.lease import Tenure
from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.discovery.reaper import SWEEP_INTERVAL_S, Reaper
from roost.discovery.service import Discovery
from roost.store import scopes
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store

log = logging.getLogger("roost.sdk")

QUIET_S = 5.0
"""Without a sweep for so long nobody else sweeps: we do."""
LOOKS_PER_FLEET_S = 10.0
"""The fleet together looks about ten times a second, whatever its size."""
LEASE_MS = 6000


class Sweeper:
    """Looks now and then whether anybody sweeps; if nobody does, sweeps itself, by a short lease."""

    def __init__(self, store: Store, discovery: Discovery, prober: Prober) -> None:
        self._store = store
        self._lease = store.leader(scopes.discovery(), "sweeper", job="sweep", ttl_ms=LEASE_MS)
        self._reaper = Reaper(discovery, prober)
        self._seen: Any = object()  # equal to no answer: the first look never finds that nobody sweeps
        self._pause_s = QUIET_S

    async def run(self, loops: Loops) -> None:
        await loops.keep_running("sdk-sweep", self._turn, pause_s=lambda: self._pause_s)

    async def _turn(self) -> None:
        try:
            if self._lease.tenure is not None or await self._nobody_sweeps():
                await self._sweep()
        except StoreError as error:
            # Not a failed turn: a fleet that retried sooner than it looks would burden a store in trouble.
            log.debug("no look at the sweep", extra={"reason": error.message})

    async def _nobody_sweeps(self) -> bool:
        self._pause_s = QUIET_S
        self._pause_s = jittered(await self._look_interval_s(), 0.3)
        before, self._seen = self._seen, await self._last_sweep()
        return bool(before == self._seen)

    async def _sweep(self) -> None:
        led = self._lease.tenure is not None
        if not isinstance(await self._lease.campaign(), Tenure):
            return
        if not led:
            log.info("sweeping: no gateway or manager does")
        self._pause_s = SWEEP_INTERVAL_S
        await self._reaper.step()

    async def _last_sweep(self) -> Any:
        """When leases were last ended, by the store's time; None if never."""
        meta = discovery_keys(self._store.keys)["meta"]
        return await self._store.call("HGET", meta, "last_advance_us", key=meta, idempotent=True)

    async def _look_interval_s(self) -> float:
        leases = discovery_keys(self._store.keys)["leases"]
        fleet = int(await self._store.call("ZCARD", leases, key=leases, idempotent=True))
        return max(QUIET_S, fleet / LOOKS_PER_FLEET_S)
