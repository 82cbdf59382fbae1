"""The health checker: tells who became unhealthy and who recovered, each once.

It listens to discovery (silence makes an instance suspect there, by lease time, so no clock of ours is
involved) and asks every instance that declares a health check itself. A TCP connect alone never proves life:
a stopped process accepts it. It refutes what TCP probes found, no more. An instance whose record is gone is
judged all the same: if it did not say goodbye it is unhealthy, once.

Given a `ballot`, it asks only those that are assigned to it, and what it finds is only its vote: the majority
of those assigned decides, and everybody hears the decision from discovery. Without one it asks everybody, and
its own finding counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping

from roost.api.discovery import Change, CheckedServer, Instance, Probe, Watcher
from roost.core.errors import InvalidInput, StoreError
from roost.core.loops import Loops
from roost.discovery.judgement import FALL, RISE, Evidence
from roost.discovery.probes import REFUSED, Prober
from roost.discovery.rounds import INTERVAL_S, Checked, Rounds, name_of
from roost.discovery.schedule import PROBES_PER_S
from roost.discovery.turns import Marked, Marks, Turns
from roost.discovery.voting import Ballot, Voting

log = logging.getLogger("roost.discovery.health")

VOTE_INTERVAL_S = 1.0
RELISTEN_S = 1.0
EJECTION_CAP = 0.5
"""Share of those it asks that soft evidence (probes without an answer, reports) may make unhealthy; and of
those it knows that its own findings may take out of a balancer."""
REPORTS_PER_CHECK = 5
"""Requests in a row with one outcome, as reported by callers, that count as one check."""
MAX_REMEMBERED = 10_000
"""Dead servers whose return is told as a recovery."""
REGISTER_AGAIN_S = 30.0
"""A store that lost its memory: who lives has registered again by then, which takes a third of a lease."""


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
        probes_per_s: float = PROBES_PER_S,
        fall: int = FALL,
        rise: int = RISE,
        clock: Callable[[], float] = time.monotonic,
        loops: Loops | None = None,
    ) -> None:
        if ballot is not None and (type, group) != ("*", "*"):
            raise InvalidInput("a checker with a ballot is assigned instances of every type and group")
        self._discovery = discovery
        self._service = (type, group)
        self._thresholds = (fall, rise)
        self._clock = clock
        self._checked: dict[str, Checked] = {}
        """By instance id."""
        self._named: dict[str, dict[str, Checked]] = {}
        """By server id, which is unique within a type only."""
        self._unhealthy: set[str] = set()
        """Those assigned to us that are unhealthy, by discovery or by our own finding."""
        self._told: set[str] = set()
        """Those that were told to be unhealthy."""
        self._missing: dict[str, float] = {}
        """Id → when it counts as dead: the store lost its memory, and it has not registered again."""
        self._dead: dict[tuple[str, str], None] = {}
        self._revision = -1  # of the last change that was heard
        self._tasks: list[asyncio.Task[None]] = []
        self._loops = loops or Loops()
        self.voting = Voting(ballot) if ballot is not None else None
        self.rounds = Rounds(
            prober, self.judge, self.voting, interval_s=interval_s, probes_per_s=probes_per_s, clock=clock
        )
        self.turns = Turns()
        self._marks = Marks(balancer, EJECTION_CAP)

    def start(self) -> None:
        if not self._tasks:
            keep = self._loops.keep_running
            loops = [
                keep("health watch", self._listen, pause_s=RELISTEN_S),
                keep("health probe", self._ask_around, pause_s=self.rounds.idle_s),
            ]
            if self.voting is not None:
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
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self.rounds.stop(), return_exceptions=True)
        if tasks and self.voting is not None:
            with contextlib.suppress(StoreError, TimeoutError):  # else its silence says the same
                async with asyncio.timeout(VOTE_INTERVAL_S):
                    await self.voting.leave()

    def on_server_unhealthy(self, callback: Callable[[str], None]) -> None:
        """Call back with the server id when a server becomes unhealthy or dies, once each time."""
        self.turns.unhealthy.append(callback)

    def on_server_recovered(self, callback: Callable[[str], None]) -> None:
        self.turns.recovered.append(callback)

    def is_server_healthy(self, server_id: str) -> bool:
        """Whether it is known and not unhealthy."""
        named = self._named.get(server_id, {})
        return bool(named) and all(map(self._is_healthy, named.values()))

    def _is_healthy(self, server: Checked) -> bool:
        return server.id not in self._told and server.instance.status != "initializing"

    def report(self, server_id: str, ok: bool, latency_ms: float = 0.0) -> None:
        """What happened to a caller's own request; several in a row with one outcome count as a check."""
        for server in list(self._named.get(server_id, {}).values()):
            row = server.reports_row
            server.reports_row = max(row, 0) + 1 if ok else min(row, 0) - 1
            if abs(server.reports_row) >= REPORTS_PER_CHECK:
                server.reports_row = 0
                if ok or not self._is_capped(server):
                    server.evidence.reported(ok, self._clock())
                    self._weigh(server)

    @property
    def live(self) -> int:
        """How many checkers count, as far as this one has heard."""
        return len(self.voting.live) if self.voting is not None else 0

    def servers(self, votes: Mapping[str, int] | None = None) -> list[CheckedServer]:
        """Every server as this checker sees it, the unhealthy first; `votes` come from `Discovery.votes`."""
        rows = [
            server.as_row(self._is_healthy(server), (votes or {}).get(server.id, 0))
            for server in self._checked.values()
        ]
        return sorted(rows, key=lambda row: (row.healthy, row.type, row.server_id))

    # -- what discovery says

    async def _listen(self) -> None:
        loop = self._loops.loop("health watch")
        async for change in self._discovery.watch(*self._service):
            self.hear(change)
            loop.good()

    def hear(self, change: Change) -> None:
        """Take one change of discovery into account."""
        self.turns.at = int(change.revision_at)
        if change.event == "snapshot":
            self._hear_all(change)
        elif change.event == "removed":
            self._forget(change.instance_id, died=change.status == "no-response", life=change.life)
        elif change.instance is not None:
            self._see(change.instance)
        self._revision = change.revision

    def _hear_all(self, change: Change) -> None:
        """A snapshot: who is not in it is dead, unless the store has lost its memory."""
        listed = {instance.instance_id: instance for instance in change.instances or ()}
        missing = self._checked.keys() - listed.keys() - self._missing.keys()
        if change.revision < self._revision or _knows_no_life_of(self._checked, listed):
            self._missing |= dict.fromkeys(missing, self._clock() + REGISTER_AGAIN_S)
            missing = set()
        for instance_id in missing:
            self._forget(instance_id, died=True)
        for instance in listed.values():
            self._see(instance)
        if self.voting is not None:
            self.voting.repeat()  # what broke the feed's continuity may have cost the store our votes too

    def _see(self, instance: Instance) -> None:
        self._missing.pop(instance.instance_id, None)
        server = self._checked.get(instance.instance_id)
        if server is None or server.instance.life != instance.life:
            server = self._begin(instance, server)
        server.instance = instance
        self._weigh(server)

    def _begin(self, instance: Instance, former: Checked | None) -> Checked:
        """Know a new life."""
        instance_id, name = instance.instance_id, (instance.type, name_of(instance))
        if name in self._dead:
            del self._dead[name]
            self._told.add(instance_id)
            self._marks.returned(instance)
        if former is not None:
            self.rounds.release(former)
        believed = self.voting is None or not instance.unhealthy  # a verdict is no finding of a lone checker
        server = Checked(instance_id, instance, Evidence(self._thresholds, healthy=believed))
        self._checked[instance_id] = server
        self._named.setdefault(name_of(instance), {})[instance_id] = server
        self.rounds.assign(server)
        return server

    def _forget(self, instance_id: str, *, died: bool, life: str = "") -> None:
        server = self._checked.get(instance_id)
        if server is None or (life and life != server.instance.life):
            return
        server_id = name_of(server.instance)
        del self._checked[instance_id]
        del self._named[server_id][instance_id]
        if not self._named[server_id]:
            del self._named[server_id]
        self._missing.pop(instance_id, None)
        self.rounds.release(server)
        self._unhealthy.discard(instance_id)
        was_told = instance_id in self._told
        self._told.discard(instance_id)
        if died or was_told:
            self._dead[(server.instance.type, server_id)] = None
            if len(self._dead) > MAX_REMEMBERED:
                del self._dead[next(iter(self._dead))]
        self._marks.left(server.instance, died=died or was_told)
        if died and not was_told:
            self.turns.tell(server.instance, True, "it died: its lease ended")

    # -- what the servers say

    async def _ask_around(self) -> None:
        for server in self.rounds.reassign():
            self._weigh(server)
        self.give_up_missing()
        self.rounds.ask()

    def give_up_missing(self) -> None:
        """Count those as dead that have not registered again in time."""
        now = self._clock()
        for instance_id in [missing for missing, until in self._missing.items() if until <= now]:
            self._forget(instance_id, died=True)

    def judge(self, instance: Instance, probe: Probe | None) -> None:
        """Take the outcome of one probe into account."""
        server = self._checked.get(instance.instance_id)
        if probe is None or server is None or server.instance.life != instance.life:
            return
        server.probe = probe
        is_soft = not probe.ok and probe.error != REFUSED
        if not probe.asked or (is_soft and self._is_capped(server)):
            return
        proves_life = instance.health is not None and instance.health.kind != "tcp"
        server.evidence.probed(probe.ok, self._clock(), proves_life=proves_life)
        self._weigh(server)

    def _is_capped(self, server: Checked) -> bool:
        """Whether so many others are unhealthy that the fault is more likely ours than theirs."""
        others = len(self._unhealthy) - (server.id in self._unhealthy)
        return (
            server.evidence.healthy
            and len(self.rounds.assigned) > 1
            and others >= EJECTION_CAP * len(self.rounds.assigned)
        )

    def _weigh(self, server: Checked) -> None:
        """After anything about the server changed: what follows of it for the vote, and who is told."""
        unhealthy = server.instance.status == "suspect"
        if self.voting is None:
            unhealthy = unhealthy or not server.evidence.healthy
        else:
            finding = server.finding() if server.id in self.rounds.assigned else "none"
            self.voting.say(server.id, server.instance.life, finding)
        counts = (unhealthy or not server.evidence.healthy) and server.id in self.rounds.assigned
        (self._unhealthy.add if counts else self._unhealthy.discard)(server.id)
        found = self.voting is None and not server.evidence.healthy
        self._marks.weigh(server.instance, found, len(self._checked))
        if unhealthy != (server.id in self._told):
            (self._told.add if unhealthy else self._told.discard)(server.id)
            self.turns.tell(server.instance, unhealthy, _reason(server) if unhealthy else "")

    # -- what the checkers decide

    async def _vote(self) -> None:
        if self._revision >= 0 and self.voting is not None and await self.voting.send():
            self.rounds.review(self._checked.values())


def _reason(server: Checked) -> str:
    if not server.instance.unhealthy and server.evidence.healthy:
        return "no heartbeat, or its main loop hangs"
    error = server.probe.error if server.probe is not None and not server.probe.ok else ""
    return f"its health check fails: {error}" if error else "its health check fails"


def _knows_no_life_of(known: Mapping[str, Checked], listed: Mapping[str, Instance]) -> bool:
    """Whether of several nobody is left as we knew it: so many do not die at once between two looks."""
    return len(known) > 1 and not any(
        (now := listed.get(instance_id)) is not None and now.life == server.instance.life
        for instance_id, server in known.items()
    )
