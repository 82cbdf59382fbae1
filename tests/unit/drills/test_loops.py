"""Failed loops of a soak: what the metrics count is held against what the logs tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.drills.loops import LoopBook, LoopView

PAGE = """# TYPE roost_loop_failures_total counter
roost_loop_failures_total{loop="sweep"} %d
roost_loop_failures_total{loop="health vote"} 0
"""
FAILED = '{"level":"info","message":"loop failed","loop":"%s","reason":"no answer"}\n'


def test_failures_are_summed_over_the_lives_of_a_process() -> None:
    book = LoopBook()
    for life, count in ((1, 2), (1, 3), (2, 1)):
        book.read("gateway-2", life, PAGE % count)
    assert book.views() == [LoopView("gateway-2", "sweep", 4)]
    assert book.total == 4


def test_a_failure_that_only_the_log_knows_is_named(tmp_path: Path) -> None:
    book, log = LoopBook(), tmp_path / "gateway-1.log"
    log.write_text(
        FAILED % "sweep" + "roost gateway is up\n" + FAILED % "health vote" + '{"message":"loop failed'
    )
    book.read("gateway-1", 1, PAGE % 1)
    assert book.uncounted({"gateway-1": log}) == ["gateway-1 health vote"]


def test_a_loop_that_fails_on_is_seen() -> None:
    book = LoopBook()
    book.read("gateway-1", 1, PAGE % 4)
    before = dict(book.now)
    book.read("gateway-1", 1, PAGE % 4)
    assert book.rising_since(before) == []
    book.read("gateway-1", 1, PAGE % 5)
    assert book.rising_since(before) == [("gateway-1", 1, "sweep")]


def test_a_page_without_loops_is_no_proof_of_health() -> None:
    with pytest.raises(ValueError, match="counts no loop"):
        LoopBook().read("gateway-1", 1, "")
