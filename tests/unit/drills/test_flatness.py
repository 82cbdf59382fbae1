"""What counts as flat: a warm-up and a bad moment do not, a slow leak does."""

from __future__ import annotations

import pytest

from roost.drills.flatness import FEWEST, FILES, MEMORY_MB, Course, course_of, no_larger

EVENINGS = 30


def test_a_level_course_is_flat() -> None:
    assert course_of([70.0] * EVENINGS, MEMORY_MB) == Course(70.0, 70.0, True)


def test_a_warm_up_does_not_count() -> None:
    assert course_of([40.0, 55.0, 65.0, 69.0, 70.0, 70.0] + [70.0] * EVENINGS, MEMORY_MB).flat is True


def test_a_single_sample_at_a_bad_moment_does_not_count() -> None:
    assert course_of([70.0] * EVENINGS + [140.0], MEMORY_MB).flat is True
    assert course_of([20.0] * EVENINGS + [900.0], FILES).flat is True


@pytest.mark.parametrize("evenings", range(FEWEST, EVENINGS))
@pytest.mark.parametrize("at", [1, -1])
def test_nor_does_it_where_there_are_few_of_them(evenings: int, at: int) -> None:
    """Such as 16 connections that a pool had not closed yet."""
    values = [31.0] * evenings
    values[at] = 47.0
    assert course_of(values, FILES).flat is True


@pytest.mark.parametrize("per_evening", [0.5, 1.0, 5.0])
def test_a_slow_leak_of_memory_is_found(per_evening: float) -> None:
    assert course_of([70.0 + per_evening * n for n in range(EVENINGS)], MEMORY_MB).flat is False


def test_one_file_left_open_each_evening_is_found() -> None:
    assert course_of([20.0 + n for n in range(EVENINGS)], FILES).flat is False


def test_of_few_samples_nothing_is_said() -> None:
    assert course_of([], MEMORY_MB).flat is None
    assert course_of([70.0] * (FEWEST - 1), MEMORY_MB).flat is None
    assert course_of([70.0] * FEWEST, MEMORY_MB).flat is True


def test_what_was_as_small_before_is_quiet() -> None:
    assert no_larger({"a": 31, "b": 12}, {"a": 31, "b": 14, "gone": 3})
    assert not no_larger({"a": 32, "b": 12}, {"a": 31, "b": 14})
    assert not no_larger({"a": 31, "new": 12}, {"a": 31})
