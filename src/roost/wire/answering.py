"""A server's side of answers: which calls are at work, until when, and what is written for them."""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import Protocol

from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.endpoint import Endpoint
from roost.wire.frame import AFTER_LENGTH, ERROR, HEADER, PUSH, REPLY, VERSION, Frame
from roost.wire.limits import Limits
from roost.wire.machine import Machine

log = logging.getLogger("roost.wire.server")

RETRY_AFTER_MS = 200
"""What a refused call is told: about as long as it takes for some work in flight to end."""


class Counts(Protocol):
    """What a server keeps of the calls of all its connections."""

    is_draining: bool
    unknown: dict[int, Answer]

    def began(self, deadline: float, calls: int = 1) -> None: ...
    def ended(self, calls: int = 1) -> None: ...
    def count(self, what: str) -> None: ...


class Answering(Endpoint):
    """A connection that owes answers."""

    def __init__(
        self, host: Counts, machine: Machine, limits: Limits, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(machine, limits, loop)
        self._host = host
        self._largest_answer = limits.max_frame_bytes - AFTER_LENGTH
        self._later: dict[int, tuple[Frame, float]] = {}
        """Calls that are answered by `Call.reply`, by request, with their deadlines.

        NB: a tuple: there may be one for each frame, and nothing is cheaper to make.
        """
        self._in_tasks = 0
        """Calls whose handler waits in a task."""
        self._delivered = 0
        """Calls that were answered since the last write, and count as at work until then."""
        self._at_work = 0
        """The request whose handler is running right now."""
        self._early: Answer | None = None
        """What that handler replied before it returned."""

    def push(self, service: int, method: int, payload: bytes, *, epoch: int = 0) -> bool:
        """Send something that was not asked for; False: the client is gone, or it is too large for it."""
        size = len(payload)
        if not self.is_open or size > self._largest_answer:
            return False
        head = HEADER.pack(AFTER_LENGTH + size, VERSION, PUSH, service, method, 0, 0, 0, epoch)
        self.transmit(head, payload)
        return True

    @property
    def in_flight(self) -> int:
        """Calls of this connection that are at work."""
        return len(self._later) + self._in_tasks

    # -- answers that come later

    def _promise(self, frames: list[Frame]) -> None:
        """Count them as at work, each until it is answered or its budget is over."""
        later, heard_at, earliest = self._later, self.heard_at, inf
        budget_ms, deadline = 0, inf
        for frame in frames:
            if frame.budget_ms != budget_ms:
                budget_ms = frame.budget_ms
                deadline = heard_at + budget_ms / 1000 if budget_ms else inf
                earliest = min(earliest, deadline)
            later[frame.request] = (frame, deadline)
        self._host.began(earliest, len(frames))

    def _promised(self, frame: Frame) -> Answer | None:
        """The answer by `Call.reply`, if it was there before the handler returned; None: it comes later."""
        early, self._early, self._at_work = self._early, None, 0
        if early is None:
            budget_ms = frame.budget_ms
            deadline = self.heard_at + budget_ms / 1000 if budget_ms else inf
            self._later[frame.request] = (frame, deadline)
            self._host.began(deadline)
        return early

    def deliver(self, request: int, payload: bytes) -> None:
        """What `reply_later` does with a result, for calls that come in masses."""
        size = len(payload)
        if not self.is_open or size > self._largest_answer:
            self.reply_later(request, Answer(payload))
            return
        promised = self._later.pop(request, None)
        if promised is None:
            return
        frame, _ = promised
        self._delivered += 1
        head = HEADER.pack(AFTER_LENGTH + size, VERSION, REPLY, frame.service, frame.method, 0, 0, request, 0)
        self._out += (head, payload)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def reply_later(self, request: int, answer: Answer) -> None:
        promised = self._later.pop(request, None)
        if promised is not None:
            self._host.ended()
            self._reply(promised[0], answer)
        elif request == self._at_work and self._early is None:
            self._early = answer

    def flush(self) -> bool:
        if self._delivered:
            delivered, self._delivered = self._delivered, 0
            self._host.ended(delivered)
        return super().flush()

    def end_late(self, now: float) -> float:
        """End the calls whose answer was promised and whose budget is over; returns the next deadline.

        Whoever promised to reply later bounds that work itself, so here such a call is over.
        """
        late = [request for request, (_, deadline) in self._later.items() if deadline <= now]
        for request in late:
            frame, _ = self._later.pop(request)
            self._say_late(frame)
            self._host.ended()
        return min((deadline for _, deadline in self._later.values()), default=inf)

    def _say_late(self, frame: Frame) -> None:
        self._host.count("late")
        self._reply(frame, refusal(Code.DEADLINE, "the budget ended before the handler did"))

    def _refuse(self, frame: Frame, is_unknown: bool) -> None:
        if is_unknown:
            said = f"no method {frame.method} of service {frame.service} here"
            answer = self._host.unknown.get(frame.service) or refusal(Code.UNKNOWN_METHOD, said)
        elif self._host.is_draining:
            answer = refusal(Code.CLOSING, "the server takes no new calls", retry_after_ms=RETRY_AFTER_MS)
        else:
            answer = refusal(Code.OVERLOADED, "too many calls are in flight", retry_after_ms=RETRY_AFTER_MS)
        self._host.count(answer.code.name.lower())
        self._reply(frame, answer)

    # -- answers

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
        self._out += (head, payload)  # as `transmit` does: once for each call, so without calling it
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)
