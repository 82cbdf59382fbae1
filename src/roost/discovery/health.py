"""The health checker: tells who fell ill and who recovered, each once.

It listens to discovery (silence makes an instance suspect there, by lease time, so no clock of ours is
involved) and asks every instance that declares a request–reply check itself. A TCP connect alone never
proves life: a stopped process accepts it; but a refused one proves death. An instance whose record is gone
is judged all the same: if it did not say goodbye it is unhealthy, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from roost.api.discovery import Change, Instance, Probe
from roost.core.backoff import jittered
from roost.core.errors import StoreError
from roost.discovery.judgement import FALL, RISE, Judgement, Turn
from roost.discovery.probes import REFUSED, Prober

log = logging.getLogger("roost.discovery.health")

INTERVAL_S = 5.0
FAST_INTERVAL_S = 1.0
EJECTION_CAP = 0.5
"""Share of the fleet that soft evidence (probes without an answer, reports) may make unhealthy."""
REPORTS_PER_FAILURE = 5
"""Failed requests in a row, as reported by callers, that count as one failed check."""


class Watcher(Protocol):
    def watch(self, type: str, group: str, /) -> AsyncIterator[Change]: ...  # noqa: A002


class Marked(Protocol):
    """A balancer that wants to know."""

    def mark_server_healthy(self, server_id: str, healthy: bool = ..., /) -> bool: ...


@dataclass(slots=True)
class _Patient:
    instance: Instance
    judgement: Judgement
    due: float
    failed_reports: int = 0
    asked: asyncio.Task[None] | None = field(default=None, repr=False)


class HealthChecker:
    """Checks the servers of a place. `start()`, then callbacks; `stop()` ends it."""

    def __init__(
        self,
        discovery: Watcher,
        prober: Prober,
        type: str = "*",  # noqa: A002 — the name of the field
        group: str = "*",
        *,
        balancer: Marked | None = None,
        interval_s: float = INTERVAL_S,
        fall: int = FALL,
        rise: int = RISE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._discovery = discovery
        self._prober = prober
        self._place = (type, group)
        self._balancer = balancer
        self._interval_s = interval_s
        self._thresholds = (fall, rise)
        self._clock = clock
        self._patients: dict[str, _Patient] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._unhealthy: list[Callable[[str], None]] = []
        self._recovered: list[Callable[[str], None]] = []

    def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._ask_around())]

    async def stop(self) -> None:
        tasks = [*self._tasks, *(p.asked for p in self._patients.values() if p.asked is not None)]
        self._tasks = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def on_server_unhealthy(self, callback: Callable[[str], None]) -> None:
        """Call back with the server id when a server falls ill or dies, once each time."""
        self._unhealthy.append(callback)

    def on_server_recovered(self, callback: Callable[[str], None]) -> None:
        self._recovered.append(callback)

    def is_server_healthy(self, server_id: str) -> bool:
        """Whether it is known and not unhealthy."""
        patient = self._patients.get(server_id)
        return patient is not None and patient.judgement.healthy and patient.instance.status != "initializing"

    def report(self, server_id: str, ok: bool, latency_ms: float = 0.0) -> None:
        """What happened to a caller's own request; several failures in a row count as a failed check."""
        patient = self._patients.get(server_id)
        if patient is None:
            return
        patient.failed_reports = 0 if ok else patient.failed_reports + 1
        if patient.failed_reports >= REPORTS_PER_FAILURE:
            patient.failed_reports = 0
            self._note(patient, ok=False)

    # -- what discovery says

    async def _listen(self) -> None:
        while True:
            try:
                async for change in self._discovery.watch(*self._place):
                    self.hear(change)
            except StoreError as error:
                log.debug("discovery is away", extra={"reason": error.message})
            await asyncio.sleep(FAST_INTERVAL_S)

    def hear(self, change: Change) -> None:
        """Take one change of discovery into account."""
        if change.event == "snapshot":
            listed = {name_of(instance): instance for instance in change.instances or ()}
            for server_id in self._patients.keys() - listed.keys():
                self._bury(server_id, died=True)
            for instance in listed.values():
                self._see(instance)
        elif change.event == "removed":
            self._bury(change.server_id, died=change.status == "no-response")
        elif change.instance is not None:
            self._see(change.instance)

    def _see(self, instance: Instance) -> None:
        server_id, now = name_of(instance), self._clock()
        patient = self._patients.get(server_id)
        if patient is None or patient.instance.life != instance.life:
            due = now + jittered(self._interval_s / 2, 0.9)
            patient = self._patients[server_id] = _Patient(instance, Judgement(*self._thresholds), due)
        was, patient.instance = patient.instance.status, instance
        if instance.status == "suspect" and not instance.accepting:
            self._tell(server_id, patient.judgement.condemn(now))
        elif was == "suspect" and instance.status != "suspect":
            # It beats again: that is one good sign, and the probes must agree where there are any.
            self._note(patient, ok=True)
            if instance.health is None or instance.health.kind == "tcp":
                self._note(patient, ok=True)

    def _bury(self, server_id: str, *, died: bool) -> None:
        patient = self._patients.pop(server_id, None)
        if patient is None:
            return
        if patient.asked is not None:
            patient.asked.cancel()
        if died:
            self._tell(server_id, patient.judgement.condemn(self._clock()))

    # -- what the servers say

    async def _ask_around(self) -> None:
        while True:
            for patient in list(self._patients.values()):
                if patient.due <= self._clock() and (patient.asked is None or patient.asked.done()):
                    patient.asked = asyncio.create_task(self._ask(patient))
            await asyncio.sleep(FAST_INTERVAL_S / 4)

    async def _ask(self, patient: _Patient) -> None:
        with contextlib.suppress(Exception):
            self.judge(patient.instance, await self._prober.probe(patient.instance))
        pause = FAST_INTERVAL_S if patient.judgement.in_transition else self._interval_s
        patient.due = self._clock() + jittered(pause)

    def judge(self, instance: Instance, probe: Probe | None) -> None:
        """Take the outcome of one probe into account."""
        patient = self._patients.get(name_of(instance))
        if probe is None or patient is None or patient.instance.life != instance.life:
            return
        if probe.error == REFUSED:
            self._note(patient, ok=False, hard=True)
        elif not probe.ok:
            self._note(patient, ok=False)
        elif instance.health is not None and instance.health.kind != "tcp" and instance.status != "suspect":
            self._note(patient, ok=True)

    def _note(self, patient: _Patient, *, ok: bool, hard: bool = False) -> None:
        if not ok and not hard and patient.judgement.healthy and self._is_capped():
            return
        self._tell(name_of(patient.instance), patient.judgement.note(ok, self._clock()))

    def _is_capped(self) -> bool:
        """Whether so many are unhealthy that the fault is more likely ours than theirs."""
        ill = sum(not patient.judgement.healthy for patient in self._patients.values())
        return len(self._patients) > 1 and ill >= EJECTION_CAP * len(self._patients)

    def _tell(self, server_id: str, turn: Turn | None) -> None:
        if turn is None:
            return
        log.warning(
            "server unhealthy" if turn == "fell" else "server recovered", extra={"serverId": server_id}
        )
        if self._balancer is not None:
            self._balancer.mark_server_healthy(server_id, turn == "rose")
        for callback in self._unhealthy if turn == "fell" else self._recovered:
            try:
                callback(server_id)
            except Exception:  # one subscriber's fault must not keep the others from hearing
                log.exception("a health callback failed")


def name_of(instance: Instance) -> str:
    return instance.server_id or instance.instance_id
