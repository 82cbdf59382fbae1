"""Handlers that block, in a thread for each worker: the same order, bounds and answers."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from roost.lanes.outcomes import ACCEPTED, Failed, NotAccepted, NotDone, Reason, Rejected
from roost.lanes.threads import ThreadLaneExecutor
from roost.testing import wait_until

HERE, BESIDE = (3, 4), (3, 5)


class Blocking:
    """Items: `wait` until `release`, `raise`, or any other text, which is the result."""

    def __init__(self) -> None:
        self.begun: dict[str, list[str]] = defaultdict(list)
        self.threads: set[str] = set()
        self.gate = threading.Event()

    def __call__(self, key: str, item: str) -> str:
        self.begun[key].append(item)
        self.threads.add(threading.current_thread().name)
        if item == "wait":
            assert self.gate.wait(20)
        if item == "raise":
            raise ValueError(item)
        return item


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.gate.set()


def test_g13_items_of_a_key_run_in_order_while_many_threads_submit(blocking: Blocking) -> None:
    answers: dict[str, list[Any]] = defaultdict(list)

    def submit_all(key: str) -> None:
        for number in range(200):
            item = "raise" if number % 7 == 0 else f"{number}"
            assert executor.submit(key, item, done=answers[key].append) is ACCEPTED

    with ThreadLaneExecutor(blocking, workers_per_shard=2) as executor:
        submitters = [threading.Thread(target=submit_all, args=(f"key-{n}",)) for n in range(8)]
        for each in submitters:
            each.start()
        for each in submitters:
            each.join()

    for key in [f"key-{n}" for n in range(8)]:
        sent = ["raise" if number % 7 == 0 else f"{number}" for number in range(200)]
        assert blocking.begun[key] == sent
        assert ["raise" if isinstance(answer, Failed) else answer for answer in answers[key]] == sent


def test_a_thread_is_named_as_its_worker_and_begins_when_it_is_needed(blocking: Blocking) -> None:
    with ThreadLaneExecutor(blocking, name="disk") as executor:
        assert executor.call("a", "one", place=(2, 7)) == "one"
        assert blocking.threads == {"disk-shard-2-w3"}
        assert {t.name for t in threading.enumerate() if t.name.startswith("disk-")} == {"disk-shard-2-w3"}
    assert not [t for t in threading.enumerate() if t.name.startswith("disk-")], "close joins"


def test_a_blocked_worker_holds_up_nobody_else(blocking: Blocking) -> None:
    with ThreadLaneExecutor(blocking) as executor:
        executor.submit("a", "wait", place=HERE)
        executor.submit("a", "after", place=HERE)
        assert executor.call("b", "beside", place=BESIDE) == "beside"
        assert blocking.begun["a"] in ([], ["wait"])
        blocking.gate.set()
    assert blocking.begun["a"] == ["wait", "after"]


def test_g14_a_full_queue_says_so_and_cancels_have_room(blocking: Blocking) -> None:
    with ThreadLaneExecutor(blocking, queue_limit=10) as executor:
        executor.submit("a", "wait", place=HERE)
        wait_until(lambda: bool(blocking.begun["a"]), "the first to begin")
        taken = [executor.submit("a", f"{n}", place=HERE) for n in range(10)]
        assert taken[:9] == [ACCEPTED] * 9
        assert isinstance(taken[9], Rejected)
        assert (taken[9].reason, taken[9].depth) == (Reason.QUEUE_FULL, 9)
        assert executor.submit("a", "urgent", place=HERE, urgent=True) is ACCEPTED
        assert isinstance(executor.submit("a", "urgent", place=HERE, urgent=True), Rejected)
        assert isinstance(executor.submit("a", "x", place=(99, 0)), Rejected)
        blocking.gate.set()
    stats = executor.stats()
    assert (stats.accepted, stats.rejected, stats.depth) == (11, 3, 0)


def test_an_expired_item_is_not_executed(blocking: Blocking) -> None:
    answers: list[Any] = []
    with ThreadLaneExecutor(blocking, time=lambda: 1000.0) as executor:
        executor.submit("a", "late", done=answers.append, deadline=1000.0)
        assert executor.call("a", "next") == "next"
    assert answers == [NotDone.EXPIRED]
    assert blocking.begun["a"] == ["next"]


def test_failures_in_a_row_halt_the_key_alone(blocking: Blocking) -> None:
    answers: list[Any] = []
    with ThreadLaneExecutor(blocking, failures_to_halt=2) as executor:
        executor.submit("b", "wait", place=HERE)
        for item in ("raise", "raise", "never"):
            executor.submit("a", item, place=HERE, done=answers.append)
        executor.submit("b", "goes on", place=HERE)
        blocking.gate.set()
        wait_until(lambda: len(answers) == 3, "all three to end")
        refused = executor.submit("a", "refused", place=HERE)
        assert isinstance(refused, Rejected)
        assert refused.reason is Reason.KEY_HALTED
        assert executor.resume("a")
        assert executor.call("a", "again", place=HERE) == "again"
    assert answers[2] is NotDone.HALTED
    assert blocking.begun == {"a": ["raise", "raise", "again"], "b": ["wait", "goes on"]}


def test_a_handler_that_runs_for_too_long_is_seen_to_be_stuck(blocking: Blocking) -> None:
    now = [1000.0]
    with ThreadLaneExecutor(blocking, stuck_ms=500, time=lambda: now[0]) as executor:
        executor.submit("a", "wait", place=HERE)
        wait_until(lambda: bool(blocking.begun["a"]), "it to begin")
        assert executor.stats().stuck == 0
        now[0] += 1
        wait_until(lambda: executor.stats().stuck == 1, "it to be seen")
        blocking.gate.set()
    assert executor.stats().stuck == 0


def test_g14_close_answers_for_what_it_drops_and_for_what_does_not_end(blocking: Blocking) -> None:
    answers: list[Any] = []
    executor = ThreadLaneExecutor(blocking)
    executor.submit("a", "wait", place=HERE, done=answers.append)
    executor.submit("a", "queued", place=HERE, done=answers.append)
    wait_until(lambda: bool(blocking.begun["a"]), "the first to begin")

    executor.close(grace_s=0)

    assert answers == [NotDone.DROPPED, NotDone.DROPPED]
    with pytest.raises(NotAccepted):
        executor.call("a", "more")
    blocking.gate.set()
    wait_until(lambda: executor.stats().stuck == 0, "its end")
    assert len(answers) == 2, "what it did in the end is told to nobody"


async def test_with_a_loop_answers_come_as_its_callbacks_in_order(blocking: Blocking) -> None:
    answers: list[tuple[str, Any]] = []
    ended = asyncio.Event()

    def done(outcome: Any) -> None:
        answers.append((threading.current_thread().name, outcome))
        if len(answers) == 50:
            ended.set()

    executor = ThreadLaneExecutor(blocking, loop=asyncio.get_running_loop())
    for number in range(50):
        executor.submit("a", f"{number}", done=done)
    await ended.wait()
    await executor.aclose()
    assert answers == [(threading.current_thread().name, f"{number}") for number in range(50)]


async def test_a_coroutine_waits_for_a_result_or_an_error(blocking: Blocking) -> None:
    executor = ThreadLaneExecutor(blocking)
    assert await executor.run("a", "one") == "one"
    with pytest.raises(ValueError, match="raise"):
        await executor.run("a", "raise")
    executor.halt("a", "by hand")
    with pytest.raises(NotAccepted):
        await executor.run("a", "two")
    assert executor.halted == {"a": "by hand"}
    await executor.aclose()


def test_a_done_may_submit_more(blocking: Blocking) -> None:
    ended = threading.Event()

    def more(outcome: Any) -> None:
        executor.submit("a", "two", done=lambda _: ended.set())

    with ThreadLaneExecutor(blocking) as executor:
        executor.submit("a", "one", done=more)
        assert ended.wait(20)
    assert blocking.begun["a"] == ["one", "two"]
