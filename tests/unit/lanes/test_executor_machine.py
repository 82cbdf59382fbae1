"""Any order of arrivals, cancels, failures, waits, deadlines, halts and time, on any number of workers.

What is held: items of a key begin in the order in which they were accepted (G13), one at a time on a worker;
accepted + rejected = sent and every accepted item is answered exactly once (G14); the bounds hold.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from math import inf
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from roost.lanes.admission import Place
from roost.lanes.executor import LaneExecutor
from roost.lanes.outcomes import ACCEPTED, Failed, NotDone, Reason, Rejected
from roost.testing import FakeClock
from tests.unit.lanes.scripted import Item, Scripted, settle

LANES, LIMIT, NORMAL, DEADLINE_S, FAILURES = 6, 6, 4, 1.0, 2
KEYS = {"a": 0, "b": 0, "c": 1, "d": 2, "e": 3, "f": 5}
"""Key → its lane in shard 0; a and b share one."""
PLANS = [
    "return",
    "raise",
    "cancel",
    "async-raise",
    "late-return",
    "late-raise",
    "late-cancel",
    "wait",
    "stubborn",
]


class ExecutorMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.scripted = Scripted()
        self.accepted: dict[str, list[int]] = defaultdict(list)
        self.answers: dict[int, list[Any]] = defaultdict(list)
        self.deadlines: dict[int, float] = {}
        self.begun_at: dict[int, float] = {}
        self.sent = self.rejected = 0
        self.workers = 1

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.loop.run_until_complete(work)

    @initialize(workers=st.integers(1, LANES))
    def begin(self, workers: int) -> None:
        self.workers = workers
        self.executor = LaneExecutor(
            self.handle,
            shards=1,
            lanes=LANES,
            workers_per_shard=workers,
            queue_limit=LIMIT,
            cancel_share=1 - NORMAL / LIMIT,
            deadline_ms=DEADLINE_S * 1000,
            failures_to_halt=FAILURES,
            place_of=lambda key: (0, KEYS[key]),
            clock=self.clock,
        )

    def handle(self, key: str, item: Item) -> Any:
        worker = KEYS[key] % self.workers
        beside = {other for other in self.scripted.running.values() if KEYS[other] % self.workers == worker}
        assert not beside, f"{item} began on worker {worker} while another ran there"
        self.begun_at[item.number] = self.clock.monotonic()
        return self.scripted(key, item)

    @rule(
        key=st.sampled_from(sorted(KEYS)),
        plan=st.sampled_from(PLANS),
        urgent=st.booleans(),
        within=st.sampled_from([inf, inf, inf, 0.0, 0.5, 2.0]),
        by_place=st.booleans(),
    )
    def submit(self, key: str, plan: str, urgent: bool, within: float, by_place: bool) -> None:
        place = (0, KEYS[key]) if by_place else None

        async def arrive() -> None:
            self.arrive(key, plan, urgent, place, self.clock.monotonic() + within)

        self.run(arrive())

    @rule(key=st.sampled_from(sorted(KEYS)), count=st.integers(2, LIMIT + 2), urgent=st.booleans())
    def burst(self, key: str, count: int, urgent: bool) -> None:
        """Many in one turn of the loop: the queue fills."""

        async def arrive() -> None:
            for _ in range(count):
                self.arrive(key, "return", urgent, None, inf)

        self.run(arrive())

    def arrive(self, key: str, plan: str, urgent: bool, place: Place | None, deadline: float) -> None:
        number, self.sent = self.sent, self.sent + 1
        depth, halted = self.depth(key), key in self.executor.halted
        self.deadlines[number] = deadline
        done = self.answers[number].append
        answer = self.executor.submit(
            key, Item(number, plan), place=place, done=done, urgent=urgent, deadline=deadline
        )
        self.check_answer(key, number, answer, depth, urgent, halted)

    def check_answer(
        self, key: str, number: int, answer: Any, depth: int, urgent: bool, halted: bool
    ) -> None:
        if answer is ACCEPTED:
            assert not halted
            assert depth < (LIMIT if urgent else NORMAL)
            self.accepted[key].append(number)
            return
        assert isinstance(answer, Rejected)
        self.rejected += 1
        assert not self.answers[number], "a refused item has no other end"
        if halted:
            assert answer.reason is Reason.KEY_HALTED
        else:
            assert (answer.reason, answer.depth) == (Reason.QUEUE_FULL, depth)
            assert depth >= (LIMIT if urgent else NORMAL), "there was room"

    @rule()
    def let_it_work(self) -> None:
        self.run(settle())

    @precondition(lambda self: self.scripted.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.scripted.release(data.draw(st.sampled_from(sorted(self.scripted.running))))
        self.run(settle())

    @rule(seconds=st.sampled_from([0.1, 0.6, 1.5]))
    def time_passes(self, seconds: float) -> None:
        self.run(self.clock.advance(seconds))

    @rule(key=st.sampled_from(sorted(KEYS)))
    def halt(self, key: str) -> None:
        self.executor.halt(key, "by hand")

    @rule(key=st.sampled_from(sorted(KEYS)))
    def resume(self, key: str) -> None:
        halted = key in self.executor.halted
        assert self.executor.resume(key) == halted
        assert key not in self.executor.halted

    def depth(self, key: str) -> int:
        return self.executor.stats().workers[KEYS[key] % self.workers].depth

    @invariant()
    def items_of_a_key_begin_in_the_order_of_acceptance(self) -> None:
        for key, begun in self.scripted.begun.items():
            never = {n for n in self.accepted[key] if n not in self.begun_at}
            due = [n for n in self.accepted[key] if n not in never]
            assert begun == due

    @invariant()
    def nothing_overtakes_what_still_waits(self) -> None:
        for key, accepted in self.accepted.items():
            waiting = [n for n in accepted if n not in self.begun_at and not self.answers[n]]
            if waiting:
                assert not [n for n in accepted if n > waiting[0] and n in self.begun_at], key

    @invariant()
    def nothing_is_answered_twice_or_wrongly(self) -> None:
        for number, answers in self.answers.items():
            assert len(answers) <= 1, f"{number}: {answers}"
            for answer in answers:
                if answer in (NotDone.EXPIRED, NotDone.HALTED):
                    assert number not in self.begun_at
                elif isinstance(answer, (str, Failed)):
                    assert number in self.begun_at

    @invariant()
    def nothing_is_executed_after_its_deadline(self) -> None:
        for number, at in self.begun_at.items():
            assert at < self.deadlines[number]

    @invariant()
    def what_was_sent_is_accepted_or_rejected_and_bounded(self) -> None:
        if not hasattr(self, "executor"):
            return
        stats = self.executor.stats()
        assert stats.accepted == sum(map(len, self.accepted.values()))
        assert (stats.accepted + stats.rejected, stats.rejected) == (self.sent, self.rejected)
        for worker in stats.workers:
            ended = worker.executed + worker.failed + worker.expired + worker.halted + worker.late
            assert worker.accepted == ended + worker.dropped + worker.depth + worker.running
            assert worker.depth <= LIMIT

    def teardown(self) -> None:
        if hasattr(self, "executor"):
            self.run(self.ending())
            for key, accepted in self.accepted.items():
                assert all(len(self.answers[number]) == 1 for number in accepted), key
            self.items_of_a_key_begin_in_the_order_of_acceptance()
            assert self.executor.stats().depth == 0
        self.loop.close()

    async def ending(self) -> None:
        """Half of the runs end in peace, the others at once."""
        closing = asyncio.ensure_future(self.executor.close(inf if self.sent % 2 else 0))
        while not closing.done():
            for number in list(self.scripted.running):
                self.scripted.release(number)
            await asyncio.sleep(0)
        await closing
        await settle()


TestExecutorMachine = ExecutorMachine.TestCase
TestExecutorMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
