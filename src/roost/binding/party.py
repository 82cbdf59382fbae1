"""A party: users who move together, or not at all. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from roost.binding.move import SETTLING, Move, Phase
from roost.binding.protocol import Go, Recall

MOST_IN_PARTY = 64
"""Of a larger one nobody moves; by force each goes alone."""


def orders(moves: Sequence[Move], now: float) -> list[tuple[int, Go | Recall]]:
    """What the waiting ones of a party are told now, by their place.

    All freeze, or none; then one commits. Once it is certain that one has moved, the others follow; if it is
    certain that it has not, nobody does.
    """
    waiting = [at for at, move in enumerate(moves) if move.phase in (Phase.READY, Phase.HELD)]
    if any(move.outcome == "moved" for move in moves):
        return [(at, Go()) for at in waiting]
    if any(move.has_committed and move.phase is not Phase.ENDED for move in moves):
        return []
    if (why := _fault(moves, now)) is not None:
        return [(at, Recall(why)) for at in waiting]
    if len(waiting) < len(moves) or len({move.phase for move in moves}) > 1:
        return []
    return [(at, Go()) for at in (waiting if moves[0].phase is Phase.READY else waiting[:1])]


def _fault(moves: Sequence[Move], now: float) -> str | None:
    """Why the party does not move, if one of it does not."""
    for move in moves:
        if move.phase is Phase.ENDED or move.phase in SETTLING:
            return f"one of the party does not move: {move.why or move.outcome}"
        if move.until and now > move.until:
            return "the party took too long"
    return None
