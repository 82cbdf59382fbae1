"""Whether a message is the next one of its user (R9). Pure.

A gate sends a user's messages pipelined, and again after a fault; each names its sequence and the oldest one
that its sender still waits for. Executed is only the one that follows everything before it: the last executed
here, or what the sender has the answers of (those may have been given by a server that died).
"""

from __future__ import annotations

from typing import NamedTuple

MOST = 2**63 - 1
"""The database keeps a sequence in 63 bits."""


class Execute(NamedTuple):
    """It is the next one."""

    skipped: int
    """Sequences before it that were never executed though their sender does not wait for them: given up, or
    acknowledged by a server that died before it wrote them."""


class Duplicate(NamedTuple):
    """It was executed before; `forgotten`: and its sender had the answer already."""

    forgotten: bool


class Ahead(NamedTuple):
    """Another one must come first."""

    expected: int


Verdict = Execute | Duplicate | Ahead


def judge(last: int, sequence: int, oldest: int) -> Verdict:
    """`last`: the highest sequence that was executed for this user."""
    expected = max(last, oldest - 1) + 1
    if sequence == expected:
        return Execute(expected - last - 1)
    if sequence < expected:
        return Duplicate(sequence < oldest)
    return Ahead(expected)


def fault_of(sequence: int | None, oldest: int | None) -> str:
    """Why the numbers of a message cannot be right; empty if they can."""
    if sequence is None:
        return "a message needs its sequence"
    if not 1 <= sequence <= MOST:
        return f"sequence {sequence} is not within 1 to {MOST}"
    if oldest is not None and not 1 <= oldest <= sequence:
        return f"the oldest unanswered sequence, {oldest}, is not within 1 to {sequence}"
    return ""
