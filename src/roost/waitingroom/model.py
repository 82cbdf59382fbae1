"""A world as its readers see it: its lines, its servers, its numbers."""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

from roost.waitingroom.scripts import Board


@dataclass(frozen=True, slots=True)
class Row:
    """A server in the ledger."""

    server_id: str
    life: str
    capacity: int
    inside: int
    """The most people that may be on it."""
    doubt: bool
    open: bool
    """Whether it takes new users, as the leader heard of discovery."""
    url: str

    @property
    def room(self) -> int:
        """How many more it may let in; the formula of `row_room.lua`."""
        return max(0, self.capacity - self.inside) if self.open else 0


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


@dataclass(frozen=True)
class WorldBoard:
    born: int
    numbers: dict[str, str]
    lines: dict[str, Line]
    servers: tuple[Row, ...]
    pending: tuple[Row, ...]
    """Servers that report, and that discovery does not show: they count for nothing."""
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
            tuple(map(_row, found.pending[::2], found.pending[1::2])),
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
        """The people inside, and how many more the open servers may let in; no more than the limit."""
        return self.capacity_under(self.limit)

    def capacity_under(self, limit: int | None) -> int:
        cap = sum(row.inside + row.room for row in self.servers)
        return cap if limit is None else min(cap, limit)

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
        """Where to send somebody with a ticket: an open server with room, the emptier the likelier.

        Where all are full just now, one of the open ones; empty if none is open: then they ask again.
        """
        urls, rooms = self._open_servers
        if not (rooms and rooms[-1]):
            return urls[0] if urls else ""
        return (rng or random).choices(urls, cum_weights=rooms)[0]

    @cached_property
    def _open_servers(self) -> tuple[list[str], list[int]]:
        """Where people can be sent, and the room up to each: every holder of a ticket who asks needs it."""
        rows = [row for row in self.servers if row.open and row.url]
        return [row.url for row in rows], list(accumulate(row.room for row in rows))


def most_inside(*, reported: int, counted: int, consumed: int) -> int:
    """The most people that may be on a server, by its row in the ledger; the formula of `most_inside.lua`."""
    return reported + consumed - counted


def _row(server_id: str, packed: str) -> Row:
    """Reads what `row_pack.lua` writes."""
    life, capacity, reported, counted, consumed, _, doubt, is_open, url = packed.split("\t")
    inside = most_inside(reported=int(reported), counted=int(counted), consumed=int(consumed))
    return Row(server_id, life, int(capacity), inside, doubt == "1", is_open == "1", url)
