"""What people see of a result: lines, and tables that fit the terminal without breaking a word.

A table that is too wide loses columns: those that say nothing first, then the least important ones. What was
left out is named below it. A word that still does not fit stays whole and runs over the edge.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from roost.cli.printable import in_a_line, printable

GAP = 2
NO_LIMIT = 10_000
"""Columns where the output is no terminal and nobody said how many: a program reads it, or a file."""
SAYS_NOTHING = frozenset({"", "-"})


class Styled(NamedTuple):
    text: str
    style: str


Cell = str | Styled
"""Never markup: a bracket in a server's name is a bracket."""


@dataclass(frozen=True, slots=True)
class Column:
    """A header may be wrapped between its words; cells only where `wrap` allows it."""

    header: str
    drop: int = 0
    """Where there is no room: 1 goes first, then 2 …; 0 stays always."""
    wrap: bool = False
    shorten: bool = False
    """Words with slashes may lose their beginning: …/bin/valkey-server."""


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [[_replaced(cell, in_a_line(_text_of(cell))) for cell in row] for row in self.rows]
        fit = Fit.of([_column(column) for column in self.columns], rows, options.max_width)
        table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
        for column, width in zip(fit.columns, fit.widths, strict=True):
            table.add_column(Text(column.header), width=width)
        for row in fit.rows:
            table.add_row(*map(_text, row))
        yield from console.render(
            table, options.update(width=max(sum(fit.widths) + GAP * len(fit.widths), 1))
        )
        if fit.dropped:
            said = ", ".join(column.header for column in fit.dropped)
            yield Text(f"not shown at this width: {said}", "dim", overflow="ignore")


Part = str | Styled | Table
"""A line, a line in colour, or a table."""


def draw(part: Part) -> None:
    """A line stays a line, however long; a table fits."""
    console().print(part if isinstance(part, Table) else _text(part), crop=False, soft_wrap=True)


def together(parts: Iterable[Part]) -> Group:
    """The parts as one picture that can be drawn again and again."""
    return Group(*(part if isinstance(part, Table) else _text(part) for part in parts))


def console() -> Console:
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=shutil.get_terminal_size((NO_LIMIT, 24)).columns)


def takes_users(status: str, accepting: bool) -> str:
    """Yes or no; a suspect that takes users does so because more than half of its service is suspect."""
    if accepting and status == "suspect":
        return "yes (panic)"
    return "yes" if accepting else "no"


def age(iso: str) -> str:
    passed = (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds()
    return f"{max(0.0, passed):.0f} s ago"


@dataclass
class Fit:
    """A table cut to a width. Every width holds the longest word of its column, whatever the terminal has."""

    columns: list[Column]
    rows: list[list[Cell]]
    widths: list[int]
    dropped: list[Column]

    @classmethod
    def of(cls, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> Fit:
        shown = list(range(len(columns)))
        for at in _in_order_of_dropping(columns, rows):
            if _total(_least(columns, rows, shown)) <= width:
                break
            shown.remove(at)
        kept = [columns[at] for at in shown]
        cells = [[row[at] for at in shown] for row in rows]
        cells = _shortened(kept, cells, width)
        least = _least(kept, cells, range(len(kept)))
        most = [max(map(cell_len, [c.header, *_texts(cells, at)])) for at, c in enumerate(kept)]
        dropped = [column for at, column in enumerate(columns) if at not in shown]
        return cls(kept, cells, _grown(kept, least, most, width), dropped)


def _in_order_of_dropping(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[int]:
    def rank(at: int) -> tuple[bool, int]:
        return not SAYS_NOTHING.issuperset(_texts(rows, at)), columns[at].drop

    return sorted((at for at, column in enumerate(columns) if column.drop), key=rank)


def _least(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], shown: Iterable[int]) -> list[int]:
    """The width below which a column would break a word, or a cell that may not be wrapped."""
    widths = []
    for at in shown:
        cells = _texts(rows, at)
        pieces = [word for cell in cells for word in cell.split()] if columns[at].wrap else cells
        widths.append(max(map(cell_len, [*columns[at].header.split(), *pieces]), default=0))
    return widths


def _shortened(columns: list[Column], rows: list[list[Cell]], width: int) -> list[list[Cell]]:
    """The rows, with words cut to what the other columns leave where a column allows it."""
    for at, column in enumerate(columns):
        least = _least(columns, rows, range(len(columns)))
        if column.shorten and _total(least) > width:
            room = width - _total(least) + least[at]
            for row in rows:
                row[at] = _replaced(
                    row[at], " ".join(_tail(word, room) for word in _texts([row], at)[0].split())
                )
    return rows


def _tail(word: str, room: int) -> str:
    """As much of the end as fits, cut at a slash; the last name is never cut."""
    if cell_len(word) <= room or "/" not in word:
        return word
    parts = word.split("/")
    tails = ("…/" + "/".join(parts[at:]) for at in range(1, len(parts)))
    return next((tail for tail in tails if cell_len(tail) <= room), f"…/{parts[-1]}")


def _grown(columns: list[Column], least: list[int], most: list[int], width: int) -> list[int]:
    """What is left over goes to text that is wrapped, then to headers that become one line by it."""
    widths, room = list(least), width - _total(least)
    growing = [at for at, column in enumerate(columns) if column.wrap]
    while room > 0 and (growing := [at for at in growing if widths[at] < most[at]]):
        widths[max(growing, key=lambda at: most[at] / max(widths[at], 1))] += 1
        room -= 1
    for at, wanted in enumerate(most):
        if wanted - widths[at] <= room:
            room -= wanted - widths[at]
            widths[at] = wanted
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def _texts(rows: Sequence[Sequence[Cell]], at: int) -> list[str]:
    return [_text_of(row[at]) for row in rows]


def _text_of(cell: Cell) -> str:
    return cell.text if isinstance(cell, Styled) else cell


def _replaced(cell: Cell, text: str) -> Cell:
    return Styled(text, cell.style) if isinstance(cell, Styled) else text


def _text(cell: Cell) -> Text:
    said = printable(_text_of(cell))
    return Text(said, cell.style) if isinstance(cell, Styled) else Text(said)


def _column(column: Column | str) -> Column:
    return column if isinstance(column, Column) else Column(column)
