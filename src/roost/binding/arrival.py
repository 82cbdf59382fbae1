"""The move of a user to another server, as its target sees it: what to do next. Pure.

    arrival, action = arrive(offer, fault)
    while not isinstance(action, Opened | Refuse):
        arrival, action = receive(arrival, await perform(action))

    CLAIM    ClaimRow     RowClaimed, with what was promised → LOAD; with anything else → UNDO
                          RowTaken → refuse; NoAnswer → UNDO
    LOAD     Load         Loaded → COMMIT, in a party HELD; NotLoaded → UNDO
    HELD     Hold         CommitAsked → COMMIT; Expired → UNDO
    COMMIT   CommitMap    Committed → opened; Gone → UNDO; NoAnswer → COMMIT again, after a few UNDO
    UNDO     ReleaseRow   Undone, NoAnswer → refuse

Nothing is served before `Opened`, so undoing loses nothing, also where the map was committed and nobody
knows: then the user is the target's, and is opened like anybody who comes. The row is claimed by the epoch
that the source named (R5): a late offer of a move that went back finds another one there.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from roost.binding.protocol import NoAnswer
from roost.core.owner import Owner

COMMITS = 3


class ArrivalPhase(Enum):
    CLAIM = "claim"
    LOAD = "load"
    HELD = "held"
    """Answered; waits for the word to commit."""
    COMMIT = "commit"
    UNDO = "undo"
    ENDED = "ended"


class Offer(NamedTuple):
    """What the source says of the user."""

    me: Owner
    move_id: str
    epoch: int
    next_epoch: int
    revision: int
    digest: bytes
    hold: bool = False


# -- events


class RowClaimed(NamedTuple):
    revision: int
    digest: bytes
    fault: str = ""
    """Why the class cannot read it."""


class RowTaken(NamedTuple):
    """It is at another epoch than the offer says."""


class Loaded(NamedTuple):
    pass


class NotLoaded(NamedTuple):
    why: str


class CommitAsked(NamedTuple):
    pass


class Expired(NamedTuple):
    """The word to commit does not come: its time is over, or the source has recalled the user."""


class Committed(NamedTuple):
    pass


class Gone(NamedTuple):
    pass


class Undone(NamedTuple):
    pass


ArrivalEvent = (
    RowClaimed | RowTaken | Loaded | NotLoaded | CommitAsked | Expired | Committed | Gone | Undone | NoAnswer
)


# -- actions


class ClaimRow(NamedTuple):
    epoch: int
    judged: int


class Load(NamedTuple):
    pass


class Hold(NamedTuple):
    """Answer the source, and wait."""


class CommitMap(NamedTuple):
    move_id: str
    epoch: int


class ReleaseRow(NamedTuple):
    epoch: int


class Opened(NamedTuple):
    epoch: int


class Refuse(NamedTuple):
    why: str


ArrivalAction = ClaimRow | Load | Hold | CommitMap | ReleaseRow | Opened | Refuse


class Arrival(NamedTuple):
    offer: Offer
    phase: ArrivalPhase = ArrivalPhase.CLAIM
    commits: int = 0
    why: str = ""


ArrivalStep = tuple[Arrival, ArrivalAction]
replace = Arrival._replace


def arrive(offer: Offer, fault: str) -> ArrivalStep:
    """`fault`: why nobody can be taken now, such as a lease that is over (R6); empty: there is none."""
    if fault:
        return Arrival(offer, ArrivalPhase.ENDED, why=fault), Refuse(fault)
    return Arrival(offer), ClaimRow(offer.next_epoch, offer.epoch)


def receive(arrival: Arrival, event: ArrivalEvent) -> ArrivalStep:
    """What to do after what came of the last action."""
    match arrival.phase, event:
        case ArrivalPhase.CLAIM, RowClaimed():
            fault = _differs(arrival.offer, event)
            return _undo(arrival, fault) if fault else (replace(arrival, phase=ArrivalPhase.LOAD), Load())
        case ArrivalPhase.CLAIM, RowTaken():
            return _refuse(replace(arrival, why="the row is at another epoch"))
        case ArrivalPhase.CLAIM, NoAnswer(why):
            return _undo(arrival, why)
        case ArrivalPhase.LOAD, Loaded() if arrival.offer.hold:
            return replace(arrival, phase=ArrivalPhase.HELD), Hold()
        case ArrivalPhase.LOAD, Loaded():
            return _commit(arrival)
        case ArrivalPhase.LOAD, NotLoaded(why):
            return _undo(arrival, why)
        case ArrivalPhase.HELD, CommitAsked():
            return _commit(arrival)
        case ArrivalPhase.HELD, Expired():
            return _undo(arrival, "the word to commit did not come")
        case ArrivalPhase.COMMIT, Committed():
            return replace(arrival, phase=ArrivalPhase.ENDED), Opened(arrival.offer.next_epoch)
        case ArrivalPhase.COMMIT, Gone():
            return _undo(arrival, "the source took the user back")
        case ArrivalPhase.COMMIT, NoAnswer(why):
            return _commit(arrival) if arrival.commits < COMMITS else _undo(arrival, why)
        case ArrivalPhase.UNDO, Undone() | NoAnswer():
            return _refuse(arrival)
    raise ValueError(f"{arrival.phase.value} expects no {type(event).__name__}")


def _differs(offer: Offer, row: RowClaimed) -> str:
    """Why it is not what the source wrote last, or cannot be read here."""
    if row.revision != offer.revision:
        return f"the row has revision {row.revision}, not {offer.revision}"
    if row.digest != offer.digest:
        return "the row holds another state than the source has"
    return row.fault


def _commit(arrival: Arrival) -> ArrivalStep:
    offer = arrival.offer
    asked = CommitMap(offer.move_id, offer.next_epoch)
    return replace(arrival, phase=ArrivalPhase.COMMIT, commits=arrival.commits + 1), asked


def _undo(arrival: Arrival, why: str) -> ArrivalStep:
    return replace(arrival, phase=ArrivalPhase.UNDO, why=why), ReleaseRow(arrival.offer.next_epoch)


def _refuse(arrival: Arrival) -> ArrivalStep:
    return replace(arrival, phase=ArrivalPhase.ENDED), Refuse(arrival.why)
