"""The health checker: tells who became unhealthy and who recovered, each once.

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
from roost.core.loops import Loops
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

    async def vote(
        self, checker: str, unhealthy: Sequence[tuple[str, str]], *, leave: bool = ...
    ) -> Tally: ...


@dataclass(slots=True)
class _Checked:
    instance: Instance
    judgement: Judgement
    """By what it answered us, and what callers reported."""
    due: float
    told_unhealthy: bool = False
    refused: bool = False
    """Whether its last failure was a refused connection; only that does a mere TCP connect refute."""
    reports_row: int = 0
    """Reports in a row of one kind: above 0 good ones, below 0 bad ones."""
    probe: Probe | None = None
    asked: asyncio.Task[None] | None = field(default=None, repr=False)


class HealthChecker:
    """Checks the servers of a service. `start()`, then callbacks; `stop()` ends it."""

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
        loops: Loops | None = None,
    ) -> None:
        self._discovery = discovery
        self._prober = prober
        self._service = (type, group)
        self._ballot = ballot
        self._interval_s = interval_s
        self._thresholds = (fall, rise)
        self._clock = clock
        self._checked: dict[str, _Checked] = {}
        """By instance id."""
        self._named: dict[str, dict[str, _Checked]] = {}
        """By server id, which is unique within a type only."""
        self._dead: dict[tuple[str, str], None] = {}
        self._knows_all = False
        self._tasks: list[asyncio.Task[None]] = []
        self._loops = loops or Loops()
        self.turns = Turns(balancer)
        self.checker_id = secrets.token_hex(6)
        self.tally = Tally()

    def start(self) -> None:
        if not self._tasks:
            keep = self._loops.keep_running
            loops = [
                keep("health watch", self._listen, pause_s=FAST_INTERVAL_S),
                keep("health probe", self._ask_around, pause_s=FAST_INTERVAL_S / 4),
            ]
            if self._ballot is not None:
                loops.append(keep("health vote", self._vote, pause_s=VOTE_INTERVAL_S))
            self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def run(self) -> None:
        """Start, and stop when cancelled."""
        self.start()
        try:
            await asyncio.gather(*self._tasks)
        finally:
            await self.stop()

    async def stop(self) -> None:
        tasks = [*self._tasks, *(p.asked for p in self._checked.values() if p.asked is not None)]
        self._tasks = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks and self._ballot is not None:
            with contextlib.suppress(StoreError, TimeoutError):  # else its silence says the same
                async with asyncio.timeout(VOTE_INTERVAL_S):
                    await self._ballot.vote(self.checker_id, (), leave=True)

    def on_server_unhealthy(self, callback: Callable[[str], None]) -> None:
        """Call back with the server id when a server becomes unhealthy or dies, once each time."""
        self.turns.unhealthy.append(callback)

    def on_server_recovered(self, callback: Callable[[str], None]) -> None:
        self.turns.recovered.append(callback)

    def is_server_healthy(self, server_id: str) -> bool:
        """Whether it is known and not unhealthy."""
        named = self._named.get(server_id, {})
        return bool(named) and all(map(self._is_healthy, named.values()))

    @staticmethod
    def _is_healthy(server: _Checked) -> bool:
        return not server.told_unhealthy and server.instance.status != "initializing"

    def report(self, server_id: str, ok: bool, latency_ms: float = 0.0) -> None:
        """What happened to a caller's own request; several in a row with one outcome count as a check."""
        for server in list(self._named.get(server_id, {}).values()):
            row = server.reports_row
            server.reports_row = max(row, 0) + 1 if ok else min(row, 0) - 1
            if abs(server.reports_row) >= REPORTS_PER_CHECK:
                server.reports_row = 0
                self._note(server, ok=ok)

    def servers(self) -> list[CheckedServer]:
        """Every server as this checker sees it, the unhealthy first."""
        rows = [self._row(server) for server in self._checked.values()]
        return sorted(rows, key=lambda row: (row.healthy, row.type, row.server_id))

    def _row(self, server: _Checked) -> CheckedServer:
        instance = server.instance
        return CheckedServer(
            server_id=name_of(instance),
            instance_id=instance.instance_id,
            life=instance.life,
            type=instance.type,
            group=instance.group,
            status=instance.status,
            healthy=self._is_healthy(server),
            accepting=instance.accepting,
            last_heartbeat=instance.last_heartbeat,
            votes=self.tally.votes.get(instance.instance_id, 0),
            probe=server.probe,
        )

    # -- what discovery says

    async def _listen(self) -> None:
        async for change in self._discovery.watch(*self._service):
            self.hear(change)
            self._loops.loop("health watch").good()

    def hear(self, change: Change) -> None:
        """Take one change of discovery into account."""
        if change.event == "snapshot":
            listed = {instance.instance_id: instance for instance in change.instances or ()}
            for instance_id in self._checked.keys() - listed.keys():
                self._forget(instance_id, died=True)
            for instance in listed.values():
                self._see(instance)
            self._knows_all = True
        elif change.event == "removed":
            self._forget(change.instance_id, died=change.status == "no-response", life=change.life)
        elif change.instance is not None:
            self._see(change.instance)

    def _see(self, instance: Instance) -> None:
        server = self._checked.get(instance.instance_id)
        if server is None or server.instance.life != instance.life:
            judgement = Judgement(*self._thresholds, healthy=not instance.unhealthy)
            due = self._clock() + jittered(self._interval_s / 2, 0.9)
            name = (instance.type, name_of(instance))
            was_unhealthy = server.told_unhealthy if server is not None else name in self._dead
            self._dead.pop(name, None)
            # What others found may have been a refusal: then a connection refutes it.
            server = _Checked(instance, judgement, due, was_unhealthy, refused=instance.unhealthy)
            self._checked[instance.instance_id] = server
            self._named.setdefault(name_of(instance), {})[instance.instance_id] = server
        server.instance = instance
        self._tell(server)

    def _forget(self, instance_id: str, *, died: bool, life: str = "") -> None:
        server = self._checked.get(instance_id)
        if server is None or (life and life != server.instance.life):
            return
        server_id = name_of(server.instance)
        del self._checked[instance_id]
        del self._named[server_id][instance_id]
        if not self._named[server_id]:
            del self._named[server_id]
        if server.asked is not None:
            server.asked.cancel()
        if died or server.told_unhealthy:
            self._dead[(server.instance.type, server_id)] = None
            if len(self._dead) > MAX_REMEMBERED:
                del self._dead[next(iter(self._dead))]
        if died and not server.told_unhealthy:
            self._turned(server_id, unhealthy=True)

    # -- what the servers say

    async def _ask_around(self) -> None:
        for server in list(self._checked.values()):
            if server.due <= self._clock() and (server.asked is None or server.asked.done()):
                server.asked = asyncio.create_task(self._ask(server))

    async def _ask(self, server: _Checked) -> None:
        try:
            self.judge(server.instance, await self._prober.probe(server.instance))
        except Exception:  # nobody awaits this task; what cannot be probed is no evidence
            log.exception("probe failed", extra={"serverId": name_of(server.instance)})
        pause = FAST_INTERVAL_S if server.judgement.in_transition else self._interval_s
        server.due = self._clock() + jittered(pause)

    def judge(self, instance: Instance, probe: Probe | None) -> None:
        """Take the outcome of one probe into account."""
        server = self._checked.get(instance.instance_id)
        if probe is None or server is None or server.instance.life != instance.life:
            return
        server.probe = probe
        if not probe.ok:
            self._note(server, ok=False, refused=probe.error == REFUSED)
        elif server.refused or (instance.health is not None and instance.health.kind != "tcp"):
            self._note(server, ok=True)

    def _note(self, server: _Checked, *, ok: bool, refused: bool = False) -> None:
        if not ok and not refused and server.judgement.healthy and self._is_capped(server):
            return
        if not ok:
            server.refused = refused
        server.judgement.note(ok, self._clock())
        self._tell(server)

    def _is_capped(self, server: _Checked) -> bool:
        """Whether so many others are unhealthy that the fault is more likely ours than theirs."""
        others = (p for p in self._checked.values() if p is not server)
        unhealthy = sum(p.told_unhealthy or not p.judgement.healthy for p in others)
        return len(self._checked) > 1 and unhealthy >= EJECTION_CAP * len(self._checked)

    # -- what the checkers decide

    async def _vote(self) -> None:
        if self._ballot is not None and self._knows_all:  # before that, silence would acquit everybody
            self.tally = await self._ballot.vote(self.checker_id, self.ballots())

    def ballots(self) -> list[tuple[str, str]]:
        """(id, life) of everybody this checker finds unhealthy."""
        return [
            (server.instance.instance_id, server.instance.life)
            for server in self._checked.values()
            if not server.judgement.healthy
        ]

    # -- what is told

    def _tell(self, server: _Checked) -> None:
        """Call back if the server's state is another than was told last."""
        unhealthy = server.instance.status == "suspect"
        if self._ballot is None:
            unhealthy = unhealthy or not server.judgement.healthy
        if unhealthy != server.told_unhealthy:
            server.told_unhealthy = unhealthy
            self._turned(name_of(server.instance), unhealthy)

    def _turned(self, server_id: str, unhealthy: bool) -> None:
        told = sum(server.told_unhealthy for server in self._checked.values())
        self.turns.tell(server_id, unhealthy, panics=told > EJECTION_CAP * len(self._checked))


class Turns:
    """Who hears of it when a server becomes unhealthy or recovers."""

    def __init__(self, balancer: Marked | None = None) -> None:
        self.unhealthy: list[Callable[[str], None]] = []
        self.recovered: list[Callable[[str], None]] = []
        self.fell = 0
        self.rose = 0
        self._balancer = balancer

    def tell(self, server_id: str, unhealthy: bool, *, panics: bool) -> None:
        """`panics`: more than half are unhealthy; then the fault is likely ours, and they stay routable."""
        log.warning("server unhealthy" if unhealthy else "server recovered", extra={"serverId": server_id})
        self.fell += unhealthy
        self.rose += not unhealthy
        if self._balancer is not None and not (unhealthy and panics):
            self._balancer.mark_server_healthy(server_id, not unhealthy)
        for callback in self.unhealthy if unhealthy else self.recovered:
            try:
                callback(server_id)
            except Exception:  # one subscriber's fault must not keep the others from hearing
                log.exception("a health callback failed")


def name_of(instance: Instance) -> str:
    return instance.server_id or instance.instance_id
