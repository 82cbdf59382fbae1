"""Tables at any width: words and ids stay whole, and what has no room is left out and named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from roost.cli.context import Context
from roost.cli.tables import Cell, Column, Part, Styled, Table, together

WORDS = st.text("abcdefghij:/[]{}", min_size=1, max_size=12)
SENTENCES = st.lists(WORDS, max_size=4).map(" ".join)


def rendered(*parts: Part, width: int = 80) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(together(parts), crop=False)
    return captured.get().splitlines()


def words_of(table: Table) -> set[str]:
    headers = [column if isinstance(column, str) else column.header for column in table.columns]
    cells = [cell.text if isinstance(cell, Styled) else cell for row in table.rows for cell in row]
    return {word for text in (*headers, *cells) for word in text.split()}


def test_what_fits_is_shown_whole() -> None:
    table = Table(("server", Column("takes users", drop=1)), [("501", "yes"), ("502", Styled("no", "red"))])
    assert [line.rstrip() for line in rendered(table)] == ["server  takes users", "501     yes", "502     no"]


def test_the_least_important_column_goes_first_and_is_named() -> None:
    columns = ("server", Column("beat", drop=2), Column("votes", drop=1))
    lines = rendered(Table(columns, [("501", "3 s ago", "1/3")]), width=20)
    assert [line.rstrip() for line in lines] == [
        "server  beat",
        "501     3 s ago",
        "not shown at this width: votes",
    ]


def test_a_column_that_says_nothing_goes_before_the_others() -> None:
    columns = ("server", Column("beat", drop=1), Column("limit", drop=9))
    lines = rendered(Table(columns, [("501", "3 s ago", "-")]), width=20)
    assert lines[0].split() == ["server", "beat"]


def test_a_header_is_wrapped_between_its_words_before_a_column_is_dropped() -> None:
    lines = rendered(Table(("server", Column("takes users", drop=1)), [("501", "yes")]), width=14)
    assert [line.rstrip() for line in lines] == ["        takes", "server  users", "501     yes"]


def test_text_is_wrapped_between_words_and_a_path_loses_its_beginning() -> None:
    columns = ("what", Column("found", wrap=True, shorten=True))
    long = "/home/somebody/.venv/lib/python3.11/site-packages/server/bin/valkey-server"
    lines = rendered(Table(columns, [("program", long), ("port", "8400 is taken by another")]), width=30)
    assert [line.rstrip() for line in lines] == [
        "what     found",
        "program  …/bin/valkey-server",
        "port     8400 is taken by",
        "         another",
    ]


@pytest.mark.parametrize("width", [1, 10])
def test_an_id_that_has_no_room_runs_over_the_edge(width: int) -> None:
    lines = rendered(Table(("instance",), [("01J8ZK3V7Q4M5N6P7R8S9T0VWX",)]), width=width)
    assert lines[1] == "01J8ZK3V7Q4M5N6P7R8S9T0VWX"


def test_brackets_are_not_markup() -> None:
    assert "back at [20:00] [/red]" in rendered(Table(("message",), [("back at [20:00] [/red]",)]))[1]


@given(
    headers=st.lists(SENTENCES, min_size=1, max_size=6),
    cells=st.lists(st.lists(SENTENCES, min_size=6, max_size=6), max_size=4),
    drops=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    wraps=st.lists(st.booleans(), min_size=6, max_size=6),
    width=st.integers(1, 120),
)
def test_no_word_is_ever_broken(
    headers: list[str], cells: list[list[str]], drops: list[int], wraps: list[bool], width: int
) -> None:
    columns = [Column(header, drops[at], wraps[at]) for at, header in enumerate(headers)]
    rows: list[list[Cell]] = [list(row[: len(columns)]) for row in cells]
    table = Table(columns, rows)
    shown = "\n".join(rendered(table, width=width)).partition("not")[0]
    assert set(shown.split()) <= words_of(table)
    if not any(drops[: len(columns)]):
        assert set(shown.split()) == words_of(table)


ESCAPE = "kr\x1b]52;c;ZWNobw==\x07\x9b2J"
"""Would write the clipboard and clear the screen of whoever lists servers."""


def test_what_servers_call_themselves_commands_no_terminal() -> None:
    table = Table(("server", "host"), [(f"{ESCAPE}\nforged  row", Styled(ESCAPE, "red"))])
    lines = rendered(table, ESCAPE, Styled(ESCAPE, "red"))
    assert [line.rstrip() for line in lines] == [
        "server                             host",
        "kr?]52;c;ZWNobw==??2J?forged  row  kr?]52;c;ZWNobw==??2J",
        *["kr?]52;c;ZWNobw==??2J"] * 2,
    ]


def test_lines_that_are_shown_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Context({}).show("x", lambda _: ["first\nsecond", ESCAPE])
    assert capsys.readouterr().out == "first\nsecond\nkr?]52;c;ZWNobw==??2J\n"
