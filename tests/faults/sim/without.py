"""A safety taken away for a run: the simulation must miss it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from roost.binding import arrival, move
from roost.binding.arrival import Arrival, ArrivalEvent, ArrivalPhase, ArrivalStep, Gone, Opened
from roost.binding.move import SETTLE_S, Move, Phase, Step
from roost.binding.protocol import Claim, End, Event, Renew, RowRefused, Then
from roost.binding.scripts import Dead
from roost.binding.service import Bindings
from roost.core.owner import Owner
from roost.servers.entity import accepting, departing, execution
from roost.servers.entity.lease import Lease
from roost.servers.entity.ordering import Ahead, Duplicate, Execute, Verdict, judge
from roost.servers.entity.session import NEVER, Session
from roost.servers.entity.tenancy import Residence
from tests.faults.sim.rows import SimDatabase


async def _nobody_lives(*_: Any, **__: Any) -> Dead:
    """Whoever the row names is taken for dead."""
    return Dead()


def _serves_on(going: Move, event: Event, now: float) -> Step:
    """Instead of going back by a new epoch."""
    after, action = move.step(going, event, now)
    if not isinstance(action, Renew):
        return after, action
    ended = after._replace(phase=Phase.ENDED, outcome="returned")
    return ended, End("returned", after.why, Then.SERVE, after.epoch)


def _as_if_nothing_had_been(
    residence: Residence, session: Session, owner: Owner, epoch: int, generation: int
) -> None:
    now = residence.generation(session) if generation == NEVER else generation
    _residence_renewed(residence, session, owner, epoch, now)


_residence_renewed = Residence.renewed


def _takes_any_row(going: Move, event: Event, now: float) -> Step:
    if isinstance(event, RowRefused):
        return going._replace(judged=event.epoch), Claim(going.renewed, event.epoch, SETTLE_S)
    return move.step(going, event, now)


def _opens_without_a_commit(arriving: Arrival, event: ArrivalEvent) -> ArrivalStep:
    if isinstance(event, Gone):
        return arriving._replace(phase=ArrivalPhase.ENDED), Opened(arriving.offer.next_epoch)
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
    "R1": [(departing, "step", _serves_on), (Residence, "renewed", _as_if_nothing_had_been)],
    "R2": [(departing, "step", _takes_any_row)],
    "R3": [(Lease, "renewed", _renewed)],
    "R5": [(SimDatabase, "judges", False)],
    "R9": [(execution, "judge", _early)],
    "database fence": [(SimDatabase, "is_fenced", False)],
    "own lease": [(Lease, "is_valid", property(lambda lease: lease.until > 0))],
    "repair": [(Bindings, "repair", _nobody_lives)],
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
