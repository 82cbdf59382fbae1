"""The calls of one peer from the moment they are made to their one end.

waiting   not written: there is no connection, or no room in it
pending   written, or to be written at the end of this turn of the loop
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from math import inf

from roost.core.errors import NotSent, OutcomeUnknown
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code, code_of
from roost.wire.dialing import Link
from roost.wire.frame import AFTER_LENGTH, EXT, HEADER, VERSION, Frame, encode_extensions
from roost.wire.limits import Limits
from roost.wire.sweeping import Sweeper

log = logging.getLogger("roost.wire.client")

Done = Callable[[Answer | Exception], None]

Fields = tuple[int, int, bytes, int, bytes]
"""Service, method, payload, epoch, extensions."""

_NOT_EXECUTED = frozenset({Code.OVERLOADED, Code.CLOSING})
"""Codes that say "not now": whoever asked may ask again, here or elsewhere."""


class Waiting:
    """A call that is not written yet."""

    __slots__ = ("deadline", "done", "fields", "give_up_at")

    def __init__(self, fields: Fields, done: Done, deadline: float, give_up_at: float) -> None:
        self.fields = fields
        self.done = done
        self.deadline = deadline
        self.give_up_at = give_up_at
        """The deadline, or earlier while there is no connection."""


class Calls:
    """Numbers calls, writes them in order, and ends each of them once. The owner brings and takes `_link`."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._link: Link | None = None
        self._pending: dict[int, tuple[Done, float]] = {}
        """By the number of the request, with the deadline."""
        self._waiting: deque[Waiting] = deque()
        self._sweeper = Sweeper(self._loop, self._sweep)
        self._last_request = 0
        self._most_in_flight = limits.max_in_flight
        self._largest = limits.max_frame_bytes
        self._is_closed = False

    def send(
        self,
        service: int,
        method: int,
        payload: bytes,
        *,
        done: Done,
        epoch: int = 0,
        sequence: int | None = None,
        oldest: int | None = None,
        budget_ms: int,
        traceparent: bytes | None = None,
    ) -> None:
        """`call` without future and task: `done` is called once, never before this returns.

        Calls leave in the order in which they were made. `budget_ms` 0: no deadline.
        """
        extensions = (
            encode_extensions(sequence, oldest, traceparent)
            if sequence is not None or oldest is not None or traceparent is not None
            else b""
        )
        if AFTER_LENGTH + len(extensions) + len(payload) > self._largest:
            too_large = refusal(Code.TOO_LARGE, f"a payload of {len(payload)} bytes is too large")
            self._loop.call_soon(done, too_large)
            return
        now = self._loop.time()
        deadline = now + budget_ms / 1000 if budget_ms else inf
        link = self._link
        if link is None or self._waiting or link.is_full or len(self._pending) >= self._most_in_flight:
            self._wait((service, method, payload, epoch, extensions), done, deadline, now)
            return
        self._write(link, service, method, payload, epoch, extensions, budget_ms, done, deadline)

    def frames(self, frames: list[Frame]) -> None:
        """Hand out replies; pushes are the owner's."""
        pop = self._pending.pop
        for frame in frames:
            if not frame.request:
                self._pushed(frame)
                continue
            entry = pop(frame.request, None)
            if entry is not None:  # else its caller has given up
                code = frame.code
                answer: Answer | Exception
                if code:
                    answer = _judged(Answer(frame.payload, code_of(code), frame.epoch))
                else:
                    answer = Answer(frame.payload, Code.OK, frame.epoch)
                _tell(entry[0], answer)
        if self._waiting:
            self.pump()

    def pump(self) -> None:
        """Write those who wait, as far as there is room."""
        link, waiting = self._link, self._waiting
        now = self._loop.time()
        while waiting and link is not None and not link.is_full and len(self._pending) < self._most_in_flight:
            call = waiting.popleft()
            left_s = call.deadline - now
            budget_ms = 0 if left_s == inf else max(1, int(left_s * 1000))
            if left_s <= 0:
                _tell(call.done, NotSent(f"no room at {self.name} in time"))
            else:
                self._write(link, *call.fields, budget_ms, call.done, call.deadline)

    def _want_connection(self) -> None:
        """Somebody waits for one."""

    def _pushed(self, frame: Frame) -> None:
        """A push came."""

    def _fault(self) -> str:
        """Why there is no connection."""
        return ""

    def _write(
        self,
        link: Link,
        service: int,
        method: int,
        payload: bytes,
        epoch: int,
        extensions: bytes,
        budget_ms: int,
        done: Done,
        deadline: float,
    ) -> None:
        self._last_request = link.last_request = request = self._last_request + 1
        self._pending[request] = (done, deadline)
        if deadline < self._sweeper.earliest:
            self._sweeper.watch(deadline)
        size = AFTER_LENGTH + len(extensions) + len(payload)
        flags = EXT if extensions else 0
        head = HEADER.pack(size, VERSION, flags, service, method, 0, budget_ms, request, epoch)
        link.transmit(head + extensions if extensions else head, payload)

    def _wait(self, fields: Fields, done: Done, deadline: float, now: float) -> None:
        if self._is_closed:
            self._loop.call_soon(done, NotSent("the peer was closed"))
        elif len(self._waiting) >= self._limits.max_waiting:
            self._loop.call_soon(done, NotSent(f"too many calls wait for {self.name}"))
        else:
            give_up_at = deadline if self._link is not None else min(deadline, now + self._limits.wait_s)
            self._waiting.append(Waiting(fields, done, deadline, give_up_at))
            self._sweeper.watch(give_up_at)
            if self._link is None:
                self._want_connection()

    def _lose_pending(self, written_request: int, why: str) -> None:
        """Whatever was handed to the socket may have arrived; the rest certainly has not."""
        pending, self._pending = self._pending, {}
        for request, (done, _) in pending.items():
            lost = OutcomeUnknown if request <= written_request else NotSent
            _tell(done, lost(f"connection to {self.name} lost: {why}"))

    def _wait_for_connection(self) -> None:
        """Those who waited for room wait for a connection now."""
        if self._waiting and not self._is_closed:
            until = self._loop.time() + self._limits.wait_s
            for call in self._waiting:
                call.give_up_at = min(call.deadline, until)
            self._sweeper.watch(until)
            self._want_connection()

    def _wait_for_room(self) -> None:
        for call in self._waiting:
            call.give_up_at = call.deadline

    def _give_up(self, why: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            _tell(call.done, NotSent(f"no connection to {self.name}: {why}"))

    def _sweep(self, now: float) -> float:
        late = [request for request, (_, deadline) in self._pending.items() if deadline <= now]
        for request in late:
            if (entry := self._pending.pop(request, None)) is not None:
                _tell(entry[0], OutcomeUnknown(f"no answer from {self.name} in time"))
        stale = [call for call in self._waiting if call.give_up_at <= now]
        if stale:
            self._waiting = deque(call for call in self._waiting if call.give_up_at > now)
        for call in stale:
            _tell(call.done, NotSent(f"not sent to {self.name}: {self._fault() or 'no room in time'}"))
        earliest = min((deadline for _, deadline in self._pending.values()), default=inf)
        return min(earliest, min((call.give_up_at for call in self._waiting), default=inf))


def _judged(answer: Answer) -> Answer | Exception:
    """An answer that is none: the call was not carried out, or nobody knows."""
    if answer.code in _NOT_EXECUTED:
        refused = NotSent(f"{answer.code.name}: {answer.message}")
        refused.retry_after_s = answer.retry_after_ms / 1000
        return refused
    if answer.code is Code.DEADLINE:
        return OutcomeUnknown(f"{answer.code.name}: {answer.message}")
    return answer


def _tell(done: Done, answer: Answer | Exception) -> None:
    """One callback that fails must not keep the others from being called."""
    try:
        done(answer)
    except Exception:
        log.exception("wire: a callback failed")
