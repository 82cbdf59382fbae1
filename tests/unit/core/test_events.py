"""`news`: whatever happened to the stream, a reader is never given entries across a hole or a fork."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from roost.core.events import START, Entry, Gap, Mark, news


def history(*times: int) -> list[Entry]:
    """Entries 1, 2, … at these times, each chained to the one before."""
    before = (0, *times)
    return [Entry(rev, at, before[rev - 1], {}) for rev, at in enumerate(times, start=1)]


def held_from(entries: Sequence[Entry], after: Mark) -> list[Entry]:
    """What a store that holds `entries` answers to a reader at `after`."""
    return [entry for entry in entries if entry.rev >= after.rev]


TIMELINE = history(10, 20, 30, 40)


def test_a_new_reader_of_an_empty_feed_has_no_news() -> None:
    assert news(START, []) == []


def test_a_new_reader_gets_everything_from_the_first_entry_on() -> None:
    assert news(START, TIMELINE) == TIMELINE


def test_a_reader_gets_what_follows_its_mark() -> None:
    assert news(Mark(2, 20), held_from(TIMELINE, Mark(2, 20))) == TIMELINE[2:]


def test_a_reader_at_the_head_has_no_news() -> None:
    assert news(Mark(4, 40), TIMELINE[3:]) == []


def test_a_reader_whose_own_entry_was_trimmed_goes_on_by_the_chain() -> None:
    assert news(Mark(2, 20), TIMELINE[2:]) == TIMELINE[2:]


def test_trimmed_news_are_a_gap() -> None:
    assert news(Mark(1, 10), TIMELINE[2:]) == Gap(Mark(1, 10))
    assert news(START, TIMELINE[1:]) == Gap(START)


def test_a_hole_in_the_middle_is_a_gap() -> None:
    assert news(Mark(1, 10), [TIMELINE[0], TIMELINE[1], TIMELINE[3]]) == Gap(Mark(1, 10))


def test_a_history_that_is_gone_is_a_gap() -> None:
    assert news(Mark(4, 40), []) == Gap(Mark(4, 40))


def test_a_fork_that_reuses_the_readers_revision_is_a_gap() -> None:
    forked = history(10, 21, 31)
    assert news(Mark(2, 20), held_from(forked, Mark(2, 20))) == Gap(Mark(2, 20))


def test_a_fork_whose_first_entries_were_trimmed_is_a_gap() -> None:
    forked = history(10, 21, 31)
    assert news(Mark(2, 20), forked[2:]) == Gap(Mark(2, 20))


def test_a_history_that_began_anew_and_is_shorter_is_a_gap() -> None:
    assert news(Mark(4, 40), held_from(history(50, 60), Mark(4, 40))) == Gap(Mark(4, 40))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """(the history that a reader saw, the history that the store holds now).

    They share a beginning (perhaps all, perhaps nothing), then each went its own way at its own times:
    `at` grows strictly and two histories never make two different entries at the same time.
    """
    shared = draw(st.integers(0, 6))
    seen_more, held_more = draw(st.integers(0, 6)), draw(st.integers(0, 8))
    beginning = list(range(10, 10 + 10 * shared, 10))
    if draw(st.booleans()):
        held_more = max(held_more, 0)
        tail = [1000 + 10 * n for n in range(max(seen_more, held_more))]
        seen = history(*beginning, *tail[:seen_more])
        held = history(*beginning, *tail[:held_more])
        return seen, held
    seen = history(*beginning, *(1001 + 10 * n for n in range(seen_more)))
    held = history(*beginning, *(1002 + 10 * n for n in range(held_more)))
    return seen, held


@given(worlds(), st.data())
def test_news_always_continue_what_the_reader_saw_or_are_a_gap(
    world: tuple[list[Entry], list[Entry]], data: st.DataObject
) -> None:
    """The judge knows both histories whole; `news` knows only a mark and what was not trimmed."""
    seen, held = world
    after = data.draw(st.sampled_from([START, *(entry.mark for entry in seen)]))
    trimmed = held[data.draw(st.integers(0, len(held))) :]
    limit = data.draw(st.integers(1, 10))
    found = held_from(trimmed, after)[:limit]

    answer = news(after, found)

    continues = seen[: after.rev] == held[: after.rev]
    if isinstance(answer, Gap):
        whole = continues and (after.rev == len(held) or (bool(trimmed) and trimmed[0].rev <= after.rev + 1))
        assert not (whole and found), "a gap was claimed where the chain was whole"
        assert answer.after == after
    elif answer:
        assert continues, "news of a fork"
        assert list(answer) == held[after.rev : after.rev + len(answer)], "a hole in the news"
    else:
        assert after == START or continues, "silence in place of a gap"


@given(worlds(), st.data())
def test_reading_on_from_news_to_news_never_skips_an_entry(
    world: tuple[list[Entry], list[Entry]], data: st.DataObject
) -> None:
    _, held = world
    got: list[Entry] = []
    mark = START
    while mark.rev < len(held):
        limit = data.draw(st.integers(2, 5))
        answer = news(mark, held_from(held, mark)[:limit])
        assert not isinstance(answer, Gap)
        got += answer
        mark = got[-1].mark
    assert got == held
