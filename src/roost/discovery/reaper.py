"""The loop that makes time pass in discovery, finds the silent, and asks them before they are counted dead.

Any number of them may run, one in each gateway: the scripts see to it that time advances once
and that each death is told once.
"""

from __future__ import annotations

import asyncio
import logging

from roost.core.backoff import jittered
from roost.core.errors import StoreError, UnknownInstance
from roost.core.lease import MAX_STEP_MS
from roost.core.loops import Loops
from roost.discovery.probes import REFUSED, Prober
from roost.discovery.scripts import Ended, Swept
from roost.discovery.service import Discovery

log = logging.getLogger("roost.discovery.reaper")

SWEEP_INTERVAL_S = 1.0
SWEEP_LIMIT = 500
MAX_SWEEPS = 40
"""Of one turn: 20 000 that fall silent at once are found in it, and other calls are served in between."""
MAX_PROBES = 500
"""Of suspects, under way at once; the others are asked in the next turns."""
BUDGET_PERCENT = 15
BUDGET_WINDOW_MS = 10_000
"""As long as beats are apart: in this time end the leases of a fleet that falls silent at once."""
PROBE_INTERVAL_S = 5.0
REPAIR_INTERVAL_S = 45.0
TOMBSTONE_MS = 3_600_000
REPAIR_COUNT = 200


class Reaper:
    """Sweeps once a second; probes suspects every five; repairs the index every forty-five."""

    def __init__(self, discovery: Discovery, prober: Prober, loops: Loops | None = None) -> None:
        self._discovery = discovery
        self._loops = loops or Loops()
        self._prober = prober
        self._suspects: dict[str, float] = {}
        """Id → loop time of its next probe."""
        self._probes: set[asyncio.Task[None]] = set()
        self._repair_at = 0.0
        self.ended = 0
        self.held = 0

    async def run(self) -> None:
        """For ever; a store that is away only delays it."""
        self._plan_repair()
        try:
            await self._loops.keep_running("sweep", self.turn, pause_s=SWEEP_INTERVAL_S)
        finally:
            for probe in self._probes:
                probe.cancel()

    async def turn(self) -> None:
        """A sweep, and the repair where it is due."""
        await self.step()
        if asyncio.get_running_loop().time() >= self._repair_at:
            self._plan_repair()
            await self.repair()

    def _plan_repair(self) -> None:
        self._repair_at = asyncio.get_running_loop().time() + jittered(REPAIR_INTERVAL_S, 0.3)

    async def step(self) -> Swept:
        """Sweeps until nobody is due, and the probes that are due."""
        swept = await self._sweep_all()
        self.ended += len(swept.ended)
        self.held += len(swept.held)
        for instance_id in swept.ended:
            log.warning("instance died", extra={"instanceId": instance_id})
            self._suspects.pop(instance_id, None)
        if swept.held:
            log.warning("many leases ended at once; waiting for probes", extra={"count": len(swept.held)})
        now = asyncio.get_running_loop().time()
        for instance_id in (*swept.suspected, *swept.held):
            self._suspects.setdefault(instance_id, now)
        for instance_id, due in list(self._suspects.items()):
            if due <= now and len(self._probes) < MAX_PROBES:
                self._suspects[instance_id] = now + jittered(PROBE_INTERVAL_S)
                task = asyncio.create_task(self._ask(instance_id))
                self._probes.add(task)
                task.add_done_callback(self._probes.discard)
        return swept

    async def _sweep_all(self) -> Swept:
        found = last = await self._sweep()
        for _ in range(MAX_SWEEPS - 1):
            if last.looked < SWEEP_LIMIT:
                break
            last = await self._sweep()
            found = found + last
        return found

    async def _sweep(self) -> Swept:
        return await self._discovery.scripts.sweep(
            limit=SWEEP_LIMIT,
            budget_percent=BUDGET_PERCENT,
            window_ms=BUDGET_WINDOW_MS,
            max_step_ms=MAX_STEP_MS,
        )

    async def _ask(self, instance_id: str) -> None:
        """Probe a suspect; end it if its own host refuses the connection."""
        try:
            detail = await self._discovery.get(instance_id)
            if detail.instance is None or detail.status != "suspect":
                self._suspects.pop(instance_id, None)
                return
            probe = await self._prober.probe(detail.instance)
            if probe is not None and probe.error == REFUSED:
                life = detail.instance.life
                if isinstance(await self._discovery.scripts.end_silent(id=instance_id, life=life), Ended):
                    self.ended += 1
                    log.warning("instance died, its host says so", extra={"instanceId": instance_id})
                self._suspects.pop(instance_id, None)
        except UnknownInstance:
            self._suspects.pop(instance_id, None)
        except StoreError as error:
            log.debug("suspect not judged", extra={"instanceId": instance_id, "reason": error.message})
        except Exception:  # nobody awaits this task; it is asked again in five seconds
            log.exception("suspect not judged", extra={"instanceId": instance_id})

    @property
    def probing(self) -> int:
        """Probes of suspects that are under way."""
        return len(self._probes)

    @property
    def suspects(self) -> int:
        """Instances that are probed again and again until their fate is known."""
        return len(self._suspects)

    async def repair(self) -> int:
        """Look at the whole index in small parts; returns how much had to be mended."""
        scripts = self._discovery.scripts
        mended, cursor = 0, "0"
        while True:
            part = await scripts.repair(cursor=cursor, count=REPAIR_COUNT)
            mended, cursor = mended + part.mended, part.cursor
            if cursor == "0":
                break
        for service in await self._discovery.services():
            while True:
                part = await scripts.repair_service(service=service, cursor=cursor, count=REPAIR_COUNT)
                mended, cursor = mended + part.mended, part.cursor
                if cursor == "0":
                    break
        while True:
            old = await scripts.forget(cursor=cursor, count=REPAIR_COUNT, keep_ms=TOMBSTONE_MS)
            cursor = old.cursor
            if cursor == "0":
                break
        if mended:
            log.error("the index of discovery was damaged and is mended", extra={"count": mended})
        return mended
