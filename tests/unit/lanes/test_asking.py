"""What the refusals of order servers become."""

from __future__ import annotations

import pytest

from roost.api.orders import LogCut, ShardUnowned, SymbolMoving, UnknownOrder
from roost.core.errors import Internal, InvalidInput, OutcomeUnknown, RoostError, Unavailable
from roost.lanes.asking import refusal_of
from roost.lanes.work import refused
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refused("NOT_OWNER"), ShardUnowned),
        (refused("MOVING"), SymbolMoving),
        (refused("UNKNOWN_ORDER"), UnknownOrder),
        (refused("QUEUE_FULL"), Unavailable),
        (refused("CLOSING"), Unavailable),
        (refusal(Code.REFUSED, "cut", reason="LOG_CUT"), LogCut),
        (refusal(Code.BAD_REQUEST, "what?"), InvalidInput),
        (refusal(Code.DEADLINE, "late"), OutcomeUnknown),
        (refusal(Code.FAILED, "oh"), Internal),
        (Answer(b"\xff", Code.BUSY), Unavailable),
    ],
)
def test_each_is_an_error_of_its_family(answer: Answer, error: type[RoostError]) -> None:
    found = refusal_of(answer)
    assert type(found) is error
    assert found.message


def test_when_to_come_again_is_passed_on() -> None:
    assert refusal_of(refused("QUEUE_FULL", retry_after_ms=1500)).retry_after_s == 1.5
