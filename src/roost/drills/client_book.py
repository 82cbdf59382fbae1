"""What one client of a hot update saw. Pure: answers in, counts of what went wrong out.

A client counts upwards on its server and asks for the version, and writes down every answer in the order in
which it asked. So it knows without asking anybody:

    a number that it was given before    an acknowledged message was lost
    a lower number than the last         messages changed places
    numbers that nobody was given        a message was executed twice, or its answer was lost on the way
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ClientBook:
    user: str
    gate: str = ""
    """Name of the gate that it connected to first."""
    asked: int = 0
    answered: int = 0
    unknown: int = 0
    """Nobody could say what became of them."""
    failed: int = 0
    """The server's own code failed."""
    refused: Counter[str] = field(default_factory=Counter)
    """Not executed, and the client was told so."""
    versions: list[str] = field(default_factory=list)
    """Each time that the answer changed."""
    server: str = ""
    """That answered last."""
    seconds: list[float] = field(default_factory=list)
    """How long each answer took."""
    connects: int = 0
    ended: str = ""
    """Why it does not play any more."""
    lost: int = 0
    reordered: int = 0
    doubled: int = 0
    _given: set[int] = field(default_factory=set)
    _last: int = 0
    _unknown_counts: int = 0

    @property
    def version(self) -> str:
        """The last that it saw."""
        return self.versions[-1] if self.versions else ""

    def saw_version(self, version: str, server: str = "") -> None:
        self.server = server
        if version != self.version:
            self.versions.append(version)

    def counted(self, number: int) -> None:
        """The next count in the order of asking was answered with this."""
        if number in self._given:
            self.lost += 1
        elif number < self._last:
            self.reordered += 1
        self._given.add(number)
        self._last = number

    def no_answer(self, *, counts: bool) -> None:
        """`counts`: it was a request to count, so the number may have moved."""
        self.unknown += 1
        self._unknown_counts += counts

    def close(self, number: int) -> None:
        """The number that stands there in the end, when nothing is under way."""
        highest = max(self._given, default=0)
        self.lost += max(0, highest - number)
        unexplained = number - len(self._given) - self._unknown_counts
        self.doubled = max(0, unexplained)

    @property
    def open(self) -> int:
        """Asked, and nothing heard yet."""
        return self.asked - self.answered - self.refused.total() - self.failed - self.unknown

    @property
    def slowest_s(self) -> float:
        return max(self.seconds, default=0.0)
