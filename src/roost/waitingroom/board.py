"""The board of a world: what everybody may know of it, read once a second and shared by all who ask."""

from __future__ import annotations

import asyncio
import random
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from roost.waitingroom.scripts import Board

FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """A server in the ledger."""

    server_id: str
    life: str
    capacity: int
    inside: int
    """The most people that may be on it."""
    doubt: bool
    url: str


@dataclass(frozen=True, slots=True)
class Line:
    """One class's line."""

    waiting: int
    away: int
    marks: tuple[int, ...]
    """Places, evenly spread from the first to the last in the line."""
    fast: int
    slow: int

    def rank_of(self, seq: int) -> int:
        """About where a place stands, without asking for it: at most a 64th of the line too far back."""
        if not self.marks:
            return 1
        at = bisect_left(self.marks, seq)
        return min(self.waiting, at * (self.waiting - 1) // max(1, len(self.marks) - 1) + 1)


@dataclass(frozen=True, slots=True)
class WorldBoard:
    born: int
    numbers: dict[str, str]
    lines: dict[str, Line]
    servers: tuple[Row, ...]
    offers: int
    held: int

    @classmethod
    def read(cls, found: Board, lines: list[str]) -> Self:
        numbers = dict(zip(found.numbers[::2], found.numbers[1::2], strict=True))
        triples = zip(lines, found.lines[::3], found.lines[1::3], found.lines[2::3], strict=True)
        return cls(
            int(numbers.get("born", "0")),
            numbers,
            {
                line: Line(
                    int(waiting),
                    int(away),
                    tuple(map(int, marks.split(","))) if marks else (),
                    int(numbers.get(f"fast{line}", "0")),
                    int(numbers.get(f"slow{line}", "0")),
                )
                for line, waiting, away, marks in triples
            },
            tuple(map(_row, found.servers[::2], found.servers[1::2])),
            found.offers,
            found.held,
        )

    def number(self, name: str) -> int:
        return int(self.numbers.get(name, "0"))

    @property
    def mode(self) -> str:
        return self.numbers.get("mode", "auto")

    @property
    def opens_at_us(self) -> int:
        """When the world opens by the store's clock; 0: it was never closed."""
        return self.number("opens_at")

    def is_closed(self, now_us: float) -> bool:
        """Whether the opening is still to come, by a clock that may be a little off."""
        return now_us < self.opens_at_us

    @property
    def message(self) -> str:
        return self.numbers.get("message", "")

    @property
    def limit(self) -> int | None:
        return int(self.numbers["limit"]) if "limit" in self.numbers else None

    @property
    def capacity(self) -> int:
        cap = sum(row.capacity for row in self.servers)
        return cap if self.limit is None else min(cap, self.limit)

    @property
    def inside(self) -> int:
        return sum(row.inside for row in self.servers)

    @property
    def free(self) -> int:
        return self.capacity - self.inside - self.offers - self.held

    @property
    def waiting(self) -> int:
        return sum(line.waiting for line in self.lines.values())

    @property
    def away(self) -> int:
        return sum(line.away for line in self.lines.values())

    def server_url(self, rng: random.Random | None = None) -> str:
        """Where to send somebody with a ticket: a server with room, the emptier the likelier."""
        open_rows = [row for row in self.servers if row.url and row.capacity > row.inside]
        if not open_rows:
            return next((row.url for row in self.servers if row.url), "")
        rooms = [row.capacity - row.inside for row in open_rows]
        return (rng or random).choices(open_rows, rooms)[0].url


def _row(server_id: str, packed: str) -> Row:
    life, cap, n, k, c, _, doubt, url = packed.split("\t")
    return Row(server_id, life, int(cap), int(n) + int(c) - int(k), doubt == "1", url)


class BoardCache:
    """One read a second, however many ask."""

    def __init__(self, read: Callable[[], Awaitable[WorldBoard]], fresh_s: float = FRESH_S) -> None:
        self._read = read
        self._fresh_s = fresh_s
        self._kept: WorldBoard | None = None
        self._at = 0.0
        self._reading = asyncio.Lock()

    def fresh(self) -> WorldBoard | None:
        """The board if it need not be read now: `fresh() or await get()` spares most callers the wait."""
        return self._kept if time.monotonic() - self._at < self._fresh_s else None

    async def get(self) -> WorldBoard:
        kept = self.fresh()
        if kept is not None:
            return kept
        async with self._reading:
            if self._kept is None or time.monotonic() - self._at >= self._fresh_s:
                asked = time.monotonic()
                self._kept = await self._read()
                self._at = asked
            return self._kept

    def kept(self, most_s: float) -> WorldBoard | None:
        """The board as it was read last, unless that is longer ago."""
        return self._kept if self._kept is not None and time.monotonic() - self._at <= most_s else None

    def forget(self) -> None:
        self._at = 0.0
