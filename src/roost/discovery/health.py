"""The health checker: tells who fell ill and who recovered, each once.

It listens to discovery (silence makes an instance suspect there, by lease time, so no clock of ours is
involved) and asks every instance that declares a health check itself. A TCP connect alone never proves life:
a stopped process accepts it. It refutes a refusal, no more. An instance whose record is gone is judged all
the same: if it did not say goodbye it is unhealthy, once.

Given a `ballot`, what it found by asking is only its vote: the majority of the live checkers decides, and
everybody hears the decision from discovery. Without one its own finding counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from roost.api.discovery import Change, CheckedServer, Instance, Probe, Watcher
from roost.core.backoff import jittered
from roost.core.errors import StoreError
from roost.discovery.judgement import FALL, RISE, Judgement
from roost.discovery.probes import REFUSED, Prober

log = logging.getLogger("roost.discovery.health")

INTERVAL_S = 5.0
FAST_INTERVAL_S = 1.0
VOTE_INTERVAL_S = 1.0
EJECTION_CAP = 0.5
"""Share of the fleet that soft evidence (probes without an answer, reports) may make unhealthy."""
REPORTS_PER_CHECK = 5
"""Requests in a row with one outcome, as reported by callers, that count as one check."""
MAX_REMEMBERED = 10_000
"""Dead servers whose return is told as a recovery."""


class Marked(Protocol):
    """A balancer that wants to know."""

    def mark_server_healthy(self, server_id: str, healthy: bool = ..., /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """How many checkers count, and how many of them find each instance unhealthy."""

    live: int = 0
    votes: Mapping[str, int] = field(default_factory=dict)


class Ballot(Protocol):
    """Where several checkers agree: discovery."""

    async def vote(self, checker: str, ill: Sequence[tuple[str, str]], *, leave: bool = ...) -> Tally: ...


@dataclass(slots=True)
class _Patient:
    instance: Instance
    judgement: Judgement
    """By what it answered us, and what callers reported."""
    due: float
    told_ill: bool = False
    refused: bool = False
    """Whether its last failure was a refused connection; only that does a mere TCP connect refute."""
    reports_row: int = 0
    """Reports in a row of one kind: above 0 good ones, below 0 bad ones."""
    probe: Probe | None = None
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
        ballot: Ballot | None = None,
        balancer: Marked | None = None,
        interval_s: float = INTERVAL_S,
        fall: int = FALL,
        rise: int = RISE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._discovery = discovery
        self._prober = prober
        self._place = (type, group)
        self._ballot = ballot
        self._balancer = balancer
        self._interval_s = interval_s
        self._thresholds = (fall, rise)
        self._clock = clock
        self._patients: dict[str, _Patient] = {}
        """By instance id."""
        self._named: dict[str, dict[str, _Patient]] = {}
        """By server id, which is unique within a type only."""
        self._dead: dict[tuple[str, str], None] = {}
        self._knows_all = False
        self._tasks: list[asyncio.Task[None]] = []
        self._unhealthy: list[Callable[[str], None]] = []
        self._recovered: list[Callable[[str], None]] = []
        self.checker_id = secrets.token_hex(6)
        self.tally = Tally()
        self.fell = 0
        self.rose = 0

    def start(self) -> None:
        if not self._tasks:
            loops = [self._listen(), self._ask_around(), *([self._vote_on()] if self._ballot else [])]
            self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def run(self) -> None:
        """Start, and stop when cancelled."""
        self.start()
        try:
            await asyncio.gather(*self._tasks)
        finally:
            await self.stop()

    async def stop(self) -> None:
        tasks = [*self._tasks, *(p.asked for p in self._patients.values() if p.asked is not None)]
        self._tasks = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks and self._ballot is not None:
            with contextlib.suppress(StoreError, TimeoutError):  # else its silence says the same
                async with asyncio.timeout(VOTE_INTERVAL_S):
                    await self._ballot.vote(self.checker_id, (), leave=True)

    def on_server_unhealthy(self, callback: Callable[[str], None]) -> None:
        """Call back with the server id when a server falls ill or dies, once each time."""
        self._unhealthy.append(callback)

    def on_server_recovered(self, callback: Callable[[str], None]) -> None:
        self._recovered.append(callback)

    def is_server_healthy(self, server_id: str) -> bool:
        """Whether it is known and not unhealthy."""
        named = self._named.get(server_id, {})
        return bool(named) and all(map(self._is_healthy, named.values()))

    @staticmethod
    def _is_healthy(patient: _Patient) -> bool:
        return not patient.told_ill and patient.instance.status != "initializing"

    def report(self, server_id: str, ok: bool, latency_ms: float = 0.0) -> None:
        """What happened to a caller's own request; several in a row with one outcome count as a check."""
        for patient in list(self._named.get(server_id, {}).values()):
            row = patient.reports_row
            patient.reports_row = max(row, 0) + 1 if ok else min(row, 0) - 1
            if abs(patient.reports_row) >= REPORTS_PER_CHECK:
                patient.reports_row = 0
                self._note(patient, ok=ok)

    def servers(self) -> list[CheckedServer]:
        """Every server as this checker sees it, the unhealthy first."""
        rows = [self._row(patient) for patient in self._patients.values()]
        return sorted(rows, key=lambda row: (row.healthy, row.type, row.server_id))

    def _row(self, patient: _Patient) -> CheckedServer:
        instance = patient.instance
        return CheckedServer(
            server_id=name_of(instance),
            instance_id=instance.instance_id,
            life=instance.life,
            type=instance.type,
            group=instance.group,
            status=instance.status,
            healthy=self._is_healthy(patient),
            accepting=instance.accepting,
            last_heartbeat=instance.last_heartbeat,
            votes=self.tally.votes.get(instance.instance_id, 0),
            probe=patient.probe,
        )

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
            listed = {instance.instance_id: instance for instance in change.instances or ()}
            for instance_id in self._patients.keys() - listed.keys():
                self._bury(instance_id, died=True)
            for instance in listed.values():
                self._see(instance)
            self._knows_all = True
        elif change.event == "removed":
            self._bury(change.instance_id, died=change.status == "no-response", life=change.life)
        elif change.instance is not None:
            self._see(change.instance)

    def _see(self, instance: Instance) -> None:
        patient = self._patients.get(instance.instance_id)
        if patient is None or patient.instance.life != instance.life:
            judgement = Judgement(*self._thresholds, healthy=not instance.unhealthy)
            due = self._clock() + jittered(self._interval_s / 2, 0.9)
            name = (instance.type, name_of(instance))
            was_ill = patient.told_ill if patient is not None else name in self._dead
            self._dead.pop(name, None)
            # What others found may have been a refusal: then a connection refutes it.
            patient = _Patient(instance, judgement, due, was_ill, refused=instance.unhealthy)
            self._patients[instance.instance_id] = patient
            self._named.setdefault(name_of(instance), {})[instance.instance_id] = patient
        patient.instance = instance
        self._tell(patient)

    def _bury(self, instance_id: str, *, died: bool, life: str = "") -> None:
        patient = self._patients.get(instance_id)
        if patient is None or (life and life != patient.instance.life):
            return
        server_id = name_of(patient.instance)
        del self._patients[instance_id]
        del self._named[server_id][instance_id]
        if not self._named[server_id]:
            del self._named[server_id]
        if patient.asked is not None:
            patient.asked.cancel()
        if died or patient.told_ill:
            self._dead[(patient.instance.type, server_id)] = None
            if len(self._dead) > MAX_REMEMBERED:
                del self._dead[next(iter(self._dead))]
        if died and not patient.told_ill:
            self._call(server_id, ill=True)

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
        patient = self._patients.get(instance.instance_id)
        if probe is None or patient is None or patient.instance.life != instance.life:
            return
        patient.probe = probe
        if not probe.ok:
            self._note(patient, ok=False, refused=probe.error == REFUSED)
        elif patient.refused or (instance.health is not None and instance.health.kind != "tcp"):
            self._note(patient, ok=True)

    def _note(self, patient: _Patient, *, ok: bool, refused: bool = False) -> None:
        if not ok and not refused and patient.judgement.healthy and self._is_capped(patient):
            return
        if not ok:
            patient.refused = refused
        patient.judgement.note(ok, self._clock())
        self._tell(patient)

    def _is_capped(self, patient: _Patient) -> bool:
        """Whether so many others are unhealthy that the fault is more likely ours than theirs."""
        others = (p for p in self._patients.values() if p is not patient)
        ill = sum(p.told_ill or not p.judgement.healthy for p in others)
        return len(self._patients) > 1 and ill >= EJECTION_CAP * len(self._patients)

    # -- what the checkers decide

    async def _vote_on(self) -> None:
        assert self._ballot is not None
        while True:
            if self._knows_all:  # before that, silence about everybody would acquit them
                try:
                    self.tally = await self._ballot.vote(self.checker_id, self.ballots())
                except StoreError as error:
                    log.debug("vote not cast", extra={"reason": error.message})
            await asyncio.sleep(jittered(VOTE_INTERVAL_S))

    def ballots(self) -> list[tuple[str, str]]:
        """(id, life) of everybody this checker finds unhealthy."""
        return [
            (patient.instance.instance_id, patient.instance.life)
            for patient in self._patients.values()
            if not patient.judgement.healthy
        ]

    # -- what is told

    def _tell(self, patient: _Patient) -> None:
        """Call back if the server's state is another than was told last."""
        ill = patient.instance.status == "suspect"
        if self._ballot is None:
            ill = ill or not patient.judgement.healthy
        if ill != patient.told_ill:
            patient.told_ill = ill
            self._call(name_of(patient.instance), ill=ill)

    def _panics(self) -> bool:
        """Whether more than half are unhealthy: then the fault is likely ours, and they stay routable."""
        ill = sum(patient.told_ill for patient in self._patients.values())
        return ill > EJECTION_CAP * len(self._patients)

    def _call(self, server_id: str, *, ill: bool) -> None:
        log.warning("server unhealthy" if ill else "server recovered", extra={"serverId": server_id})
        self.fell += ill
        self.rose += not ill
        if self._balancer is not None and not (ill and self._panics()):
            self._balancer.mark_server_healthy(server_id, not ill)
        for callback in self._unhealthy if ill else self._recovered:
            try:
                callback(server_id)
            except Exception:  # one subscriber's fault must not keep the others from hearing
                log.exception("a health callback failed")


def name_of(instance: Instance) -> str:
    return instance.server_id or instance.instance_id
