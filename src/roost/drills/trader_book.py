"""What one account sent for one symbol, and what it was told. Written by its trader, read at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from roost.lanes.commands import Method, Outcome, State


@dataclass(slots=True)
class Sent:
    """One command, sent again under the same number until its outcome is known."""

    number: int
    method: int
    symbol: str
    payload: bytes
    cancels: int = 0
    """Order id of a cancel."""
    tries: int = 0
    outcome: Outcome | None = None
    refused: str = ""
    """The code of a refusal that no receipt came with; it was not executed."""

    @property
    def is_open(self) -> bool:
        return self.outcome is None and not self.refused

    @property
    def is_accepted(self) -> bool:
        return self.outcome is not None and self.outcome.state != State.REFUSED


@dataclass(slots=True)
class TraderBook:
    """In the order of sending."""

    account: str
    symbol: str
    commands: list[Sent] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    """Accepted commands that got another answer when they were sent once more."""
    asked_again: int = 0
    delays: Counter[str] = field(default_factory=Counter)
    """Answers after which a command was sent again, by their word."""
    slowest_s: float = 0.0

    def orders(self) -> dict[int, Sent]:
        """By id, those that were accepted."""
        made = (one for one in self.commands if one.method == Method.NEW and one.is_accepted)
        return {one.outcome.order_id: one for one in made if one.outcome is not None}
