"""The move of a user to another server, as its source sees it: what to do next. Pure.

    move, action = begin(terms)
    while not isinstance(action, End):
        move, action = step(move, await perform(action), now)

One action is under way at a time; its event is what came of it. `NoAnswer`: it may have been done, or not.

    PREFLUSH  Preflush   Preflushed → QUIESCE, whatever came of it
    QUIESCE   TakeTurn   Turn → ASK; NoTurn → end: later, or gone
    ASK       Ask        Willing → FREEZE, in a party READY
                         Unwilling → end: later or pinned; if forced as Willing
    READY     Wait       Go → FREEZE; Recall → end: later
    FREEZE    Freeze     Frozen → FLUSH; NotFrozen, NoAnswer → RENEW
    FLUSH     Flush      Saved → ACCEPT; NotSaved → RENEW
    ACCEPT    Accept     Accepted → end: moved, in a party HELD; Refused, NoAnswer → RENEW
    HELD      Wait       Go → COMMIT; Recall → RECALL
    RECALL    GiveBack   Accepted, Refused, NoAnswer → RENEW: the target has given the row back, if it can
    COMMIT    Commit     Accepted → end: moved; Refused → RENEW
                         NoAnswer → COMMIT again, RENEW when the mark is over
    RENEW     Renew      Renewed → CLAIM; NoAnswer → end: returned, in doubt
                         Elsewhere: the target, at or above the promised epoch → end: moved
                                    ourselves, or nobody → end: returned, in doubt
                                    another → end: gone
    CLAIM     Claim      Claimed → end: returned; NoAnswer → end: returned, in doubt
                         RowRefused: ours → RENEW
                                     given back by the target, as we wrote it → CLAIM
                                     else → end: gone

From the attempt to freeze on there are two ways: the target says that it holds the user, or the source
renews, which ends the mark, and claims the row where nobody else did (R1, R2). Whoever is in doubt goes on
here, and does the same before the next message. Over its time (`max_block_s`) a move goes back. Its words
are in `protocol`, parties in `party`, what the target does in `arrival`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from roost.binding.protocol import (
    Accept,
    Accepted,
    Action,
    Ask,
    Claim,
    Claimed,
    Commit,
    Elsewhere,
    End,
    Event,
    Flush,
    Freeze,
    Frozen,
    GiveBack,
    Go,
    NoAnswer,
    NotFrozen,
    NotSaved,
    NoTurn,
    Outcome,
    Preflush,
    Preflushed,
    Recall,
    Refused,
    Renew,
    Renewed,
    RowRefused,
    Saved,
    TakeTurn,
    Terms,
    Then,
    Turn,
    Unwilling,
    Wait,
    Willing,
)
from roost.core.owner import Owner

FREEZE_SHARE = 0.5
FLUSH_SHARE = 0.75
"""Of the time that a user may be blocked: by then the mark is set, and the state written."""
SETTLE_S = 2.0
"""For each step of going back: it has to be done, however long it takes the store to answer."""
ATTEMPTS = 8
RECALL_S = 0.5
AGAIN_S = 0.02
"""Between two commits of a party."""


class Phase(Enum):
    PREFLUSH = "preflush"
    """The state is written while the user is served, so that little is left for later."""
    QUIESCE = "quiesce"
    """Waits for the user's turn."""
    ASK = "ask"
    """The class is asked whether it may be moved; nothing of the user runs from here on."""
    READY = "ready"
    """In a party: waits until everybody of it is here."""
    FREEZE = "freeze"
    FLUSH = "flush"
    ACCEPT = "accept"
    HELD = "held"
    """In a party: the target has the user, and waits for the word to commit."""
    COMMIT = "commit"
    RECALL = "recall"
    """In a party that does not move: the target gives back whom it held."""
    RENEW = "renew"
    """On the way back: a new epoch in the map, or the answer that another has the user."""
    CLAIM = "claim"
    """The row, under that epoch."""
    ENDED = "ended"


SETTLING = (Phase.RECALL, Phase.RENEW, Phase.CLAIM)


class Move(NamedTuple):
    terms: Terms
    epoch: int = 0
    """Under which the source holds the user: never again after an attempt to freeze."""
    phase: Phase = Phase.PREFLUSH
    until: float = 0.0
    """When the user has been blocked for as long as they may be."""
    mark_until: float = 0.0
    next_epoch: int = 0
    """That the target was promised; 0: it was not."""
    revision: int = 0
    digest: bytes = b""
    has_committed: bool = False
    """A commit of a party was sent: what became of it decides for the others."""
    renewed: int = 0
    judged: int = 0
    attempts: int = 0
    why: str = ""
    """The move does not come about, and why."""
    outcome: Outcome | None = None


Step = tuple[Move, Action]
replace = Move._replace


def begin(terms: Terms) -> Step:
    return Move(terms), Preflush(terms.quiesce_s)


def step(move: Move, event: Event, now: float) -> Step:
    """What to do after what came of the last action."""
    match move.phase, event:
        case Phase.PREFLUSH, Preflushed():
            return replace(move, phase=Phase.QUIESCE), TakeTurn(move.terms.quiesce_s)
        case Phase.QUIESCE, Turn(epoch):
            return replace(move, phase=Phase.ASK, epoch=epoch, until=now + move.terms.max_block_s), Ask()
        case Phase.QUIESCE, NoTurn(why, gone):
            return _end(move, "gone" if gone else "later", why, Then.STAY)
        case Phase.ASK, Willing() | Unwilling():
            return _asked(move, event, now)
        case Phase.READY, Go():
            return _freeze(move, now)
        case Phase.READY, Recall(why):
            return _end(move, "later", why, Then.STAY)
        case Phase.FREEZE, Frozen(next_epoch):
            return _flush(replace(move, next_epoch=next_epoch), now)
        case Phase.FREEZE, NotFrozen(why) | NoAnswer(why):
            return _renew(move, why)
        case Phase.FLUSH, Saved(revision, digest):
            return _accept(replace(move, revision=revision, digest=digest), now)
        case Phase.FLUSH, NotSaved(why):
            return _renew(move, why)
        case Phase.ACCEPT, Accepted() if move.terms.hold:
            return replace(move, phase=Phase.HELD), Wait(max(0.0, move.mark_until - now))
        case ((Phase.ACCEPT | Phase.COMMIT), Accepted()):
            return _end(move, "moved", "", Then.DROP, move.next_epoch)
        case ((Phase.ACCEPT | Phase.COMMIT), Refused(why)):
            return _renew(move, why)
        case Phase.ACCEPT, NoAnswer(why):
            return _renew(move, why)
        case Phase.HELD, Go():
            return _commit(replace(move, has_committed=True), now, 0.0)
        case Phase.HELD, Recall(why):
            return replace(move, phase=Phase.RECALL, why=why), GiveBack(RECALL_S)
        case Phase.RECALL, Accepted() | Refused() | NoAnswer():
            return _renew(move, move.why)
        case Phase.COMMIT, NoAnswer(why):
            return _commit(move, now, AGAIN_S) if now < move.mark_until else _renew(move, why)
        case Phase.RENEW, Renewed(epoch):
            return _claim(replace(move, renewed=epoch))
        case Phase.RENEW, Elsewhere(owner, epoch):
            return _elsewhere(move, owner, epoch)
        case Phase.CLAIM, Claimed():
            return _end(move, "returned", move.why, Then.SERVE, move.renewed)
        case Phase.CLAIM, RowRefused():
            return _row_refused(move, event)
        case ((Phase.RENEW | Phase.CLAIM), NoAnswer()):
            return _end(move, "returned", move.why, Then.DOUBT)
    raise ValueError(f"{move.phase.value} expects no {type(event).__name__}")


def _asked(move: Move, event: Willing | Unwilling, now: float) -> Step:
    terms = move.terms
    if not terms.force:
        if isinstance(event, Unwilling):
            return _end(move, event.outcome, event.why, Then.STAY, retry_ms=event.retry_ms)
        if event.party != terms.party:
            return _end(move, "later", "their party changed", Then.STAY)
    if terms.hold:
        return replace(move, phase=Phase.READY), Wait(terms.quiesce_s + terms.max_block_s)
    return _freeze(move, now)


def _freeze(move: Move, now: float) -> Step:
    within_s = _left(move, now, FREEZE_SHARE)
    if within_s <= 0:
        return _end(move, "later", "no time was left to freeze", Then.STAY)
    frozen = replace(move, phase=Phase.FREEZE, mark_until=now + move.terms.mark_s)
    return frozen, Freeze(move.epoch, within_s)


def _flush(move: Move, now: float) -> Step:
    within_s = _left(move, now, FLUSH_SHARE)
    if within_s <= 0:
        return _renew(move, "the freeze took too long")
    return replace(move, phase=Phase.FLUSH), Flush(within_s)


def _accept(move: Move, now: float) -> Step:
    within_s = _left(move, now, 1.0)
    if within_s <= 0:
        return _renew(move, "the flush took too long")
    asked = Accept(move.epoch, move.next_epoch, move.revision, move.digest, move.terms.hold, within_s)
    return replace(move, phase=Phase.ACCEPT), asked


def _left(move: Move, now: float, share: float) -> float:
    """Seconds until this share of the time that the user may be blocked is over."""
    return move.until - move.terms.max_block_s * (1 - share) - now


def _commit(move: Move, now: float, pause_s: float) -> Step:
    within_s = max(AGAIN_S, move.mark_until - now)
    return replace(move, phase=Phase.COMMIT), Commit(move.next_epoch, pause_s, within_s)


def _renew(move: Move, why: str) -> Step:
    """Go back: above all that the target may have got (R1)."""
    settling = replace(move, phase=Phase.RENEW, why=move.why or why, judged=move.judged or move.epoch)
    if move.attempts >= ATTEMPTS:
        return _end(settling, "returned", settling.why, Then.DOUBT)
    above = max(move.epoch, move.next_epoch, settling.judged)
    return replace(settling, attempts=move.attempts + 1), Renew(above, SETTLE_S)


def _claim(move: Move) -> Step:
    return replace(move, phase=Phase.CLAIM), Claim(move.renewed, move.judged, SETTLE_S)


def _elsewhere(move: Move, owner: Owner | None, epoch: int) -> Step:
    terms = move.terms
    if owner == terms.target and move.next_epoch and epoch >= move.next_epoch:
        return _end(move, "moved", "", Then.DROP, epoch)
    if owner is None or owner == terms.me:  # our beat was not heard yet
        return _end(move, "returned", move.why, Then.DOUBT)
    return _end(move, "gone", move.why, Then.LEAVE, epoch)


def _row_refused(move: Move, row: RowRefused) -> Step:
    """Our memory is good only if nobody changed the row since (R2)."""
    if (
        row.owner == move.terms.me and row.epoch > move.judged
    ):  # an earlier claim of ours, whose answer was lost
        return _renew(replace(move, judged=row.epoch), move.why)
    was_given_back = row.owner is None and row.epoch == move.next_epoch
    if was_given_back and row.revision == move.revision and row.epoch > move.judged:
        return _claim(replace(move, judged=row.epoch))
    return _end(move, "gone", move.why, Then.DROP, move.renewed)


def _end(move: Move, outcome: Outcome, why: str, then: Then, epoch: int = 0, *, retry_ms: int = 0) -> Step:
    ended = replace(move, phase=Phase.ENDED, outcome=outcome, why=why)
    return ended, End(outcome, why, then, epoch or move.epoch, retry_ms)
