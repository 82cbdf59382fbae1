"""Asking around: which instances are ours to judge, and each of them in its turn.

It runs on the loop that serves requests, so it takes little of it at a time: a few probes are started every
few milliseconds, and after the live checkers changed a few instances are assigned anew. A thread of its own
would wait for the interpreter's lock behind a busy gateway, and take it from requests all the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from roost.api.discovery import CheckedServer, Instance, Probe
from roost.core.backoff import jittered
from roost.discovery.judgement import Evidence
from roost.discovery.probes import Prober, declares_check
from roost.discovery.schedule import BURST_S, PROBES_PER_S, FreeTime, Schedule
from roost.discovery.voting import Finding, Voting

log = logging.getLogger("roost.discovery.health")

INTERVAL_S = 5.0
FAST_INTERVAL_S = 1.0
TURN_S = BURST_S
IDLE_S = 0.25
MAX_ASKED = 192
"""At once: fewer than the prober takes, so that a mute fleet leaves room for who else probes."""
REVIEWED_PER_TURN = 100


@dataclass(slots=True)
class Checked:
    """One life of an instance, and what is known of its health."""

    id: str
    instance: Instance
    evidence: Evidence
    reports_row: int = 0
    """Reports in a row of one kind: above 0 good ones, below 0 bad ones."""
    probe: Probe | None = None
    asked: asyncio.Task[None] | None = field(default=None, repr=False)

    def finding(self) -> Finding:
        """What the others must hear: nothing before we are sure, nor of who is healthy to everybody."""
        healthy = self.evidence.healthy
        # Where it is suspect the verdict may be against it, and takes a majority to turn.
        if (healthy and self.instance.status != "suspect") or not self.evidence.settled:
            return "none"
        return "healthy" if healthy else "unhealthy"

    def as_row(self, healthy: bool, votes: int) -> CheckedServer:
        instance = self.instance
        return CheckedServer(
            server_id=name_of(instance),
            instance_id=instance.instance_id,
            life=instance.life,
            type=instance.type,
            group=instance.group,
            status=instance.status,
            healthy=healthy,
            accepting=instance.accepting,
            last_heartbeat=instance.last_heartbeat,
            votes=votes,
            probe=self.probe,
        )


class Rounds:
    """Who is assigned to this checker, and when each is asked. Without a vote everybody is."""

    def __init__(
        self,
        prober: Prober,
        judge: Callable[[Instance, Probe | None], None],
        voting: Voting | None = None,
        *,
        interval_s: float = INTERVAL_S,
        probes_per_s: float = PROBES_PER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prober = prober
        self._judge = judge
        self._voting = voting
        self._interval_s = interval_s
        self._clock = clock
        self._schedule = Schedule(clock, probes_per_s, FreeTime())
        self._asking: set[asyncio.Task[None]] = set()
        self._unreviewed: dict[str, Checked] = {}
        """Who may be assigned to others since the live checkers changed."""
        self.assigned: dict[str, Checked] = {}

    def assign(self, server: Checked) -> None:
        """Begin to judge it if it is ours now, and leave it to others if it is not any more."""
        if self._voting is not None and not self._voting.is_assigned(server.id):
            self.release(server)
        elif server.id not in self.assigned:
            self.assigned[server.id] = server
            if declares_check(server.instance):
                self._schedule.put(server.id, self._clock() + jittered(self._interval_s / 2, 0.9))

    def release(self, server: Checked) -> None:
        """Not ours, or gone: who judges it again begins with what the others decided."""
        self._unreviewed.pop(server.id, None)
        if self.assigned.pop(server.id, None) is None:
            return
        server.evidence = server.evidence.begun_anew(healthy=not server.instance.unhealthy)
        self._schedule.drop(server.id)
        if server.asked is not None:
            server.asked.cancel()
        if self._voting is not None:
            self._voting.withdraw(server.id)

    def review(self, servers: Iterable[Checked]) -> None:
        """All of them may be assigned to others now; `reassign` looks at them by and by."""
        self._unreviewed = {server.id: server for server in servers}

    def reassign(self) -> list[Checked]:
        """Look at some of those that must be; returns them."""
        looked_at = list(islice(self._unreviewed.values(), REVIEWED_PER_TURN))
        for server in looked_at:
            del self._unreviewed[server.id]
            self.assign(server)
        return looked_at

    def idle_s(self) -> float:
        """How long until there is something to do."""
        return TURN_S if self._unreviewed else min(max(self._schedule.wait_s(), TURN_S), IDLE_S)

    @property
    def lag_s(self) -> float:
        """How long the next one to be asked has waited for its turn: above 0 where the budget is spent."""
        return max(0.0, -self._schedule.wait_s())

    def ask(self) -> None:
        """Begin to ask those whose turn it is."""
        for instance_id in self._schedule.take(MAX_ASKED - len(self._asking)):
            server = self.assigned[instance_id]
            server.asked = asyncio.create_task(self._ask(server))
            self._asking.add(server.asked)
            server.asked.add_done_callback(self._asking.discard)

    async def _ask(self, server: Checked) -> None:
        try:
            self._judge(server.instance, await self._prober.probe(server.instance))
        except Exception:  # nobody awaits this task; what cannot be probed is no evidence
            log.exception("probe failed", extra={"serverId": name_of(server.instance)})
        doubted = server.evidence.in_transition
        pause = FAST_INTERVAL_S if doubted else self._interval_s
        self._schedule.put(server.id, self._clock() + jittered(pause), doubted=doubted)

    async def stop(self) -> None:
        asking = list(self._asking)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def name_of(instance: Instance) -> str:
    return instance.server_id or instance.instance_id
