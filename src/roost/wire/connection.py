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
from roost.wire.codes import Code
from roost.wire.endpoint import Endpoint
from roost.wire.frame import AFTER_LENGTH, ERROR, HEADER, PUSH, REPLY, VERSION, Frame
from roost.wire.limits import Limits
from roost.wire.machine import Machine, Opened
from roost.wire.stepping import Blocked, step

log = logging.getLogger("roost.wire.server")

RETRY_AFTER_MS = 200
"""What a refused call is told: about as long as it takes for some work in flight to end."""


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


@dataclass(slots=True, eq=False)
class Running:
    """A call whose answer is not there yet. `task` None: it comes by `Call.reply`."""

    connection: Connection
    frame: Frame
    deadline: float
    task: asyncio.Future[Answer] | None
    is_answered: bool = False


class Host(Protocol):
    """What a connection needs of its server."""

    handlers: dict[tuple[int, int], Handler]
    is_draining: bool
    takes_calls: bool

    def began(self, running: Running) -> None: ...
    def ended(self, running: Running) -> None: ...
    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection, why: str) -> None: ...
    def count(self, what: str) -> None: ...


class Connection(Endpoint):
    """One client. `peer_role` and `peer_version` are what it proved; empty where there is no handshake."""

    def __init__(self, host: Host, machine: Machine, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(machine, limits, loop)
        self._host = host
        self._handlers = host.handlers
        self._silence: asyncio.TimerHandle | None = None
        self._on_close: list[Callable[[Connection], None]] = []
        self._largest_answer = limits.max_frame_bytes - AFTER_LENGTH
        self._later: dict[int, Running] = {}
        """Calls that are answered by `Call.reply`, by request."""
        self._at_work = 0
        """The request whose handler is running right now."""
        self._early: Answer | None = None
        """What that handler replied before it returned."""
        self.in_flight = 0
        """Calls of this connection that are at work."""
        self.peer_role = ""
        self.peer_version = ""

    def push(self, service: int, method: int, payload: bytes, *, epoch: int = 0) -> bool:
        """Send something that was not asked for; False: the client is gone, or it is too large for it."""
        size = len(payload)
        if not self.is_open or size > self._largest_answer:
            return False
        head = HEADER.pack(AFTER_LENGTH + size, VERSION, PUSH, service, method, 0, 0, 0, epoch)
        self.transmit(head, payload)
        return True

    def on_close(self, callback: Callable[[Connection], None]) -> None:
        """Have `callback` called once when the connection is gone."""
        self._on_close.append(callback)

    def close(self, code: Code, message: str) -> None:
        """Send what is written, tell the client why, and end."""
        self.say_bye(code, message)

    # -- calls

    def on_frames(self, frames: list[Frame]) -> None:
        handlers = self._handlers
        for frame in frames:
            handler = handlers.get((frame.service, frame.method))
            if handler is None or not self._host.takes_calls or self.in_flight >= self._limits.max_in_flight:
                self._refuse(frame, handler is None)
                continue
            call = Call(
                frame.service,
                frame.method,
                frame.epoch,
                frame.sequence,
                frame.oldest,
                frame.budget_ms,
                frame.payload,
                self,
                frame.request,
                frame.traceparent,
            )
            self._at_work, self._early = frame.request, None
            try:
                answer: Any = handler(call)
                if answer.__class__ is not Answer:
                    answer = self._stepped(frame, answer)
            except (Exception, asyncio.CancelledError) as error:  # it awaited something that was cancelled
                answer = self._failed(frame, error)
            if answer is not None:
                self._reply(frame, answer)

    def reply_later(self, request: int, answer: Answer) -> None:
        running = self._later.pop(request, None)
        if running is not None:
            self._end(running)
            self._reply(running.frame, answer)
        elif request == self._at_work and self._early is None:
            self._early = answer

    def late(self, running: Running) -> None:
        """Its budget is over: say so, and end the handler. It counts as at work until it really ends.

        Whoever promised to reply later bounds that work itself, so here such a call is over.
        """
        running.is_answered = True
        self._host.count("late")
        self._reply(running.frame, refusal(Code.DEADLINE, "the budget ended before the handler did"))
        if running.task is not None:
            running.task.cancel()
        elif self._later.pop(running.frame.request, None) is not None:
            self._end(running)

    def _refuse(self, frame: Frame, is_unknown: bool) -> None:
        if is_unknown:
            answer = refusal(Code.UNKNOWN_METHOD, f"no method {frame.method} of service {frame.service} here")
        elif self._host.is_draining:
            answer = refusal(Code.CLOSING, "the server takes no new calls", retry_after_ms=RETRY_AFTER_MS)
        else:
            answer = refusal(Code.OVERLOADED, "too many calls are in flight", retry_after_ms=RETRY_AFTER_MS)
        self._host.count(answer.code.name.lower())
        self._reply(frame, answer)

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

    def _promised(self, frame: Frame) -> Answer | None:
        """The answer by `Call.reply`, if it was there before the handler returned; None: it comes later."""
        early, self._early, self._at_work = self._early, None, 0
        if early is None:
            self._begin(frame, None)
        return early

    def _begin(self, frame: Frame, task: asyncio.Future[Answer] | None) -> Running:
        deadline = self._loop.time() + frame.budget_ms / 1000 if frame.budget_ms else inf
        running = Running(self, frame, deadline, task)
        self.in_flight += 1
        self._host.began(running)
        if task is None:
            self._later[frame.request] = running
        return running

    def _end(self, running: Running) -> None:
        self.in_flight -= 1
        self._host.ended(running)

    def _run(self, frame: Frame, rest: Coroutine[Any, Any, Answer] | asyncio.Future[Answer]) -> None:
        task = asyncio.ensure_future(rest, loop=self._loop)
        running = self._begin(frame, task)
        task.add_done_callback(lambda done: self._finish(running, done))

    def _finish(self, running: Running, done: asyncio.Future[Answer]) -> None:
        self._end(running)
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

    def _failed(self, frame: Frame, error: BaseException) -> Answer:
        """What the client hears of a handler that raised: that it did, never what."""
        self._host.count("failed")
        where = {"service": frame.service, "method": frame.method, "peer": self.name}
        log.error("wire: a handler failed", exc_info=error, extra=where)
        return refusal(Code.FAILED, "the handler failed")

    def _reply(self, frame: Frame, answer: Answer) -> None:
        if not self.is_open:
            return
        payload = answer.payload
        size = len(payload)
        if size > self._largest_answer:
            self._host.count("too_large")
            answer = refusal(Code.TOO_LARGE, f"the answer has {size} bytes", epoch=answer.epoch)
            payload, size = answer.payload, len(answer.payload)
        code = answer.code
        head = HEADER.pack(
            AFTER_LENGTH + size,
            VERSION,
            REPLY | ERROR if code else REPLY,
            frame.service,
            frame.method,
            code,
            0,
            frame.request,
            answer.epoch,
        )
        self.transmit(head, payload)

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
        later, self._later = self._later, {}
        for running in later.values():
            self._end(running)
        self._host.closed(self, why)
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("wire: a close callback failed", extra={"peer": self.name})
