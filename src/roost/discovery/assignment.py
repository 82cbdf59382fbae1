"""Which checkers judge which instance: the same answer in every process and in the store. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1

CHECKERS_PER_INSTANCE = 3
"""One may be wrong, and one may die, and the others still decide."""


def assigned_checkers(live: Sequence[str], instance_id: str) -> list[str]:
    """The up to three of the live checkers with the highest scores, as `assigned_checkers.lua` finds them.

    Rendezvous hashing: one that joins or leaves moves its own share only.
    """
    if len(live) <= CHECKERS_PER_INSTANCE:
        return list(live)
    ranked = sorted(live, key=lambda checker: _score(checker, instance_id), reverse=True)
    return ranked[:CHECKERS_PER_INSTANCE]


def _score(checker: str, instance_id: str) -> int:
    """52 bits, which are as many as a number in Lua holds exactly."""
    digest = sha1(f"{checker}\t{instance_id}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:13], 16)
