"""The section of the waiting rooms checks itself, and is printed so that it can be read."""

from __future__ import annotations

import pytest

from roost.settings import Settings, example, validate
from roost.waitingroom.rules import Policy
from roost.waitingroom.settings import QueueSettings


def test_the_defaults_are_those_of_a_policy() -> None:
    assert QueueSettings().faults() == []
    assert QueueSettings().policy() == Policy()


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (QueueSettings(tick_ms=3), "tick_ms is 3, must be at least 50"),
        (QueueSettings(tick_ms=5000), "tick_ms is 5000, must be at most 2000"),
        (QueueSettings(rebuild_seconds=1200), "rebuild_seconds is 1200, must be at most 600"),
        (QueueSettings(batch=0), "batch is 0, must be at least 1"),
        (QueueSettings(batch=101), "batch is 101, must be at most 100"),
        (QueueSettings(grace_seconds=-1), "grace_seconds is -1, must be at least 0"),
        (QueueSettings(worlds="a,a"), "worlds: a world is named twice"),
        (QueueSettings(classes="vip=1"), "classes: the class base needs a weight: its share is guaranteed"),
    ],
)
def test_a_fault_is_named_by_the_section_and_placed_by_who_collects_it(
    section: QueueSettings, fault: str
) -> None:
    assert section.faults() == [fault]
    assert validate(Settings(queue=section)) == [f"queue.{fault}"]


def test_the_example_explains_each_setting_within_a_hundred_columns() -> None:
    lines = example().splitlines()
    assert max(map(len, lines)) <= 100
    at = lines.index("# tick_ms = 1000")
    assert lines[at - 1].startswith("# ")
    assert any(line.startswith("# Time between two ticks") for line in lines)
