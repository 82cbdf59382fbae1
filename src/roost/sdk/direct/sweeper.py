"""Where no gateway runs, one of the clients makes the leases of discovery end."""

from __future__ import annotations

import logging
import math

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
    """Looks now and then whether anybody sweeps; if nobody does, sweeps itself, by a short lease.

    One look of one client is enough to find out, so a fleet of any size finds out within seconds.
    """

    def __init__(self, store: Store, discovery: Discovery, prober: Prober) -> None:
        self._store = store
        self._lease = store.leader(scopes.discovery(), "sweeper", job="sweep", ttl_ms=LEASE_MS)
        self._reaper = Reaper(discovery, prober)
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
        return await self._quiet_s() > QUIET_S

    async def _sweep(self) -> None:
        led = self._lease.tenure is not None
        self._pause_s = SWEEP_INTERVAL_S  # also where another client has the lease: it may be dead
        if not isinstance(await self._lease.campaign(), Tenure):
            return
        if not led:
            log.info("sweeping: no gateway does")
        await self._reaper.turn()

    async def _quiet_s(self) -> float:
        """How long ago somebody swept, by the store's clock; for ever if its clock went back."""
        meta = discovery_keys(self._store.keys)["meta"]
        last_us = await self._store.call("HGET", meta, "last_advance_us", key=meta, idempotent=True)
        seconds, micros = await self._store.call("TIME", key=meta, idempotent=True)
        quiet_s = int(seconds) + int(micros) / 1e6 - int(last_us or 0) / 1e6
        return quiet_s if quiet_s >= -1.0 else math.inf

    async def _look_interval_s(self) -> float:
        leases = discovery_keys(self._store.keys)["leases"]
        fleet = int(await self._store.call("ZCARD", leases, key=leases, idempotent=True))
        return max(QUIET_S, fleet / LOOKS_PER_FLEET_S)
