from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.discovery.judgement import FLAP_HALF_LIFE_S, Judgement


def turns(judgement: Judgement, outcomes: str, start: float = 0.0, step: float = 1.0) -> list[str | None]:
    """One letter per outcome: + or -."""
    return [judgement.note(letter == "+", start + at * step) for at, letter in enumerate(outcomes)]


def test_three_failures_in_a_row_make_it_unhealthy_once() -> None:
    assert turns(Judgement(), "--+---" + "----") == [None] * 5 + ["fell"] + [None] * 4


def test_two_successes_in_a_row_make_it_healthy_again() -> None:
    judgement = Judgement()
    turns(judgement, "---")
    assert turns(judgement, "+-++") == [None, None, None, "rose"]


def test_who_falls_often_must_show_more_before_it_is_believed() -> None:
    judgement = Judgement()
    for _ in range(3):
        turns(judgement, "---")
        while not judgement.healthy:
            judgement.note(True, 0.0)
    turns(judgement, "---")
    needed = next(n for n in range(1, 100) if judgement.note(True, 0.0) == "rose")
    assert needed > 2
    calm = Judgement()
    turns(calm, "---")
    assert turns(calm, "++", start=20 * FLAP_HALF_LIFE_S)[-1] == "rose"


def test_it_is_asked_sooner_only_while_the_next_outcome_may_matter() -> None:
    judgement = Judgement()
    assert not judgement.in_transition
    judgement.note(False, 0.0)
    assert judgement.in_transition
    judgement.note(True, 1.0)
    assert not judgement.in_transition


@given(st.text("+-", max_size=60))
def test_turns_alternate_whatever_happens(outcomes: str) -> None:
    told = [turn for turn in turns(Judgement(), outcomes) if turn]
    assert told == ["fell", "rose"] * (len(told) // 2) + ["fell"] * (len(told) % 2)
