"""A room in which everybody hears everybody: who is in it, and how fast each may talk and must listen.

Nobody waits for anybody. A message is encoded once and put into the queue of each member; a member's own task
writes it out. A reader that stops until the queue is full is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

import msgspec

from roost.api.queue import How

log = logging.getLogger("roost.gameserver")

QUEUE_LIMIT = 256
"""Messages that may wait for one who does not read."""
PER_SECOND = 20
BURST = 40
FLUSH_S = 1.0
"""How long what was said before a close may take to be written."""
STRIKES = 20
"""Messages over the limit that are dropped, after one warning, before the sender is put out."""
SERVER = "server"
"""Who says what the room itself says; such messages have a `warning`, others never do."""

Warning = Literal["idle", "rate"]  # noqa: A001 — the name of the field


class ChatMessage(msgspec.Struct, omit_defaults=True):
    timestamp: str
    nickname: str
    message: str
    warning: Warning | Literal[""] = ""


class Connection(Protocol):
    """One member's line."""

    async def send(self, text: bytes) -> None:
        """Write a text message; waits while the other side does not read."""

    async def close(self, code: int, reason: str) -> None:
        """Say goodbye and hang up, within a bounded time."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the server closes a connection, and what becomes of the place."""

    code: int
    reason: str
    how: How


IDLE = Ending(1000, "idle", "clean")
SLOW = Ending(1013, "too slow to read", "dropped")
FLOOD = Ending(1008, "too many messages", "clean")
NOT_TEXT = Ending(1003, "text messages only", "dropped")
STOPPING = Ending(1001, "the server stops", "dropped")


class Pace:
    """A bucket of words: so many in a second, some more at once; then a warning, then the end."""

    def __init__(self, per_second: float = PER_SECOND, burst: int = BURST, strikes: int = STRIKES) -> None:
        self._per_second = per_second
        self._burst = burst
        self._most_strikes = strikes
        self._left = float(burst)
        self._at = 0.0
        self._strikes = 0

    def judge(self, now: float) -> Literal["take", "warn", "drop", "end"]:
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left >= self._burst:
            self._strikes = 0
        if self._left >= 1.0:
            self._left -= 1.0
            return "take"
        self._strikes += 1
        if self._strikes > self._most_strikes:
            return "end"
        return "warn" if self._strikes == 1 else "drop"


@dataclass(slots=True)
class Counts:
    """What happened in this process, for the metrics page."""

    messages: int = 0
    dropped: int = 0
    """Messages over the rate limit."""
    idle: int = 0
    slow: int = 0
    flooding: int = 0
    failed_sends: int = 0


class Member:
    """Somebody in the room, with the task that writes to them."""

    def __init__(
        self, user_id: str, nickname: str, connection: Connection, counts: Counts, now: float
    ) -> None:
        self.user_id = user_id
        self.nickname = nickname
        self.ending: Ending | None = None
        """Set once the server has decided to close this connection."""
        self.active_at = now
        self.warned = False
        self.pace = Pace()
        self._connection = connection
        self._counts = counts
        self._queue: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._stalled = False
        self._broken = False
        self._writer = asyncio.create_task(self._write(), name="roost chat writer")
        self._closing: asyncio.Task[None] | None = None

    def push(self, text: bytes) -> None:
        """Queue a message. The queue is full only while a write is stuck: a busy moment cuts nobody."""
        if self.ending is not None or self._broken:
            return
        if self._stalled and len(self._queue) >= QUEUE_LIMIT:
            self._counts.slow += 1
            self.end(SLOW)
            return
        self._queue.append(text)
        self._wake.set()

    def end(self, ending: Ending) -> None:
        """Close the connection; its reader finds out. The first reason counts."""
        if self.ending is None:
            self.ending = ending
            self._wake.set()
            self._closing = asyncio.create_task(self._close(ending), name="roost chat close")

    async def gone(self) -> None:
        """The line has ended: stop writing; waits until a close of ours is through."""
        if self._closing is not None:
            await asyncio.wait((self._closing,))
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)

    async def _close(self, ending: Ending) -> None:
        if ending is not SLOW:
            await asyncio.wait((self._writer,), timeout=FLUSH_S)
        await self._connection.close(ending.code, ending.reason)

    async def _write(self) -> None:
        """Write what is queued, until the end has been decided and everything before it is written."""
        try:
            while self.ending is None:
                await self._wake.wait()
                self._wake.clear()
                while self._queue and self.ending is not SLOW:
                    self._stalled = True
                    await self._connection.send(self._queue.popleft())
                    self._stalled = False
        except (OSError, RuntimeError) as error:
            self._broken = True
            if self.ending is None:
                self._counts.failed_sends += 1
                reason = str(error) or type(error).__name__
                log.info("broadcast failed", extra={"userId": self.user_id, "reason": reason})


class Room:
    """Everybody who is connected."""

    def __init__(self, idle_s: float, warning_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.members: set[Member] = set()
        self.counts = Counts()
        self._idle_s = idle_s
        self._warn_after_s = idle_s - warning_s if warning_s < idle_s else idle_s / 2
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode
        self._empty = asyncio.Event()
        self._empty.set()

    def join(self, user_id: str, nickname: str, connection: Connection) -> Member:
        member = Member(user_id, nickname, connection, self.counts, self._clock())
        self.members.add(member)
        self._empty.clear()
        return member

    async def leave(self, member: Member) -> None:
        self.members.discard(member)
        if not self.members:
            self._empty.set()
        await member.gone()

    def say(self, member: Member, text: str) -> None:
        """What a member said, to everybody. An empty message only shows that they are there."""
        if member.ending is not None:
            return
        member.active_at, member.warned = self._clock(), False
        match member.pace.judge(member.active_at):
            case "take" if text:
                self.counts.messages += 1
                self.broadcast(member.nickname, text)
            case "warn":
                self.counts.dropped += 1
                self._warn(member, "rate", "You write too fast; some of it was not sent.")
            case "drop":
                self.counts.dropped += 1
            case "end":
                self.end_flooder(member)

    def end_flooder(self, member: Member) -> None:
        self.counts.flooding += 1
        member.end(FLOOD)

    def broadcast(self, nickname: str, text: str) -> None:
        encoded = self._encode(ChatMessage(_now(), nickname, text))
        for member in self.members:
            member.push(encoded)

    def look(self) -> None:
        """Warn who has been silent for long, close who was warned and stayed silent."""
        now = self._clock()
        for member in self.members:
            silent_s = now - member.active_at
            if silent_s >= self._idle_s and member.ending is None:
                self.counts.idle += 1
                member.end(IDLE)
            elif silent_s >= self._warn_after_s and not member.warned:
                member.warned = True
                left_s = max(1, round(self._idle_s - silent_s))
                self._warn(
                    member, "idle", f"You will be disconnected in {left_s} s unless you say something."
                )

    async def close(self, within_s: float) -> None:
        """Send everybody away; one that does not answer in time is left to the end of the process."""
        for member in self.members:
            member.end(STOPPING)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._empty.wait()

    def _warn(self, member: Member, warning: Warning, text: str) -> None:
        member.push(self._encode(ChatMessage(_now(), SERVER, text, warning)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
