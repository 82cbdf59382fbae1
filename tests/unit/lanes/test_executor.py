"""Keyed work in order (G13), and nothing that is dropped silently (G14)."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import defaultdict
from math import inf
from typing import Any

import pytest

from roost.core.errors import InvalidInput
from roost.lanes.admission import Place
from roost.lanes.executor import LaneExecutor
from roost.lanes.outcomes import ACCEPTED, Failed, NotAccepted, NotDone, NotExecuted, Reason, Rejected
from roost.testing import FakeClock
from tests.unit.lanes.scripted import Boom, Item, Scripted, settle

HERE, BESIDE = (3, 4), (3, 5)
"""Two lanes of one shard: other workers, if there are at least two of them."""


class Answers:
    """What `done` was told, by number."""

    def __init__(self) -> None:
        self.of: dict[int, list[Any]] = defaultdict(list)

    def to(self, number: int) -> Any:
        return self.of[number].append


async def test_a_result_and_an_error_reach_the_caller() -> None:
    async with LaneExecutor(Scripted()) as executor:
        assert await executor.run("a", Item(1)) == "did 1"
        with pytest.raises(Boom):
            await executor.run("a", Item(2, "raise"))
        assert await executor.run("a", Item(3, "late-return")) == "did 3"


async def test_g13_items_of_a_key_run_in_order_whatever_each_of_them_does() -> None:
    scripted, answers = Scripted(), Answers()
    plans = [
        "late-return",
        "return",
        "late-raise",
        "raise",
        "cancel",
        "async-return",
        "late-cancel",
        "return",
    ]
    async with LaneExecutor(scripted, workers_per_shard=2) as executor:
        for number in range(200):
            item = Item(number, plans[number * 7 % len(plans)])
            executor.submit(f"key-{number % 5}", item, done=answers.to(number), urgent=number % 3 == 0)
        await settle()

    for key in range(5):
        assert scripted.begun[f"key-{key}"] == list(range(key, 200, 5))
    assert all(len(answers.of[number]) == 1 for number in range(200))


def test_g14_what_is_submitted_without_a_loop_is_not_queued_and_wedges_nothing() -> None:
    scripted = Scripted()
    executor = LaneExecutor(scripted)
    worker = executor.worker_of(HERE)
    assert worker is not None
    with pytest.raises(RuntimeError, match="no running event loop"):
        executor.submit("a", Item(1), place=HERE)
    with pytest.raises(RuntimeError, match="no running event loop"):
        executor.submit_to(worker, "a", Item(2), 0.0, False, inf)
    assert executor.is_plain
    assert (worker.active, worker.accepted, len(worker.queue)) == (False, 0, 0)

    async def later() -> Any:
        async with executor:
            async with asyncio.timeout(5):
                return await executor.run("a", Item(3), place=HERE)

    assert asyncio.run(later()) == "did 3"
    assert scripted.all_begun == [3]


async def test_a_handler_that_waits_holds_up_its_worker_and_nobody_else() -> None:
    scripted = Scripted()
    executor = LaneExecutor(scripted)
    executor.submit("a", Item(1, "wait"), place=HERE)
    executor.submit("b", Item(2), place=HERE)
    executor.submit("c", Item(3), place=BESIDE)
    await settle()
    assert scripted.all_begun == [1, 3]

    scripted.release(1)
    await settle()

    assert scripted.all_begun == [1, 3, 2]
    await executor.close()


async def test_no_task_is_made_for_a_handler_that_does_not_wait() -> None:
    before = asyncio.all_tasks()
    seen: set[asyncio.Task[Any]] = set()

    async def handler(key: str, item: int) -> None:
        seen.update(asyncio.all_tasks() - before)

    async with LaneExecutor(handler) as executor:
        for number in range(100):
            executor.submit(f"key-{number}", number)
        await settle()
        assert sum(worker.executed for worker in executor.stats().workers) == 100
    assert seen == set()


async def test_a_waiting_worker_is_carried_by_a_task_of_its_name() -> None:
    scripted = Scripted()
    executor = LaneExecutor(scripted, name="mail")
    executor.submit("a", Item(1, "wait"), place=(2, 7))
    await settle()
    assert "mail-shard-2-w3" in {task.get_name() for task in asyncio.all_tasks()}
    scripted.release(1)
    await executor.close()


async def test_a_handler_in_a_task_may_use_timeouts_from_its_first_step() -> None:
    async def handler(key: str, item: int) -> int:
        async with asyncio.timeout(60):
            return item + 1

    async with LaneExecutor(handler, in_task=True) as executor:
        assert [await executor.run("a", number) for number in range(3)] == [1, 2, 3]


async def test_a_turn_is_bounded_so_that_the_loop_gets_on() -> None:
    clock, heard = FakeClock(), []

    def handler(key: str, item: int) -> None:
        heard.append(f"item {item}")
        clock_moves()

    def clock_moves() -> None:
        moved.append(0.001)

    moved: list[float] = []
    clock.monotonic = lambda: 1000.0 + sum(moved)  # type: ignore[method-assign]
    executor = LaneExecutor(handler, turn_ms=5, clock=clock)
    for number in range(200):
        executor.submit("a", number, place=(number % 16, 0))
    asyncio.get_running_loop().call_soon(heard.append, "another callback")

    await executor.close()

    assert 0 < heard.index("another callback") < 40
    assert len(heard) == 201


async def test_after_turn_is_called_once_for_many_items_and_after_those_that_waited() -> None:
    scripted, turns = Scripted(), list[int]()
    executor = LaneExecutor(scripted, after_turn=lambda: turns.append(len(scripted.all_begun)))
    for number in range(50):
        executor.submit(f"key-{number}", Item(number))
    executor.submit("z", Item(50, "wait"))
    await settle()
    assert turns == [51]

    scripted.release(50)
    await settle()

    assert turns[1:], "what an item that waited did is followed by a turn's end as well"
    await executor.close()


async def test_an_after_turn_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def after_turn() -> None:
        raise Boom

    executor = LaneExecutor(Scripted(), after_turn=after_turn)
    assert await executor.run("a", Item(1)) == "did 1"
    assert await executor.run("a", Item(2)) == "did 2"
    assert "after_turn failed" in caplog.text
    await executor.close()


async def test_handlers_do_not_run_in_the_context_of_whoever_submits() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    executor = LaneExecutor(lambda key, item: who.get())
    who.set("ann")
    assert await executor.run("a", 1) == "nobody"
    await executor.close()


@pytest.mark.parametrize("workers", [1, 2, 4, 7, 64])
def test_g13_the_place_of_a_key_does_not_depend_on_the_number_of_workers(workers: int) -> None:
    places = [
        LaneExecutor(print, workers_per_shard=workers).place(key) for key in ("AAPL", "005930", "한국", "")
    ]
    assert places == [LaneExecutor(print).place(key) for key in ("AAPL", "005930", "한국", "")]


def test_keys_are_spread_over_shards_and_lanes() -> None:
    executor = LaneExecutor(print)
    places = [executor.place(f"key-{n}") for n in range(4_000)]
    assert len(set(places)) > 900
    assert all(0 <= shard < 16 and 0 <= lane < 64 for shard, lane in places)


async def test_a_rule_of_ones_own_says_where_a_key_belongs() -> None:
    places: dict[str, Place] = {"a": (0, 1), "b": (99, 0)}
    async with LaneExecutor(Scripted(), place_of=places.__getitem__) as executor:
        assert executor.submit("a", Item(1)) is ACCEPTED
        assert executor.submit("b", Item(2)) == Rejected(Reason.BAD_PLACE)
        places["a"] = (1, 1)
        executor.submit("a", Item(3))
        assert [stats.accepted for stats in executor.stats().workers if stats.accepted] == [1, 1]


@pytest.mark.parametrize("place", [(16, 0), (0, 64), (-1, 0), (0, -1)])
async def test_g14_a_place_that_does_not_exist_is_refused(place: Place) -> None:
    executor = LaneExecutor(Scripted())
    assert executor.submit("a", Item(1), place=place) == Rejected(Reason.BAD_PLACE)
    assert executor.stats().rejected == 1


async def test_g14_a_full_queue_says_so_and_cancels_have_the_last_tenth() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted, queue_limit=20)
    executor.submit("a", Item(0, "wait"), place=HERE)
    await settle()
    normal = [executor.submit("a", Item(n), place=HERE, done=answers.to(n)) for n in range(1, 21)]
    urgent = [
        executor.submit("a", Item(n), place=HERE, done=answers.to(n), urgent=True) for n in range(21, 26)
    ]

    assert normal[:18] == [ACCEPTED] * 18
    assert [one.reason for one in normal[18:] if isinstance(one, Rejected)] == [Reason.QUEUE_FULL] * 2
    assert urgent[:2] == [ACCEPTED] * 2
    refused = urgent[2]
    assert isinstance(refused, Rejected)
    assert (refused.reason, refused.depth) == (Reason.QUEUE_FULL, 20)
    assert refused.retry_after_ms > 0
    stats = executor.stats()
    assert (stats.accepted, stats.rejected, stats.depth) == (21, 5, 20)

    scripted.release(0)
    await settle()

    assert scripted.all_begun == [*range(19), 21, 22], "urgent items have room, not precedence"
    assert executor.submit("a", Item(30), place=HERE) is ACCEPTED
    await executor.close()


async def test_g14_retry_after_comes_from_the_rate_at_which_the_worker_got_on() -> None:
    clock, scripted = FakeClock(), Scripted()
    executor = LaneExecutor(scripted, queue_limit=10, cancel_share=0, clock=clock)
    for number in range(6):
        executor.submit("a", Item(number, "wait"), place=HERE)
    for number in range(5):
        await settle()
        await clock.advance(0.1)
        scripted.release(number)
    await settle()
    for number in range(6, 16):
        executor.submit("a", Item(number), place=HERE)

    refused = executor.submit("a", Item(99), place=HERE)

    assert isinstance(refused, Rejected)
    assert 300 <= refused.retry_after_ms <= 600, "half of ten, at ten or so a second"
    scripted.release(5)
    await executor.close()


async def test_g14_nothing_but_cancels_is_taken_while_the_head_of_the_queue_waits_too_long() -> None:
    clock, scripted = FakeClock(), Scripted()
    executor = LaneExecutor(scripted, max_wait_ms=250, clock=clock)
    executor.submit("a", Item(1, "wait"), place=HERE)
    await settle()
    executor.submit("a", Item(2), place=HERE)
    await clock.advance(0.25)
    assert executor.submit("a", Item(3), place=HERE) is ACCEPTED

    await clock.advance(0.01)

    refused = executor.submit("a", Item(4), place=HERE)
    assert isinstance(refused, Rejected)
    assert (refused.reason, refused.wait_ms) == (Reason.TOO_SLOW, 260)
    assert executor.submit("a", Item(5), place=HERE, urgent=True) is ACCEPTED
    assert executor.submit("a", Item(6), place=BESIDE) is ACCEPTED
    scripted.release(1)
    await executor.close()


async def test_an_item_whose_deadline_passed_in_the_queue_is_never_executed() -> None:
    clock, scripted, answers = FakeClock(), Scripted(), Answers()
    executor = LaneExecutor(scripted, clock=clock)
    now = clock.monotonic()
    executor.submit("a", Item(0), place=HERE, done=answers.to(0), deadline=now)
    executor.submit("a", Item(1, "wait"), place=HERE)
    executor.submit("a", Item(2), place=HERE, done=answers.to(2), deadline=now + 1)
    executor.submit("a", Item(3), place=HERE, done=answers.to(3), deadline=now + 3)
    await settle()
    await clock.advance(2)

    scripted.release(1)
    await settle()

    assert scripted.all_begun == [1, 3]
    assert [answers.of[n] for n in (0, 2, 3)] == [[NotDone.EXPIRED], [NotDone.EXPIRED], ["did 3"]]
    await executor.close()


async def test_a_handler_that_waits_too_long_is_cancelled_and_its_worker_goes_on() -> None:
    clock, scripted, answers = FakeClock(), Scripted(), Answers()
    executor = LaneExecutor(scripted, deadline_ms=1_000, clock=clock)
    for number, plan in enumerate(["wait", "wait", "return"]):
        executor.submit("a", Item(number, plan), place=HERE, done=answers.to(number))
    await settle()
    await clock.advance(0.9)
    assert not answers.of[0]

    await clock.advance(3)
    await settle()

    assert dict(answers.of) == {0: [NotDone.LATE], 1: [NotDone.LATE], 2: ["did 2"]}
    assert executor.stats().stuck == 0
    await executor.close()


async def test_a_handler_that_ignores_its_cancellation_is_seen_to_be_stuck_and_others_go_on() -> None:
    clock, scripted, answers = FakeClock(), Scripted(), Answers()
    executor = LaneExecutor(scripted, deadline_ms=1_000, clock=clock)
    executor.submit("a", Item(1, "stubborn"), place=HERE, done=answers.to(1))
    executor.submit("a", Item(2), place=HERE, done=answers.to(2))
    await settle()
    await clock.advance(2)
    executor.submit("b", Item(3), place=BESIDE)
    await settle()

    assert answers.of[1] == [NotDone.LATE]
    assert [worker.name for worker in executor.stats().workers if worker.stuck] == ["order-shard-3-w0"]
    assert scripted.all_begun == [1, 3], "nothing of its worker overtakes it"

    scripted.release(1)
    await settle()

    assert (answers.of[1], answers.of[2], executor.stats().stuck) == ([NotDone.LATE], ["did 2"], 0)
    await executor.close()


async def test_failures_in_a_row_halt_the_key_and_not_its_lane() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted, failures_to_halt=2)
    plans = ["a raise", "a return", "a raise", "b raise", "a late-raise", "a return", "b return", "a return"]
    for number, (key, plan) in enumerate(each.split() for each in plans):
        executor.submit(key, Item(number, plan), place=HERE, done=answers.to(number))
    await settle()

    assert scripted.begun == {"a": [0, 1, 2, 4], "b": [3, 6]}
    assert (answers.of[5], answers.of[7]) == ([NotDone.HALTED], [NotDone.HALTED])
    assert dict(executor.halted) == {"a": "2 failures in a row, the last: Boom"}
    refused = executor.submit("a", Item(8), place=HERE)
    assert isinstance(refused, Rejected)
    assert (refused.reason, refused.retry_after_ms) == (Reason.KEY_HALTED, 0)

    assert executor.resume("a")
    assert not executor.resume("a")
    assert await executor.run("a", Item(9), place=HERE) == "did 9"
    await executor.close()


async def test_an_operator_halts_a_key_and_what_of_it_waits_is_answered() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted)
    executor.submit("b", Item(0, "wait"), place=HERE)
    for number, key in enumerate("abab", start=1):
        executor.submit(key, Item(number), place=HERE, done=answers.to(number))
    await settle()

    executor.halt("a", "under investigation")
    scripted.release(0)
    await settle()

    assert scripted.begun == {"b": [0, 2, 4]}
    assert (answers.of[1], answers.of[3]) == ([NotDone.HALTED], [NotDone.HALTED])
    assert executor.halted["a"] == "under investigation"
    await executor.close()


async def test_a_failure_is_logged_without_what_the_item_holds(caplog: pytest.LogCaptureFixture) -> None:
    def handler(key: str, item: str) -> None:
        raise ValueError(f"cannot do {item}")

    executor = LaneExecutor(handler)
    with caplog.at_level(logging.DEBUG):
        for _ in range(100):
            executor.submit("a", "secret-7")
        await settle()
    assert [record.getMessage() for record in caplog.records] == ["handler failed"]
    assert "secret-7" not in repr(vars(caplog.records[0]))
    assert vars(caplog.records[0])["error"] == "ValueError"
    await executor.close()


async def test_a_done_that_raises_hurts_nobody() -> None:
    def done(outcome: object) -> None:
        raise Boom

    executor = LaneExecutor(Scripted())
    executor.submit("a", Item(1), done=done)
    executor.submit("a", Item(2, "raise"), done=done)
    assert await executor.run("a", Item(3)) == "did 3"
    await executor.close()


async def test_a_handler_may_submit_more_work_of_its_own_key() -> None:
    seen: list[int] = []

    def handler(key: str, item: int) -> None:
        seen.append(item)
        if item < 5:
            executor.submit(key, item + 1)

    executor = LaneExecutor(handler)
    executor.submit("a", 0)
    await settle()
    assert seen == [0, 1, 2, 3, 4, 5]
    await executor.close()


async def test_close_finishes_what_was_accepted_and_takes_nothing_more() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted)
    for number, plan in enumerate(["wait", "late-return", "return"]):
        executor.submit("a", Item(number, plan), done=answers.to(number))
    closing = asyncio.create_task(executor.close())
    await settle()
    refused = executor.submit("a", Item(9))
    assert isinstance(refused, Rejected)
    assert refused.reason is Reason.CLOSING
    assert not closing.done()

    scripted.release(0)
    await closing

    assert dict(answers.of) == {n: [f"did {n}"] for n in range(3)}


async def test_g14_close_answers_for_what_it_drops() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted)
    for number, plan in enumerate(["wait", "return", "return"]):
        executor.submit("a", Item(number, plan), done=answers.to(number))
    await settle()

    await executor.close(grace_s=0)

    assert dict(answers.of) == {n: [NotDone.DROPPED] for n in range(3)}
    assert scripted.running == {}
    assert executor.stats().depth == 0


async def test_g14_close_answers_also_for_a_handler_whose_task_has_not_begun() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted)
    executor.submit("a", Item(1, "wait"), done=answers.to(1))
    closing = asyncio.create_task(executor.close(grace_s=0))
    await closing
    assert answers.of[1] == [NotDone.DROPPED]
    assert scripted.running == {}


async def test_the_end_of_the_loop_cancels_handlers_and_answers_for_them() -> None:
    scripted, answers = Scripted(), Answers()
    executor = LaneExecutor(scripted)
    executor.submit("a", Item(1, "wait"), place=HERE, done=answers.to(1))
    executor.submit("a", Item(2), place=HERE, done=answers.to(2))
    await settle()
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "order-shard-3-w0"]

    task.cancel()
    await settle()

    assert answers.of == {1: [NotDone.DROPPED], 2: ["did 2"]}
    await executor.close()


async def test_run_raises_for_what_was_not_accepted_or_not_executed() -> None:
    clock = FakeClock()
    executor = LaneExecutor(Scripted(), clock=clock)
    with pytest.raises(NotExecuted) as expired:
        await executor.run("a", Item(1), deadline=clock.monotonic())
    assert expired.value.outcome is NotDone.EXPIRED
    await executor.close()
    with pytest.raises(NotAccepted) as refused:
        await executor.run("a", Item(2))
    assert refused.value.rejected.reason is Reason.CLOSING


async def test_a_caller_that_gives_up_does_not_undo_its_item() -> None:
    scripted = Scripted()
    executor = LaneExecutor(scripted)
    caller = asyncio.create_task(executor.run("a", Item(1, "wait")))
    await settle()
    caller.cancel()
    await settle()
    scripted.release(1)
    await executor.close()
    assert sum(worker.executed for worker in executor.stats().workers) == 1


async def test_stats_are_told_for_each_worker_of_each_shard() -> None:
    clock, scripted = FakeClock(), Scripted()
    executor = LaneExecutor(scripted, workers_per_shard=2, clock=clock)
    executor.submit("a", Item(1, "raise"), place=(3, 1))
    executor.submit("a", Item(2, "wait"), place=(3, 1))
    executor.submit("a", Item(3), place=(3, 1))
    await settle()
    await clock.advance(1.5)

    first, second = executor.stats().of_shard(3)

    assert (first.name, first.accepted) == ("order-shard-3-w0", 0)
    assert (second.name, second.accepted, second.failed, second.depth) == ("order-shard-3-w1", 3, 1, 1)
    assert (second.running, second.stuck, second.oldest_wait_ms) == (True, False, 1_500)
    assert executor.loads(3) == [(0, 0, 0), (1, 1_500, 0)]
    scripted.release(2)
    await executor.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"shards": 0},
        {"lanes": 0},
        {"workers_per_shard": 0},
        {"workers_per_shard": 65},
        {"queue_limit": 0},
        {"cancel_share": 1.0},
        {"max_wait_ms": -1},
        {"failures_to_halt": -1},
    ],
)
def test_limits_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        LaneExecutor(print, **wrong)


async def test_a_failure_is_a_value_for_done() -> None:
    answers = Answers()
    async with LaneExecutor(Scripted()) as executor:
        executor.submit("a", Item(1, "raise"), done=answers.to(1))
    (failed,) = answers.of[1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, Boom)
