"""When a symbol is halted because the machine fails at its commands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from roost.lanes.shard import Shard
from roost.servers.orders.host import Failing

SHARD = cast(Shard, SimpleNamespace(number=3))


def judged(most: int, *failed: bool) -> list[str]:
    """What was halted after these commands; nobody hears of it."""
    halts: list[str] = []
    failing = Failing(most, lambda symbol, why: halts.append(symbol))
    for each in failed:
        failing.judge(SHARD, "ACME", each)
    return halts


def test_a_symbol_is_halted_after_so_many_failures_in_a_row() -> None:
    assert judged(3, True, True, False, True, True) == []
    assert judged(3, True, True, True) == ["ACME"]
    assert judged(0, *[True] * 10) == []


def test_a_halt_that_was_refused_is_tried_again_after_as_many_failures() -> None:
    assert judged(3, *[True] * 5) == ["ACME"]
    assert judged(3, *[True] * 9) == ["ACME"] * 3
