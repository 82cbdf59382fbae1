"""What is done around the moves: sources are closed and opened again, gates are waited for."""

from __future__ import annotations

import logging
import time

import msgspec

from roost.api.discovery import Override
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
LAST_REPORTS_S = 20.0
"""A gate settles a message of unknown outcome when the client's time is over, 15 s by its settings."""

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

    def _alive(self) -> list[Standing]:
        owners = (Owner(server, life) for server, life in self._order.lives.items())
        return [found for owner in owners if (found := self._view.alive(owner)) is not None]

    async def close(self) -> None:
        """Nobody new comes to them; what an operator had ordered before stays as well."""
        if self._order.kind != "drain":
            return
        for one in self._alive():
            ordered = one.override or Override()
            if not ordered.drain:
                await self._view.directory.override(
                    one.instance_id, msgspec.structs.replace(ordered, drain=True)
                )
                self._progress.overridden.append(one.server_id)

    async def reopen(self) -> None:
        """They take users again, as before the job. Whoever is gone meanwhile needs nothing."""
        for one in self._alive():
            try:
                if one.server_id in self._progress.retired:
                    await self._servers.unretire(one, self._order.type)
                if one.server_id in self._progress.overridden:
                    ordered = msgspec.structs.replace(one.override or Override(), drain=False)
                    await self._view.directory.override(one.instance_id, ordered)
            except RoostError as error:
                log.warning(
                    "drain: not opened again", extra={"serverId": one.server_id, "reason": error.message}
                )
        self._progress.overridden, self._progress.retired = [], []


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
        missing = set(self._progress.gates) - (await self._records.told(self._order.id)).keys()
        if missing and now < self._until(now, FIRST_REPORTS_S):
            return False
        self._progress.late = sorted(missing)
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
