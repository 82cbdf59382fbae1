"""R9: nothing is executed twice, and order is kept, whatever the way does to messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roost.servers.entity.ordering import MOST, Ahead, Duplicate, Execute, fault_of, judge


def test_the_next_one_is_executed() -> None:
    assert judge(7, 8, 5) == Execute(0)


def test_one_that_was_executed_is_a_duplicate() -> None:
    assert judge(7, 7, 5) == Duplicate(forgotten=False)
    assert judge(7, 4, 5) == Duplicate(forgotten=True)


def test_one_whose_predecessor_is_missing_must_wait() -> None:
    assert judge(7, 9, 5) == Ahead(8)


def test_what_its_sender_has_answers_of_is_not_waited_for() -> None:
    assert judge(7, 10, 10) == Execute(2)
    assert judge(7, 11, 10) == Ahead(10)


@given(last=st.integers(0, 50), sequence=st.integers(1, 60), oldest=st.integers(1, 60))
def test_the_three_verdicts_share_the_line_of_sequences(last: int, sequence: int, oldest: int) -> None:
    verdict = judge(last, sequence, oldest)
    assert isinstance(verdict, Duplicate) == (sequence <= max(last, oldest - 1))
    if isinstance(verdict, Execute):
        assert sequence > last


def test_numbers_that_cannot_be_right_are_named() -> None:
    assert fault_of(None, None)
    assert fault_of(0, None)
    assert fault_of(MOST + 1, None)
    assert fault_of(5, 6)
    assert fault_of(5, 0)
    assert not fault_of(5, 5)
    assert not fault_of(5, None)


class Way(RuleBasedStateMachine):
    """A sender that sends again what it has no answer of, and a way that loses, doubles and reorders."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.answered: set[int] = set()
        self.on_the_way: list[tuple[int, int]] = []
        self.last = 0
        self.executed: list[int] = []

    @property
    def oldest(self) -> int:
        return next(n for n in range(1, self.sent + 2) if n not in self.answered)

    @rule()
    def send(self) -> None:
        self.sent += 1
        self.on_the_way.append((self.sent, self.oldest))

    @rule()
    def send_again(self) -> None:
        self.on_the_way += [
            (n, self.oldest) for n in range(self.oldest, self.sent + 1) if n not in self.answered
        ]

    @rule(data=st.data(), keep=st.booleans(), reply_is_lost=st.booleans())
    def arrive(self, data: st.DataObject, keep: bool, reply_is_lost: bool) -> None:
        if not self.on_the_way:
            return
        index = data.draw(st.integers(0, len(self.on_the_way) - 1))
        sequence, oldest = self.on_the_way[index] if keep else self.on_the_way.pop(index)
        verdict = judge(self.last, sequence, oldest)
        if isinstance(verdict, Execute):
            self.executed.append(sequence)
            self.last = sequence
        if isinstance(verdict, Execute | Duplicate) and not reply_is_lost:
            self.answered.add(sequence)

    @rule(data=st.data())
    def be_lost(self, data: st.DataObject) -> None:
        if self.on_the_way:
            self.on_the_way.pop(data.draw(st.integers(0, len(self.on_the_way) - 1)))

    @invariant()
    def nothing_is_executed_twice_left_out_or_out_of_order(self) -> None:
        assert self.executed == list(range(1, len(self.executed) + 1))

    @invariant()
    def what_has_an_answer_was_executed(self) -> None:
        assert self.answered <= set(self.executed)


TestWay = Way.TestCase
