from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from roost.alerts import Alert, Webhook, verify_webhook
from roost.alerts.notifier import Notifier
from roost.alerts.options import QUEUE_LIMIT, RETRY_S, SendOptions
from roost.alerts.webhooks import WebhookKind
from roost.core.backoff import Backoff
from roost.testing import eventually, free_port

SECRET = "a-secret-of-the-alerts"
PATH = "/services/T0/B0/hunter2"
ROUTING_KEY = "hunter2-routing-key"
AT = 1_790_000_000.0


class SkippingClock:
    """Sleeps by moving its own time on, so that waiting takes none; remembers how long it slept."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class StandingClock(SkippingClock):
    """Sleeps for ever."""

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.Event().wait()


class Receiver:
    """A real HTTP server that answers as it is told (200 when told nothing more) and keeps what came."""

    def __init__(self, *answers: int | web.Response) -> None:
        self._answers = list(answers)
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.open = asyncio.Event()
        self.open.set()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.headers.append(request.headers)
        await self.open.wait()
        answer = self._answers.pop(0) if self._answers else 200
        return answer if isinstance(answer, web.Response) else web.Response(status=answer)

    def answer_well(self) -> None:
        self._answers.clear()

    def webhook(self, kind: WebhookKind = "json") -> Webhook:
        return Webhook(kind, self.url, "127.0.0.1", ROUTING_KEY if kind == "pagerduty" else "")


@contextlib.asynccontextmanager
async def receiving(*answers: int | web.Response) -> AsyncIterator[Receiver]:
    receiver = Receiver(*answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    async with TestServer(app, host="127.0.0.1") as server:
        receiver.url = str(server.make_url(PATH))
        try:
            yield receiver
        finally:
            receiver.open.set()


@contextlib.asynccontextmanager
async def running(notifier: Notifier) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(notifier.run())
    try:
        yield task
    finally:
        await cancelled(task)


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


def options(clock: SkippingClock | None = None, **more: Any) -> SendOptions:
    return SendOptions(clock=clock or SkippingClock(), backoff=lambda: Backoff(0.5, 4.0), **more)


def alert(subject: str = "501", **more: Any) -> Alert:
    return Alert(
        **{"kind": "unhealthy", "subject": subject, "summary": f"{subject} is silent", "at": AT, **more}
    )


def counted(notifier: Notifier, kind: str = "json") -> tuple[int, int, int]:
    counts = notifier.counts
    return counts.sent[kind], counts.failed[kind], counts.dropped[kind]


def done(notifier: Notifier, count: int, kind: str = "json") -> Callable[[], bool]:
    return lambda: sum(counted(notifier, kind)[:2]) == count


# -- delivery


async def test_an_alert_arrives_as_json() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options(source="kr"))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the alert")
    assert counted(notifier) == (1, 0, 0)
    assert b'"dedupKey":"roost/health/501"' in receiver.bodies[0]
    assert b'"source":"kr"' in receiver.bodies[0]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert receiver.headers[0]["User-Agent"].startswith("roost/")
    assert "X-Roost-Signature" not in receiver.headers[0]


async def test_what_was_told_before_it_ran_is_sent_and_in_order() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options())
        for subject in "abc":
            notifier.tell(alert(subject))
        async with running(notifier):
            await eventually(done(notifier, 3), "three alerts")
    assert [body.partition(b'"subject":"')[2][:1] for body in receiver.bodies] == [b"a", b"b", b"c"]


async def test_without_webhooks_nothing_is_kept_and_it_can_be_stopped() -> None:
    notifier = Notifier([])
    notifier.tell(alert())
    async with running(notifier):
        await asyncio.sleep(0)
    assert not notifier.counts.dropped


async def test_an_exact_repeat_is_sent_once() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options())
        async with running(notifier):
            notifier.tell(alert())
            notifier.tell(alert(at=AT + 1))
            notifier.tell(alert("502"))
            await eventually(done(notifier, 2), "two alerts")
    assert len(receiver.bodies) == 2


async def test_an_alert_that_cannot_be_written_does_not_end_the_lane() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options())
        async with running(notifier):
            notifier.tell(alert(at=float("nan")))
            notifier.tell(alert(kind="nonsense"))
            notifier.tell(alert("502"))
            await eventually(done(notifier, 2), "both")
    assert counted(notifier) == (1, 1, 0)


# -- signatures


async def test_a_signed_alert_verifies_and_a_tampered_one_does_not() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options(secret=SECRET))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the alert")
    stamp, signature = (receiver.headers[0][f"X-Roost-{name}"] for name in ("Timestamp", "Signature"))
    body = receiver.bodies[0]
    assert verify_webhook(SECRET, stamp, body, signature, time.time())
    assert not verify_webhook(SECRET, stamp, body.replace(b"501", b"502"), signature, time.time())
    assert not verify_webhook("another-secret-altogether", stamp, body, signature, time.time())
    assert not verify_webhook(SECRET, stamp, body, signature, time.time() + 400)


async def test_every_attempt_is_signed_with_its_own_time() -> None:
    times = iter([AT, AT + 40])
    async with receiving(500) as receiver:
        notifier = Notifier([receiver.webhook()], options(secret=SECRET, wall=lambda: next(times)))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the alert")
    assert [h["X-Roost-Timestamp"] for h in receiver.headers] == [str(int(AT)), str(int(AT + 40))]


# -- attempts


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    clock = SkippingClock()
    async with receiving(status, status) as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the alert")
    assert counted(notifier) == (1, 0, 0)
    assert len(receiver.bodies) == 3
    assert 0.25 <= clock.slept[0] <= 0.5 <= clock.slept[1] <= 1.0


async def test_it_is_retried_for_minutes_then_given_up_and_the_next_goes_on() -> None:
    clock = SkippingClock()
    async with receiving(*[503] * 10_000) as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "giving up")
            assert RETRY_S - 5 <= sum(clock.slept) <= RETRY_S
            tries = len(receiver.bodies)
            receiver.answer_well()
            notifier.tell(alert("502"))
            await eventually(done(notifier, 2), "the next")
    assert counted(notifier) == (1, 1, 0)
    assert len(receiver.bodies) == tries + 1


async def test_what_has_waited_behind_a_dead_receiver_is_not_retried_for_as_long_again() -> None:
    clock = SkippingClock()
    async with receiving(*[503] * 10_000) as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        for subject in ("a", "b", "c"):
            notifier.tell(alert(subject))
        async with running(notifier):
            await eventually(done(notifier, 3), "giving all of them up")
    assert sum(clock.slept) <= RETRY_S
    assert counted(notifier) == (0, 3, 0)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 302])
async def test_a_refusal_is_not_tried_again(status: int) -> None:
    async with receiving(web.Response(status=status, headers={"Location": "/elsewhere"})) as receiver:
        notifier = Notifier([receiver.webhook()], options())
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the refusal")
    assert counted(notifier) == (0, 1, 0)
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize(("asked", "slept"), [("7", 7.0), ("3600", 60.0)])
async def test_a_receiver_that_asks_for_time_gets_it_up_to_a_minute(asked: str, slept: float) -> None:
    clock = SkippingClock()
    async with receiving(web.Response(status=429, headers={"Retry-After": asked})) as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(done(notifier, 1), "the alert")
    assert counted(notifier) == (1, 0, 0)
    assert clock.slept == [slept]


async def test_where_nobody_listens_it_is_tried_for_minutes() -> None:
    clock = SkippingClock()
    notifier = Notifier([Webhook("json", f"http://127.0.0.1:{free_port()}/", "127.0.0.1")], options(clock))
    async with running(notifier):
        notifier.tell(alert())
        await eventually(done(notifier, 1), "giving up")
    assert counted(notifier) == (0, 1, 0)
    assert RETRY_S - 5 <= sum(clock.slept) <= RETRY_S


async def test_a_silent_receiver_runs_into_the_timeout() -> None:
    async with receiving() as receiver:
        receiver.open.clear()
        notifier = Notifier([receiver.webhook()], options(timeout_s=0.02))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(lambda: len(receiver.bodies) > 2, "more attempts")
    assert counted(notifier)[0] == 0


async def test_a_slow_receiver_does_not_hold_up_another() -> None:
    async with receiving() as slow, receiving() as quick:
        slow.open.clear()
        notifier = Notifier([slow.webhook("slack"), quick.webhook()], options())
        async with running(notifier):
            for subject in "abc":
                notifier.tell(alert(subject))
            await eventually(done(notifier, 3), "the quick one")
            assert counted(notifier, "slack") == (0, 0, 0)
            slow.open.set()
            await eventually(done(notifier, 3, "slack"), "the slow one")
    assert len(slow.bodies) == len(quick.bodies) == 3


# -- the limit


async def test_what_is_over_the_limit_is_told_as_one_summary() -> None:
    clock = SkippingClock()
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        for n in range(30):
            notifier.tell(alert(f"s{n}"))
        async with running(notifier):
            await eventually(done(notifier, 11), "ten alerts and a summary")
    assert clock.slept == [pytest.approx(2.0)]
    assert b'"summary":"s9 is silent"' in receiver.bodies[9]
    assert b'"summary":"20 more alerts were held back"' in receiver.bodies[10]
    assert b'"unhealthy":"20: s10, s11' in receiver.bodies[10]
    assert len(receiver.bodies) == 11
    assert counted(notifier) == (11, 0, 0)


async def test_a_single_alert_over_the_limit_is_only_late() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook()], options(per_minute=60, burst=2))
        for subject in "abc":
            notifier.tell(alert(subject))
        async with running(notifier):
            await eventually(done(notifier, 3), "three alerts")
    assert b'"summary":"c is silent"' in receiver.bodies[2]


async def test_what_closes_an_incident_is_never_collapsed() -> None:
    async with receiving() as receiver:
        notifier = Notifier([receiver.webhook("pagerduty")], options(burst=1))
        for subject in ("a", "b", "c"):
            notifier.tell(alert(subject))
        notifier.tell(alert("a", kind="recovered"))
        notifier.tell(alert("b", kind="recovered"))
        async with running(notifier):
            await eventually(done(notifier, 4, "pagerduty"), "all of it")
    assert [b'"resolve"' in body for body in receiver.bodies] == [False, False, True, True]
    assert b"2 more alerts were held back" in receiver.bodies[1]


async def test_the_queue_is_bounded_and_drops_are_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notifier = Notifier([Webhook("json", "http://127.0.0.1:1/", "127.0.0.1")], options())
    for n in range(QUEUE_LIMIT + 150):
        notifier.tell(alert(str(n)))
    assert counted(notifier) == (0, 0, 150)
    assert [record.message for record in caplog.records] == ["alerts are dropped"] * 2
    assert [vars(record)["dropped"] for record in caplog.records] == [1, 101]


# -- the stop


async def test_a_stop_sends_what_is_queued() -> None:
    async with receiving() as receiver:
        receiver.open.clear()
        notifier = Notifier([receiver.webhook()], options(StandingClock()))
        task = asyncio.create_task(notifier.run())
        for n in range(30):
            notifier.tell(alert(str(n)))
        await eventually(lambda: len(receiver.bodies) == 1, "the first")
        task.cancel()
        receiver.open.set()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert counted(notifier) == (11, 0, 0)
    assert b"20 more alerts were held back" in receiver.bodies[-1]


async def test_a_stop_does_not_wait_for_the_next_attempt_and_tries_once_more() -> None:
    clock = StandingClock()
    async with receiving(500) as receiver:
        notifier = Notifier([receiver.webhook()], options(clock))
        async with running(notifier):
            notifier.tell(alert())
            await eventually(lambda: bool(clock.slept), "the pause before the second attempt")
    assert counted(notifier) == (1, 0, 0)
    assert len(receiver.bodies) == 2


async def test_a_stop_waits_no_longer_than_it_may_and_counts_what_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with receiving() as receiver:
        receiver.open.clear()
        notifier = Notifier([receiver.webhook()], options(flush_s=0.05))
        async with running(notifier):
            for subject in "abc":
                notifier.tell(alert(subject))
            await eventually(lambda: len(receiver.bodies) == 1, "the first")
    assert counted(notifier) == (0, 0, 3)
    assert "alerts were left at the stop" in caplog.text
    notifier.tell(alert("late"))
    assert counted(notifier) == (0, 0, 4)


async def test_a_second_cancel_ends_the_wait_of_the_first() -> None:
    async with receiving() as receiver:
        receiver.open.clear()
        notifier = Notifier([receiver.webhook()], options(flush_s=60.0))
        task = asyncio.create_task(notifier.run())
        notifier.tell(alert())
        await eventually(lambda: len(receiver.bodies) == 1, "the first")
        task.cancel()
        await asyncio.sleep(0)
        await cancelled(task)
    assert counted(notifier) == (0, 0, 1)


# -- secrets


async def test_no_log_and_no_repr_repeats_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    nobody = f"http://user:hunter2@127.0.0.1:{free_port()}{PATH}"
    broken = "http://127.0.0.1:99999" + PATH
    async with receiving(400, 302, 404) as receiver:
        webhooks = [
            receiver.webhook("pagerduty"),
            Webhook("slack", nobody, "127.0.0.1"),
            Webhook("json", broken, "127.0.0.1"),
        ]
        signed = options(secret="hunter2-hunter2-hunter2")
        notifier = Notifier(webhooks, signed)
        async with running(notifier):
            for subject in "abc":
                notifier.tell(alert(subject))
            for kind in ("pagerduty", "slack", "json"):
                await eventually(done(notifier, 3, kind), kind)
    assert counted(notifier, "pagerduty") == counted(notifier, "slack") == counted(notifier) == (0, 3, 0)
    ours = [record for record in caplog.records if record.name != "aiohttp.access"]  # that is the receiver's
    assert [line for line in (str(vars(r)) + r.getMessage() for r in ours) if "hunter2" in line] == []
    assert any(vars(record).get("host") == "127.0.0.1" for record in caplog.records)
    assert "hunter2" not in repr((webhooks, signed))
