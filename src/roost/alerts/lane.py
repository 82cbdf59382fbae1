"""The way to one webhook.

    put ─► queue ─► limit ─► claim ─► leaving ─► attempts ─► receiver
                               └► held: another process tells it; asked again every few seconds

An alert is claimed when its turn has come, so what waits here in line is free for processes that are faster.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from roost.alerts.claims import Claimed, Claims, Held
from roost.alerts.options import (
    CLAIM_RETRY_S,
    CLAIM_S,
    HELD_RETRY_S,
    LOG_EVERY_DROPS,
    QUEUE_LIMIT,
    RETRY_S,
    SendOptions,
)
from roost.alerts.pace import TokenBucket, retry_after_s
from roost.alerts.payloads import Alert, json_of, summary_of
from roost.alerts.webhooks import Webhook, signed_headers
from roost.core.errors import StoreError
from roost.core.loops import END, Loop, Loops

log = logging.getLogger("roost.alerts")


@dataclass(frozen=True, slots=True)
class Counts:
    """By kind of webhook."""

    sent: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Queued:
    alert: Alert
    since: float
    """Monotonic seconds at which it was told: its age bounds every wait and every attempt."""


@dataclass(slots=True)
class _Letter:
    """What leaves as one request: an alert, or a summary that stands for several."""

    alert: Alert
    claimed: list[_Queued]

    @property
    def since(self) -> float:
        return max(queued.since for queued in self.claimed)


class Lane:
    def __init__(self, webhook: Webhook, options: SendOptions, counts: Counts, claims: Claims) -> None:
        self._webhook = webhook
        self._options = options
        self._counts = counts
        self._claims = claims
        self._bucket = TokenBucket(60.0 / options.per_minute, options.burst)
        self._queue: deque[_Queued] = deque()
        self._taken: deque[_Queued] = deque()
        """Past the limit, not yet claimed."""
        self._leaving: deque[_Letter] = deque()
        self._held: deque[_Queued] = deque()
        self._held_until = 0.0
        self._filled = asyncio.Event()
        self._closing = asyncio.Event()
        self._drops = 0

    def put(self, alert: Alert) -> None:
        if len(self._queue) + len(self._held) >= QUEUE_LIMIT or self._closing.is_set():
            self._drop()
            return
        self._queue.append(_Queued(alert, self._now()))
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
        if left := len(self._queue) + len(self._taken) + len(self._leaving):
            self._counts.dropped[self._webhook.kind] += left
            self._warn("alerts were left at the stop", dropped=left)

    async def run(self, session: aiohttp.ClientSession, loops: Loops) -> None:
        """Until it is closed and empty."""
        loop = loops.loop(f"alerts {self._webhook.kind} {self._webhook.host}")
        await loop.keep_running(lambda: self._turn(session, loop))

    async def _turn(self, session: aiohttp.ClientSession, loop: Loop) -> object:
        self._ask_again_for_held()
        if self._queue or self._taken or self._leaving:
            await self._gather()
            await self._send_leaving(session)
        elif self._closing.is_set():  # what is held is told by its holder
            return END
        else:
            loop.good()
            self._filled.clear()
            await self._pause(self._held_until - self._now() if self._held else None, self._filled)
        return None

    # -- the limit

    async def _gather(self) -> None:
        """Let one alert out; or, over the limit, wait for a token and let all that came out as one."""
        if self._queue and not self._taken:
            await self._take()
        mine = [queued for queued in list(self._taken) if await self._is_mine(queued)]
        if self._taken and not mine:
            self._bucket.give_back()
        self._taken.clear()
        self._leaving.extend(self._collapsed(mine))

    async def _take(self) -> None:
        wait_s = self._bucket.take(self._now())
        if not wait_s:
            self._taken.append(self._queue.popleft())
            return
        while wait_s and not self._closing.is_set():
            await self._pause(wait_s)
            wait_s = self._bucket.take(self._now())
        self._taken.extend(self._queue)
        self._queue.clear()

    def _collapsed(self, mine: list[_Queued]) -> list[_Letter]:
        """One summary for all; what closes an incident stays apart, or it would stay open."""
        closes_incidents = self._webhook.kind == "pagerduty"
        apart = [queued for queued in mine if closes_incidents and queued.alert.resolves]
        many = [queued for queued in mine if not (closes_incidents and queued.alert.resolves)]
        letters = [_Letter(queued.alert, [queued]) for queued in apart]
        if len(many) > 1:
            return [_Letter(summary_of([queued.alert for queued in many]), many), *letters]
        return [*(_Letter(queued.alert, [queued]) for queued in many), *letters]

    # -- who of the fleet tells it

    async def _is_mine(self, queued: _Queued, lease_s: float = CLAIM_S) -> bool:
        """Claim it, or renew the claim. Where nobody can say for long, or at a stop, it is told anyway."""
        try:
            answer = await self._claims.claim(self._webhook, queued.alert, lease_s)
        except StoreError as error:
            patience_s = queued.since + CLAIM_S - self._now()
            if patience_s <= 0 or self._closing.is_set():
                self._warn("alert told without a claim", reason=error.message)
                return True
            self._hold(queued, CLAIM_RETRY_S)
            return False
        except Exception as error:  # an alert that cannot be told from others is told
            self._warn("alert not claimable", reason=type(error).__name__)
            return True
        if isinstance(answer, Held):
            self._hold(queued, min(answer.left_ms / 1000 + CLAIM_RETRY_S, HELD_RETRY_S))
        elif not isinstance(answer, Claimed):
            self._counts.elsewhere[self._webhook.kind] += 1
        return isinstance(answer, Claimed)

    def _hold(self, queued: _Queued, seconds: float) -> None:
        """Keep it for the case that its holder dies. All held are asked for together, in their order."""
        self._held.append(queued)
        until = self._now() + seconds
        self._held_until = min(self._held_until, until) if len(self._held) > 1 else until

    def _ask_again_for_held(self) -> None:
        if self._held and self._held_until <= self._now():
            self._queue.extendleft(reversed(self._held))
            self._held.clear()

    async def _settle(self, letter: _Letter, told: bool) -> None:
        for queued in letter.claimed:
            try:
                await self._claims.settle(self._webhook, queued.alert, told=told)
            except Exception as error:  # the claim runs out; then another process may tell it again
                self._warn("claim not settled", reason=type(error).__name__)

    # -- the attempts

    async def _send_leaving(self, session: aiohttp.ClientSession) -> None:
        while self._leaving:
            letter = self._leaving[0]
            try:
                delivered = await self._deliver(session, letter)
            except Exception as error:  # an alert that cannot be sent must not end the lane
                self._warn("alert not sendable", reason=type(error).__name__)
                delivered = False
            self._leaving.popleft()
            if letter.claimed:
                await self._settle(letter, delivered)
                (self._counts.sent if delivered else self._counts.failed)[self._webhook.kind] += 1

    async def _deliver(self, session: aiohttp.ClientSession, letter: _Letter) -> bool:
        """Try until the receiver has it, refuses it, or it is too old. Nothing is left to claim: not ours."""
        body = json_of(self._webhook, letter.alert, self._options.source)
        backoff = self._options.backoff()
        attempt = 0
        while letter.claimed:
            attempt += 1
            outcome = await self._post(session, body)
            if outcome.delivered:
                return True
            pause_s = max(backoff.next(), outcome.retry_after_s)
            too_old = self._now() + pause_s > letter.since + RETRY_S
            if not outcome.may_retry or too_old or self._closing.is_set():
                kind = letter.alert.kind
                self._warn("alert not delivered", reason=outcome.reason, attempts=attempt, alert=kind)
                return False
            await self._keep(letter, pause_s)
            await self._pause(pause_s)
        return False

    async def _keep(self, letter: _Letter, pause_s: float) -> None:
        """Renew the claims over the pause before the next attempt; what another has leaves the letter."""
        lease_s = pause_s + CLAIM_S
        letter.claimed = [queued for queued in letter.claimed if await self._is_mine(queued, lease_s)]

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

    async def _pause(self, seconds: float | None, woken: asyncio.Event | None = None) -> None:
        """Wait, but not beyond the stop, nor beyond `woken`. None: only for those."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._closing.wait())]
        if woken is not None:
            waits.append(asyncio.ensure_future(woken.wait()))
        if seconds is not None:
            waits.append(asyncio.ensure_future(self._options.clock.sleep(max(seconds, 0.0))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

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
