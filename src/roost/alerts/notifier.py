"""The notifier: takes alerts without ever blocking and sends them, one lane for each webhook.

    tell ──► lane: queue ─► limit ─► attempts ─► receiver        a slow receiver holds up its own lane only

Logs name the kind and the host of a webhook, never its URL, and of an error only its class: the texts of
aiohttp's errors repeat URLs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from roost.alerts.pace import Repeats, TokenBucket, retry_after_s
from roost.alerts.payloads import Alert, json_of, summary_of
from roost.alerts.webhooks import Webhook, signed_headers
from roost.core.backoff import Backoff
from roost.core.clock import Clock, SystemClock
from roost.core.loops import END, Loop, Loops
from roost.version import __version__

log = logging.getLogger("roost.alerts")

PER_MINUTE = 30
BURST = 10
QUEUE_LIMIT = 1000
ATTEMPTS = 5
TIMEOUT_S = 5.0
FLUSH_S = 2.0
LOG_EVERY_DROPS = 100


def _default_backoff() -> Backoff:
    return Backoff(base_s=1.0, cap_s=30.0)


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How to send: the same for every webhook."""

    source: str = "roost"
    """Names this Roost to the reader of an alert."""
    secret: str = field(default="", repr=False)
    """Signs every request; empty: unsigned."""
    per_minute: int = PER_MINUTE
    burst: int = BURST
    timeout_s: float = TIMEOUT_S
    flush_s: float = FLUSH_S
    """How long a stop may wait for what is queued."""
    backoff: Callable[[], Backoff] = _default_backoff
    clock: Clock = field(default_factory=SystemClock)
    wall: Callable[[], float] = time.time
    """Epoch seconds, for signatures and for dates in Retry-After."""


@dataclass(frozen=True, slots=True)
class _Counts:
    sent: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


class Notifier:
    """Sends what it is told to every webhook. Without webhooks it does nothing.

    `sent`, `failed` and `dropped` count by kind of webhook: requests that were accepted, alerts given up
    after their attempts, alerts that found the queue full or were left at the stop.
    """

    def __init__(
        self, webhooks: Sequence[Webhook], options: SendOptions | None = None, loops: Loops | None = None
    ) -> None:
        self._options = options or SendOptions()
        self._loops = loops or Loops(self._options.clock)
        self._repeats = Repeats()
        counts = _Counts()
        self.sent, self.failed, self.dropped = counts.sent, counts.failed, counts.dropped
        self._lanes = [_Lane(webhook, self._options, counts) for webhook in webhooks]

    def tell(self, alert: Alert) -> None:
        """Queue it for every webhook. Never blocks, never raises; call it in the thread of the loop."""
        try:
            if self._lanes and self._repeats.is_news(alert, self._options.clock.monotonic()):
                for lane in self._lanes:
                    lane.put(alert)
        except Exception:  # the caller has more important things to do
            log.exception("alert not taken")

    async def run(self) -> None:
        """Send for ever. When cancelled, spend at most `flush_s` on what is queued; it is not run again."""
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._options.timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"roost/{__version__}", "Content-Type": "application/json"},
        ) as session:
            tasks = [asyncio.create_task(lane.run(session, self._loops)) for lane in self._lanes]
            try:
                await asyncio.Event().wait()
            finally:
                await self._finish(tasks)

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> None:
        for lane in self._lanes:
            lane.close()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self._options.flush_s)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for lane in self._lanes:
                lane.count_what_is_left()


class _Lane:
    """The way to one webhook."""

    def __init__(self, webhook: Webhook, options: SendOptions, counts: _Counts) -> None:
        self._webhook = webhook
        self._options = options
        self._counts = counts
        self._bucket = TokenBucket(60.0 / options.per_minute, options.burst)
        self._queue: deque[Alert] = deque()
        self._leaving: deque[Alert] = deque()
        """Past the limit, not yet delivered."""
        self._filled = asyncio.Event()
        self._closing = asyncio.Event()
        self._drops = 0

    def put(self, alert: Alert) -> None:
        if len(self._queue) >= QUEUE_LIMIT or self._closing.is_set():
            self._drop()
            return
        self._queue.append(alert)
        self._filled.set()

    def _drop(self) -> None:
        if self._drops % LOG_EVERY_DROPS == 0:
            reason = "stopping" if self._closing.is_set() else "queue full"
            self._warn("alerts are dropped", reason=reason, dropped=self._drops + 1)
        self._drops += 1
        self._counts.dropped[self._webhook.kind] += 1

    def close(self) -> None:
        """Take no more, wait for nothing more, end when all is sent."""
        self._closing.set()
        self._filled.set()

    def count_what_is_left(self) -> None:
        if left := len(self._queue) + len(self._leaving):
            self._counts.dropped[self._webhook.kind] += left
            self._warn("alerts were left at the stop", dropped=left)

    async def run(self, session: aiohttp.ClientSession, loops: Loops) -> None:
        """Until it is closed and empty."""
        loop = loops.loop(f"alerts {self._webhook.kind} {self._webhook.host}")
        await loop.keep_running(lambda: self._turn(session, loop))

    async def _turn(self, session: aiohttp.ClientSession, loop: Loop) -> object:
        if self._queue or self._leaving:
            await self._gather()
            await self._send_leaving(session)
        elif self._closing.is_set():
            return END
        else:
            loop.good()
            self._filled.clear()
            await self._filled.wait()
        return None

    # -- the limit

    async def _gather(self) -> None:
        """Let one alert out; or, over the limit, wait for a token and let all that came out as one."""
        if not self._queue:
            return
        wait_s = self._bucket.take(self._now())
        if not wait_s:
            self._leaving.append(self._queue.popleft())
            return
        while wait_s and not self._closing.is_set():
            await self._pause(wait_s)
            wait_s = self._bucket.take(self._now())
        self._leaving.extend(self._collapsed())
        self._queue.clear()

    def _collapsed(self) -> list[Alert]:
        """One summary for the queue; what closes an incident stays apart, or it would stay open."""
        closes_incidents = self._webhook.kind == "pagerduty"
        apart = [alert for alert in self._queue if closes_incidents and alert.resolves]
        held = [alert for alert in self._queue if not (closes_incidents and alert.resolves)]
        return [*(held if len(held) < 2 else [summary_of(held)]), *apart]

    # -- the attempts

    async def _send_leaving(self, session: aiohttp.ClientSession) -> None:
        while self._leaving:
            try:
                delivered = await self._deliver(session, self._leaving[0])
            except Exception as error:  # an alert that cannot be sent must not end the lane
                self._warn("alert not sendable", reason=type(error).__name__)
                delivered = False
            self._leaving.popleft()
            (self._counts.sent if delivered else self._counts.failed)[self._webhook.kind] += 1

    async def _deliver(self, session: aiohttp.ClientSession, alert: Alert) -> bool:
        body = json_of(self._webhook, alert, self._options.source)
        backoff = self._options.backoff()
        for attempt in range(1, ATTEMPTS + 1):
            outcome = await self._post(session, body)
            if outcome.delivered:
                return True
            if not outcome.may_retry or attempt == ATTEMPTS or self._closing.is_set():
                self._warn("alert not delivered", reason=outcome.reason, attempts=attempt, alert=alert.kind)
                return False
            await self._pause(max(backoff.next(), outcome.retry_after_s))
        raise AssertionError("the last attempt returns")

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> _Outcome:
        now = self._options.wall()
        headers = signed_headers(self._options.secret, body, now)
        try:
            async with session.post(
                self._webhook.url, data=body, headers=headers, allow_redirects=False
            ) as response:
                asked = response.headers.get("Retry-After")
                return _Outcome(response.status, f"HTTP {response.status}", retry_after_s(asked, now))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return _Outcome(0, type(error).__name__)

    # -- waiting and telling

    def _now(self) -> float:
        return self._options.clock.monotonic()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the stop."""
        sleeping = asyncio.ensure_future(self._options.clock.sleep(seconds))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((sleeping, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            closing.cancel()

    def _warn(self, message: str, **more: Any) -> None:
        log.warning(message, extra={"webhook": self._webhook.kind, "host": self._webhook.host, **more})


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one attempt ended."""

    status: int
    """0: no answer at all."""
    reason: str
    retry_after_s: float = 0.0

    @property
    def delivered(self) -> bool:
        return 200 <= self.status < 300

    @property
    def may_retry(self) -> bool:
        return self.status == 0 or self.status == 429 or self.status >= 500
