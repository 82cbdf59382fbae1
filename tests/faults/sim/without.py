"""A safety taken away for a run: the simulation must miss it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from roost.binding import arrival, move
from roost.binding.arrival import Arrival, ArrivalEvent, ArrivalPhase, ArrivalStep, Gone, Opened
from roost.binding.move import Move, Step
from roost.binding.protocol import End, RowRefused, Then
from roost.servers.entity import accepting, execution
from roost.servers.entity.claims import Claims
from roost.servers.entity.departing import Departure
from roost.servers.entity.lease import Lease
from roost.servers.entity.ordering import Ahead, Duplicate, Execute, Verdict, judge
from roost.servers.entity.session import NEVER
from tests.faults.sim.rows import SimDatabase


async def _nobody_lives(*_: Any) -> None:
    """Whoever the row names is taken for dead."""


def _serves_on(going: Move, why: str) -> Step:
    return move._end(going, "returned", why, Then.SERVE)


async def _ends_as_if_nothing_had_been(going: Departure, end: End) -> None:
    if end.then is Then.SERVE and going._generation == NEVER:
        going._generation = going.host.residence.generation(going.session)
    await _departure_ends(going, end)


_departure_ends = Departure._end


def _takes_any_row(going: Move, row: RowRefused) -> Step:
    return move._claim(replace(going, judged=row.epoch))


def _opens_without_a_commit(arriving: Arrival, event: ArrivalEvent) -> ArrivalStep:
    if isinstance(event, Gone):
        return replace(arriving, phase=ArrivalPhase.ENDED), Opened(arriving.offer.next_epoch)
    return arrival.receive(arriving, event)


def _renewed(lease: Lease, sent_at: float, ttl_ms: int) -> None:
    generation = lease.generation
    _lease_renewed(lease, sent_at, ttl_ms)
    lease.generation = max(1, generation)


_lease_renewed = Lease.renewed


def _twice(last: int, sequence: int, oldest: int) -> Verdict:
    verdict = judge(last, sequence, oldest)
    return Execute(0) if isinstance(verdict, Duplicate) else verdict


def _early(last: int, sequence: int, oldest: int) -> Verdict:
    verdict = judge(last, sequence, oldest)
    return Execute(0) if isinstance(verdict, Ahead) else verdict


_CHANGES: dict[str, list[tuple[Any, str, Any]]] = {
    "R1": [(move, "_renew", _serves_on), (Departure, "_end", _ends_as_if_nothing_had_been)],
    "R2": [(move, "_row_refused", _takes_any_row)],
    "R3": [(Lease, "renewed", _renewed)],
    "R5": [(SimDatabase, "judges", False)],
    "R9": [(execution, "judge", _early)],
    "database fence": [(SimDatabase, "is_fenced", False)],
    "own lease": [(Lease, "is_valid", property(lambda lease: lease.until > 0))],
    "repair": [(Claims, "_repair", _nobody_lives)],
    "commit": [(accepting, "receive", _opens_without_a_commit)],
    "dedupe": [(execution, "judge", _twice)],
}
SAFETIES = tuple(_CHANGES)


@contextmanager
def without(safety: str) -> Iterator[None]:
    with ExitStack() as stack:
        for change in _CHANGES[safety]:
            stack.enter_context(patch.object(*change))
        yield
