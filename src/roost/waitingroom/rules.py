"""The rules of a waiting room, without I/O."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.core.errors import InvalidInput
from roost.core.ids import check_name
from roost.core.passes import BASE

SERVER_TYPE = "game"
"""Service type of a world's servers, where the settings name none."""
BATCH_LIMIT = 100
"""Tickets in one tick, whatever the settings say; `lua/admit.lua` has it too."""
ABSOLUTE_PRIORITY = 0
"""Weight of a class that is served before every other, such as staff."""
_CLASS = re.compile(r"[a-z0-9_-]{1,16}")
_WORLD = re.compile(r"[A-Za-z0-9_-]{1,32}")
_STEPS_S = (
    5,
    10,
    15,
    20,
    30,
    45,
    60,
    90,
    120,
    180,
    240,
    300,
    420,
    600,
    900,
    1200,
    1800,
    2700,
    3600,
    5400,
    7200,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a world is run; `settings.queue` says what each means."""

    tick_ms: int = 1000
    batch: int = 100
    ticket_ms: int = 60_000
    late_ms: int = 8_000
    gone_ms: int = 300_000
    grace_ms: int = 120_000
    forfeit: int = 0
    most_waiting: int = 2_000_000
    rebuild_ms: int = 120_000
    receipt_ms: int = 3_600_000
    period_ms: int = 200
    burst: int = 10
    classes: Mapping[str, int] = field(default_factory=lambda: {"vip": 1, BASE: 3})

    @property
    def lines(self) -> list[str]:
        return [line_of(name) for name in self.classes]

    @property
    def weights(self) -> str:
        """As `admit` reads them."""
        return " ".join(f"{line_of(name)}={weight}" for name, weight in self.classes.items())

    @property
    def most_per_second(self) -> float:
        """Tickets that the ticks can issue in a second."""
        return min(self.batch, BATCH_LIMIT) * 1000 / self.tick_ms

    def share_of(self, name: str) -> float:
        total = sum(self.classes.values())
        return self.classes[name] / total if self.classes[name] != ABSOLUTE_PRIORITY and total else 1.0

    def class_of(self, line: str) -> str:
        return line.removeprefix(":") or BASE


def line_of(class_name: str) -> str:
    """The suffix of a class's keys; the base class has none."""
    return "" if class_name == BASE else f":{class_name}"


def parse_classes(text: str) -> dict[str, int]:
    """Read `staff=first,vip=1,base=3`: weights of the classes, `first` for absolute priority."""
    classes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, weight = part.strip().partition("=")
        if not _CLASS.fullmatch(name) or name in classes or not equals:
            raise InvalidInput(f"{part.strip()!r} is not name=weight with a name of its own")
        if weight != "first" and not (weight.isdecimal() and 1 <= int(weight) <= 1000):
            raise InvalidInput(f"the weight of {name} must be 1 to 1000, or first")
        classes[name] = ABSOLUTE_PRIORITY if weight == "first" else int(weight)
    if classes.get(BASE, ABSOLUTE_PRIORITY) == ABSOLUTE_PRIORITY:
        raise InvalidInput("the class base needs a weight: its share is guaranteed")
    return classes


def parse_worlds(text: str) -> dict[str, str]:
    """Read `main,arena=pvp`: the worlds, and the service type of the servers of each."""
    worlds: dict[str, str] = {}
    for part in text.split(","):
        world, _, type_ = part.strip().partition("=")
        if not _WORLD.fullmatch(world):
            raise InvalidInput(f"world {world!r} must be 1 to 32 letters, digits, - or _")
        if world in worlds:
            raise InvalidInput("a world is named twice")
        worlds[world] = check_name(type_ or SERVER_TYPE, "type")
    return worlds


def eta_seconds(rank: int, fast: int, slow: int) -> tuple[int, int] | None:
    """When their turn comes, likely and at the latest, by how fast the line moved lately and longer."""
    if fast <= 0 or slow <= 0:
        return None
    likely, late = rank * 1000 / max(fast, slow), rank * 1500 / min(fast, slow)
    return _rounded(likely), max(_rounded(likely), _rounded(late))


def wait_seconds(people: int, free: int, leaving: float, issue: float) -> float | None:
    """How long the last of so many people waits: `free` places are there at once, the others come as people
    leave, and no more than `issue` tickets go out in a second. None: never, as far as is known."""
    if issue <= 0 and people:
        return None
    late = max(0, people - free)
    if late and leaving <= 0:
        return None
    by_rate = people / issue if people else 0.0
    return round(max(by_rate, late / leaving if late else 0.0), 1)


def _rounded(seconds: float) -> int:
    """Up to a step that people speak in: more would be a promise that nobody can keep."""
    at = bisect_left(_STEPS_S, seconds)
    return _STEPS_S[at] if at < len(_STEPS_S) else 1800 * (int(seconds) // 1800 + 1)


def poll_ms(rank: int, fast: int) -> int:
    """When to ask again: a tenth of the time that is left, 2 to 30 s; the rule of `poll_interval.lua`."""
    if rank <= 100:
        return 2000
    return min(30_000, max(2000, rank * 100_000 // fast)) if fast > 0 else 30_000


def jittered_ms(user: str, poll_ms: int) -> int:
    """Up to 15 % sooner, the same for the same person: people spread, and nobody comes late by it."""
    return poll_ms - poll_ms * (zlib.crc32(user.encode()) & 0xFFFF) * 15 // 6_553_500
