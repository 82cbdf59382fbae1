"""What is done around the moves: sources are closed and opened again, gates are waited for."""

from __future__ import annotations

import logging
import time

import msgspec

from roost.api.discovery import Override
from roost.api.drain import JobState
from roost.binding.drain.certificate import GateReport, reconcile
from roost.binding.drain.model import MAX_GATES, Job, Order, Progress
from roost.binding.drain.movers import EntityServers
from roost.binding.drain.records import JobRecords
from roost.binding.drain.standing import Standing
from roost.binding.drain.view import View
from roost.core.errors import RoostError
from roost.core.owner import Owner

log = logging.getLogger("roost.drain")

FIRST_REPORTS_S = 3.0
"""How long the first move waits for the gates to begin to count."""
ROLLING_BACK: JobState = "rolling-back"
LAST_REPORTS_S = 20.0
"""A gate settles a message of unknown outcome when the client's time is over, 15 s by its settings."""
REOPEN_S = 30.0
REOPEN_AGAIN_S = 0.5
"""How long, and how often, a source is told again that it takes users, where that failed."""

_report = msgspec.json.Decoder(GateReport).decode


def read_report(packed: bytes) -> GateReport:
    return _report(packed)


class Sources:
    """The servers of a job as discovery and they themselves are told of it."""

    def __init__(self, order: Order, progress: Progress, view: View, servers: EntityServers) -> None:
        self._order = order
        self._progress = progress
        self._view = view
        self._servers = servers
        self._again_at = float("-inf")
        self._until: float | None = None

    def _alive(self) -> list[Standing]:
        owners = (Owner(server, life) for server, life in self._order.lives.items())
        return [found for owner in owners if (found := self._view.alive(owner)) is not None]

    async def close(self) -> None:
        """Nobody new comes to them; what an operator had ordered before stays as well. It is for this life of
        theirs: a server that comes back under its id, as a pod does, takes users."""
        if self._order.kind != "drain":
            return
        for one in self._alive():
            ordered = one.override or Override()
            if not ordered.drain:
                closed = msgspec.structs.replace(ordered, drain=True, drain_life=one.owner.life)
                await self._view.directory.override(one.instance_id, closed)
                self._progress.overridden.append(one.server_id)

    async def reopen(self, now: float) -> bool:
        """They take users again, as before the job. Whoever is gone meanwhile needs nothing.

        False: one of them could not be told. It is tried again, for a while; then it stays as it is.
        """
        if now < self._again_at:
            return False
        if self._until is None:
            self._until = now + REOPEN_S
        failed = {one.server_id for one in self._alive() if not await self._reopen(one)}
        progress = self._progress
        progress.overridden = [one for one in progress.overridden if one in failed]
        progress.retired = [one for one in progress.retired if one in failed]
        if failed and now < self._until:
            self._again_at = now + REOPEN_AGAIN_S
            return False
        self._again_at, self._until = float("-inf"), None
        return True

    async def _reopen(self, one: Standing) -> bool:
        try:
            if one.server_id in self._progress.retired:
                await self._servers.unretire(one, self._order.type)
            if self._is_ours(one):
                ordered = msgspec.structs.replace(one.override or Override(), drain=False, drain_life="")
                await self._view.directory.override(one.instance_id, ordered)
        except RoostError as error:
            said = {"serverId": one.server_id, "reason": error.message}
            log.warning("drain: not opened again", extra=said)
            return False
        return True

    def _is_ours(self, one: Standing) -> bool:
        """Whether this job closed it. Only drains close for one life; one that died may not have said so."""
        if self._order.kind != "drain":
            return False
        return one.is_drained_alone or one.server_id in self._progress.overridden


class Witnesses:
    """The gates that count while users move."""

    def __init__(self, order: Order, progress: Progress, view: View, records: JobRecords) -> None:
        self._order = order
        self._progress = progress
        self._view = view
        self._records = records
        self._waits_until: float | None = None

    def seen(self) -> None:
        """The gates that are there now are expected to report."""
        known = dict.fromkeys((*self._progress.gates, *sorted(self._view.gates)))
        self._progress.gates = list(known)[:MAX_GATES]

    async def are_counting(self, now: float) -> bool:
        """Whether the first user may move: every gate has told something, or has had its time."""
        told = await self._records.told(self._order.id)
        return self._may_begin(set(self._progress.gates) - told.keys(), now)

    async def are_counting_again(self, now: float) -> bool:
        """Whether the first user may go back: what a gate told of the way there does not count."""
        told = await self._told()
        counting = {gate for gate, report in told.items() if report.seen == ROLLING_BACK}
        return self._may_begin(self._view.gates - counting, now)

    def wait_anew(self) -> None:
        """The job is in another state: what is waited for now has its whole time."""
        self._waits_until = None

    def _may_begin(self, missing: set[str], now: float) -> bool:
        if missing and now < self._until(now, FIRST_REPORTS_S):
            return False
        self._progress.late = sorted({*self._progress.late, *missing})
        self._waits_until = None
        return True

    async def certificate(self, job: Job, now: float) -> dict[str, object] | None:
        """Of what the gates have told; None: wait for more."""
        told = await self._told()
        final = {gate for gate, report in told.items() if report.is_final}
        if not final >= {*self._progress.gates, *told} and now < self._until(now, LAST_REPORTS_S):
            return None
        made = reconcile(job, told, self._progress.gates, self._progress.late)
        plain: dict[str, object] = msgspec.to_builtins(made)
        return plain | {"lines": made.lines(), "at": time.time()}

    async def _told(self) -> dict[str, GateReport]:
        told: dict[str, GateReport] = {}
        for gate, packed in (await self._records.told(self._order.id)).items():
            try:
                told[gate] = read_report(packed)
            except msgspec.MsgspecError:  # as if it had told nothing
                log.warning("drain: a report cannot be read", extra={"gate": gate})
        return told

    def _until(self, now: float, seconds: float) -> float:
        if self._waits_until is None:
            self._waits_until = now + seconds
        return self._waits_until
