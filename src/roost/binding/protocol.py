"""The words of a move: what may come of an action, and the actions, on the side of the source."""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

from roost.core.owner import Owner

Outcome = Literal["moved", "returned", "later", "pinned", "gone"]


class Then(Enum):
    """What becomes of the session at the source."""

    STAY = "stay"
    """As if nothing had been."""
    SERVE = "serve"
    """It goes on under the new epoch, which map and row have."""
    DOUBT = "doubt"
    """It goes on, and claims anew before it serves anything."""
    DROP = "drop"
    """It is another's: nothing is written."""
    LEAVE = "leave"
    """The map names another, of whom the row may not know: written if it can be, then dropped."""


class Terms(NamedTuple):
    me: Owner
    target: Owner
    move_id: str
    max_block_s: float = 0.5
    quiesce_s: float = 1.0
    mark_s: float = 3.0
    force: bool = False
    """Whatever the class says."""
    party: str = ""
    hold: bool = False
    """Others of the party move with this one: wait for them, before the freeze and before the commit."""


# -- events


class Preflushed(NamedTuple):
    pass


class Turn(NamedTuple):
    """Nothing of the user runs; `epoch`: under which the source holds them."""

    epoch: int


class NoTurn(NamedTuple):
    """It did not come in time; `gone`: the user is not here any more."""

    why: str
    gone: bool = False


class Willing(NamedTuple):
    party: str = ""


class Unwilling(NamedTuple):
    outcome: Literal["later", "pinned"]
    why: str = ""
    retry_ms: int = 0


class Go(NamedTuple):
    """Everybody of the party is so far."""


class Recall(NamedTuple):
    """The party does not move."""

    why: str


class Frozen(NamedTuple):
    next_epoch: int


class NotFrozen(NamedTuple):
    why: str


class Saved(NamedTuple):
    """The row holds all there is, under this revision, with this digest."""

    revision: int
    digest: bytes


class NotSaved(NamedTuple):
    why: str


class Accepted(NamedTuple):
    """The target has done it."""


class Refused(NamedTuple):
    """The target has not done it and will not."""

    why: str


class Renewed(NamedTuple):
    epoch: int


class Elsewhere(NamedTuple):
    """The map does not renew: what it says instead."""

    owner: Owner | None
    epoch: int


class Claimed(NamedTuple):
    pass


class RowRefused(NamedTuple):
    """The row's epoch is not the one judged; what it says."""

    owner: Owner | None
    epoch: int
    revision: int


class NoAnswer(NamedTuple):
    """It may have been done."""

    why: str


Event = (
    Preflushed
    | Turn
    | NoTurn
    | Willing
    | Unwilling
    | Go
    | Recall
    | Frozen
    | NotFrozen
    | Saved
    | NotSaved
    | Accepted
    | Refused
    | Renewed
    | Elsewhere
    | Claimed
    | RowRefused
    | NoAnswer
)


# -- actions; `within_s`: after that the event is that there was no answer


class Preflush(NamedTuple):
    within_s: float


class TakeTurn(NamedTuple):
    within_s: float


class Ask(NamedTuple):
    pass


class Wait(NamedTuple):
    """For `Go` or `Recall`, see `party`."""

    within_s: float


class Freeze(NamedTuple):
    """The session is never served again under this epoch, from before it is sent."""

    epoch: int
    within_s: float


class Flush(NamedTuple):
    within_s: float


class Accept(NamedTuple):
    epoch: int
    next_epoch: int
    revision: int
    digest: bytes
    hold: bool
    within_s: float


class Commit(NamedTuple):
    next_epoch: int
    pause_s: float
    within_s: float


class GiveBack(NamedTuple):
    """Ask the target to let go of a user whom it holds and has not committed."""

    within_s: float


class Renew(NamedTuple):
    above: int
    within_s: float


class Claim(NamedTuple):
    epoch: int
    judged: int
    within_s: float


class End(NamedTuple):
    outcome: Outcome
    why: str
    then: Then
    epoch: int
    """Of the grant by which the user is held now, as far as it is known."""
    retry_ms: int = 0


Action = Preflush | TakeTurn | Ask | Wait | Freeze | Flush | Accept | Commit | GiveBack | Renew | Claim | End
