"""A server's connection to one client: calls in, answers and pushes out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from inspect import iscoroutine
from math import inf
from typing import Any, Protocol

import msgspec

from roost.wire.answer import Answer, refusal
from roost.wire.answering import Answering, Counts
from roost.wire.codes import Code
from roost.wire.frame import AFTER_LENGTH, Frame
from roost.wire.limits import Limits
from roost.wire.machine import Machine, Opened
from roost.wire.stepping import Blocked, step

log = logging.getLogger("roost.wire.server")


class Call(msgspec.Struct, frozen=True):
    """One request as its handler sees it."""

    service: int
    method: int
    epoch: int
    sequence: int | None
    """The client's number of this message, if it sent one."""
    oldest: int | None
    """The oldest number whose reply the client has not seen."""
    budget_ms: int
    """What was left of the caller's time when it sent this; 0: it set none."""
    payload: bytes
    peer: Connection
    request: int
    traceparent: bytes | None = None

    def reply(self, answer: Answer) -> None:
        """Answer a call whose handler returned None. Once: what comes after it, or too late, is dropped."""
        self.peer.reply_later(self.request, answer)


Handler = Callable[[Call], Answer | Awaitable[Answer | None] | None]
"""None, returned without having waited: the answer comes later, by `Call.reply`."""

Taker = Callable[["Connection", list[Frame]], None]
"""Gets the calls that came together, in their order; each is answered by `reply_later` or `deliver`."""


def call_of(frame: Frame, peer: Connection) -> Call:
    return Call(
        frame.service,
        frame.method,
        frame.epoch,
        frame.sequence,
        frame.oldest,
        frame.budget_ms,
        frame.payload,
        peer,
        frame.request,
        frame.traceparent,
    )


@dataclass(slots=True, eq=False)
class Running:
    """A call whose handler waits in a task."""

    connection: Connection
    frame: Frame
    deadline: float
    task: asyncio.Future[Answer]
    is_answered: bool = False


class Host(Counts, Protocol):
    """What a connection needs of its server."""

    handlers: dict[tuple[int, int], Handler]
    takers: dict[tuple[int, int], Taker]
    takes_calls: bool
    running: set[Running]

    def room(self) -> int: ...
    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection, why: str) -> None: ...


class Connection(Answering):
    """One client. `peer_role` and `peer_version` are what it proved; empty where there is no handshake."""

    def __init__(self, host: Host, machine: Machine, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(host, machine, limits, loop)
        self._host: Host = host
        self._handlers = host.handlers
        self._takers = host.takers
        self._silence: asyncio.TimerHandle | None = None
        self._on_close: list[Callable[[Connection], None]] = []
        self.peer_role = ""
        self.peer_version = ""

    def on_close(self, callback: Callable[[Connection], None]) -> None:
        """Have `callback` called once when the connection is gone."""
        self._on_close.append(callback)

    def close(self, code: Code, message: str) -> None:
        """Send what is written, tell the client why, and end."""
        self.say_bye(code, message)

    # -- calls

    def on_frames(self, frames: list[Frame]) -> None:
        if not self._takers:
            self._handle_each(frames)
            return
        takers = self._takers
        taker: Taker | None = None
        run: list[Frame] = []
        for frame in frames:
            found = takers.get((frame.service, frame.method))
            if found is not taker and run:
                self._hand_over(taker, run)
                run = []
            taker = found
            run.append(frame)
        self._hand_over(taker, run)

    def _hand_over(self, taker: Taker | None, frames: list[Frame]) -> None:
        """Calls that came one after the other and have the same taker; None: each has its handler."""
        if taker is None:
            self._handle_each(frames)
            return
        room = min(self._limits.max_in_flight - self.in_flight, self._host.room())
        if len(frames) > room:
            frames, too_many = frames[: max(0, room)], frames[max(0, room) :]
            for frame in too_many:
                self._refuse(frame, is_unknown=False)
        if frames:
            self._promise(frames)
            self._give(taker, frames)

    def _give(self, taker: Taker, frames: list[Frame]) -> None:
        try:
            taker(self, frames)
        except Exception as error:
            failed = self._failed(frames[0], error)
            for frame in frames:
                self.reply_later(frame.request, failed)

    def _handle_each(self, frames: list[Frame]) -> None:
        handlers, host, later = self._handlers, self._host, self._later
        most = self._limits.max_in_flight
        for frame in frames:
            request = frame.request
            handler = handlers.get((frame.service, frame.method))
            if handler is None or not host.takes_calls or len(later) + self._in_tasks >= most:
                self._refuse(frame, handler is None)
                continue
            self._at_work, self._early = request, None
            try:
                answer: Any = handler(call_of(frame, self))
                if answer is None:
                    answer = self._promised(frame)
                elif answer.__class__ is not Answer:
                    answer = self._stepped(frame, answer)
            except (Exception, asyncio.CancelledError) as error:  # it awaited something that was cancelled
                answer = self._failed(frame, error)
            if answer is not None:
                self._reply(frame, answer)

    def late(self, running: Running) -> None:
        """Its budget is over: say so, and end the handler. It counts as at work until it really ends."""
        running.is_answered = True
        self._say_late(running.frame)
        running.task.cancel()

    def _stepped(self, frame: Frame, answer: Any) -> Answer | None:
        """The answer of an awaitable that has it already; None: a task will bring it."""
        if iscoroutine(answer):
            answer = step(answer)
            if answer.__class__ is Answer:
                return answer
            if isinstance(answer, Blocked):
                self._run(frame, answer.rest)
                return None
        elif asyncio.isfuture(answer):
            self._run(frame, answer)
            return None
        if answer is None:
            return self._promised(frame)
        raise TypeError(f"a handler answered with {type(answer).__name__}, not with an Answer")

    def _run(self, frame: Frame, rest: Coroutine[Any, Any, Answer] | asyncio.Future[Answer]) -> None:
        task = asyncio.ensure_future(rest, loop=self._loop)
        deadline = self._loop.time() + frame.budget_ms / 1000 if frame.budget_ms else inf
        running = Running(self, frame, deadline, task)
        self._in_tasks += 1
        self._host.running.add(running)
        self._host.began(deadline)
        task.add_done_callback(lambda done: self._finish(running, done))

    def _finish(self, running: Running, done: asyncio.Future[Answer]) -> None:
        self._in_tasks -= 1
        self._host.running.discard(running)
        self._host.ended()
        if running.is_answered:
            return
        try:
            answer = done.result()
            if answer.__class__ is not Answer:
                raise TypeError(f"a handler answered with {type(answer).__name__}, not with an Answer")
        except asyncio.CancelledError:
            answer = refusal(Code.FAILED, "the handler was cancelled")
        except Exception as error:
            answer = self._failed(running.frame, error)
        self._reply(running.frame, answer)

    # -- the life of it

    def on_opened(self, opened: Opened) -> None:
        peer = opened.peer
        self.peer_role, self.peer_version = peer.role, peer.version
        self.name = f"{peer.role}@{self.name}" if peer.role else self.name
        if peer.max_frame_bytes:
            self._largest_answer = min(self._largest_answer, peer.max_frame_bytes - AFTER_LENGTH)
        self._look_for_life()
        self._host.opened(self)

    def _look_for_life(self) -> None:
        """Cut a client that said nothing, not even a ping, for too long."""
        silent_s = self._loop.time() - self.heard_at
        if silent_s >= self._limits.silence_s:
            self.cut("it was silent for too long")
        else:
            left = self._limits.silence_s - silent_s
            self._silence = self._loop.call_later(left, self._look_for_life)

    def pause_writing(self) -> None:
        """A client that does not read its answers is not read either."""
        super().pause_writing()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def on_room(self) -> None:
        self.heard_at = self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def on_lost(self, why: str) -> None:
        if self._silence is not None:
            self._silence.cancel()
        if self._later:
            self._host.ended(len(self._later))
            self._later.clear()
        self._host.closed(self, why)
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("wire: a close callback failed", extra={"peer": self.name})
