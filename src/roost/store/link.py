"""A link keeps one multiplexed connection to one node alive, and every call on it honest.

Callers of the same loop turn share one write (implicit pipelining). At most `max_inflight` calls are
without a reply; further ones wait here, at most `max_waiting` of them, and beyond that are refused.
While the node is away calls wait too, until their own deadline, or are refused at once when the node
has been away for longer than a command may take.

What happens to a call when its connection dies:

    not yet written to the socket    goes back to the front of the line
    written, idempotent              goes back to the front of the line
    written, not idempotent          OutcomeUnknown
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from roost.core.errors import StoreOverloaded, StoreRefused, StoreUnavailable
from roost.core.loops import END, Loops
from roost.store.call import Call
from roost.store.connection import Connection, reason_of
from roost.store.waiting import WaitingCalls

log = logging.getLogger("roost.store.link")

STALL_FACTOR = 2.0
"""A connection that owes a reply and is silent for this many command timeouts is given up as half open."""

CLOSED = "the store connection was closed"

REDIAL_PAUSE_S = 0.05
"""Between the loss of a connection and the first attempt at another."""

REDIAL_AFTER_S = 0.5
"""A connection younger than this is not dropped over an error that says "wrong node"."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    command_timeout_s: float = 5.0
    connect_timeout_s: float = 3.0
    max_inflight: int = 4096
    max_waiting: int = 65536


@dataclass(slots=True)
class LinkStats:
    connects: int = 0
    losses: int = 0
    timeouts: int = 0
    overloads: int = 0
    unknown_outcomes: int = 0
    large_replies: int = 0

    def count_large(self) -> None:
        self.large_replies += 1


ErrorPolicy = Callable[["Link", Call, str, str], bool]
"""Gets (link, call, first word of the error, whole error); True if it took the call over."""


class Ticker:
    """Calls `work` again and again while it says that there is more. One timer for all calls of a link: a
    timer each would cost more than the call."""

    __slots__ = ("_interval_s", "_loop", "_work", "running")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, interval_s: float, work: Callable[[float], bool]
    ) -> None:
        self._loop = loop
        self._interval_s = interval_s
        self._work = work
        self.running = False

    def start(self) -> None:
        if not self.running:
            self.running = True
            self._loop.call_later(self._interval_s, self._tick)

    def _tick(self) -> None:
        self.running = False
        if self._work(self._loop.time()):
            self.start()


class Link:
    """One node, one loop. `connect` finds the node and returns a connection ready for commands."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[Connection]],
        options: LinkOptions,
        policy: ErrorPolicy,
        on_trouble: Callable[[], None] = lambda: None,
        main: Link | None = None,
        loops: Loops | None = None,
    ) -> None:
        """`main`: the link whose bulk line this is."""
        self.name = name
        self._loops = loops or Loops()
        self.stats = LinkStats()
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._options, self._max_inflight = options, options.max_inflight
        self._policy = policy
        self._on_trouble = _guarded(on_trouble)
        self.is_bulk = main is not None
        self._main = main or self
        self._connection: Connection | None = None
        self._line = WaitingCalls()
        self._waiting = self._line.calls
        self._ticker = Ticker(self._loop, min(0.1, options.command_timeout_s / 10), self._expire)
        self._closed = False
        self.up_since = 0.0  # loop time, of the present connection
        self._down_since = self._loop.time()
        self._why_down = "not connected yet"
        self._refused: StoreRefused | None = None
        self._changed = asyncio.Event()
        self._keeper = self._loop.create_task(
            self._loops.keep_running(f"link {name}", self._keep_connected, pause_s=REDIAL_PAUSE_S)
        )
        self._bulk: Link | None = None

    # -- calls

    def submit(self, call: Call) -> None:
        """Send the call now, or as soon as there is room; its future says how it ended."""
        if call.bulk and not self.is_bulk:
            self._bulk_link().submit(call)
            return
        connection = self._connection
        if connection is None or self._waiting or not connection.has_room(self._max_inflight):
            self._wait(call)
            return
        connection.send(call)
        if not self._ticker.running:
            self._ticker.start()

    def _wait(self, call: Call) -> None:
        if (refused := self._why_not_wait()) is not None:
            # A turn later: a caller that tries again at once must not keep the loop from turning.
            self._loop.call_soon(call.fail, refused)
            return
        self._waiting.append(call)
        self._ticker.start()

    def _why_not_wait(self) -> StoreUnavailable | None:
        if self._closed:
            return StoreUnavailable(CLOSED)
        if len(self._waiting) >= self._options.max_waiting:
            self.stats.overloads += 1
            return StoreOverloaded(f"{len(self._waiting)} calls are already waiting for {self.name}")
        if not self.connected and self._loop.time() - self._down_since > self._options.command_timeout_s:
            return StoreUnavailable(f"the store is away: {self._why_down}")
        return None

    def _pump(self) -> None:
        """Send what waits, as far as there is room."""
        connection, waiting = self._connection, self._waiting
        while waiting and connection is not None and connection.has_room(self._max_inflight):
            call = waiting.popleft()
            if not call.future.done():
                connection.send(call)

    def _on_error(self, call: Call, message: str) -> None:
        word = message.partition(" ")[0]
        if word == "NOSCRIPT" and call.load_script():
            self.resubmit(call)
        elif not self._policy(self, call, word, message):
            call.refuse(message)

    def resubmit(self, call: Call) -> None:
        """Send a call again that was certainly not carried out."""
        if not call.future.done():
            self.submit(call)

    def withdraw(self, which: Callable[[Call], bool] = lambda call: True) -> list[Call]:
        """Give up calls that were not sent, for somebody who knows a better link for them."""
        return self._line.withdraw(which) + (self._bulk.withdraw(which) if self._bulk else [])

    # -- deadlines

    def _expire(self, now: float) -> bool:
        """End the calls whose time is over; whether there are others."""
        connection = self._connection
        if connection is not None:
            if late := connection.expire(now, f"no reply from {self.name} within its time"):
                self.stats.timeouts += late
                self._on_trouble()
            if connection.silent_s(now) > STALL_FACTOR * self._options.command_timeout_s:
                self.drop("the connection is silent")
        if self._waiting:
            why = "too many calls in flight" if self._connection else f"the store is away: {self._why_down}"
            self.stats.timeouts += self._line.expire(now, why)
        return bool(self._waiting or (self._connection and self._connection.slots))

    # -- the connection

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def connection(self) -> Connection | None:
        """The present one, with the address of the node; the lines of a link may differ for a moment."""
        return self._connection

    @property
    def why_down(self) -> str:
        return "" if self.connected else self._why_down

    @property
    def inflight(self) -> int:
        return len(self._connection.slots) if self._connection else 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def lines(self) -> list[Link]:
        """This link, and its bulk line where there is one."""
        return [self, self._bulk] if self._bulk else [self]

    async def ready(self, timeout_s: float | None = None) -> None:
        """Wait until the node is connected; raise the reason if its first attempt failed or time is over."""
        try:
            async with asyncio.timeout(timeout_s or self._options.connect_timeout_s):
                while not self.connected:
                    self._changed.clear()
                    await self._changed.wait()
                    if timeout_s is None:
                        break
        except TimeoutError:
            pass
        if not self.connected:
            raise self._refused or StoreUnavailable(f"the store is away: {self._why_down}")

    def drop(self, why: str) -> None:
        """Abandon the connection; the keeper dials again."""
        if self._connection is not None:
            log.warning("link dropped", extra={"link": self.name, "reason": why})
            self._connection.abort()

    def redial(self, why: str) -> None:
        """Drop every line's connection, but one so new that dialling again would find the same node."""
        for line in self._main.lines():
            if self._loop.time() - line.up_since > REDIAL_AFTER_S:
                line.drop(why)

    async def retire(self) -> list[Call]:
        """Hang up for good; returns the calls that another link may still carry out."""
        await self._hang_up()
        self._closed = True
        calls = self.withdraw()
        await self.close(grace_s=0)
        return calls

    async def close(self, grace_s: float = 0.5) -> None:
        """Let calls in flight end, then hang up."""
        self._closed = True
        if self._connection is not None and self._connection.slots:
            await asyncio.wait([call.future for call in self._connection.slots], timeout=grace_s)
        await self._hang_up()
        for call in self.withdraw():
            call.fail(StoreUnavailable(CLOSED))
        await asyncio.gather(self._keeper, return_exceptions=True)
        if self._bulk is not None:
            await self._bulk.close(grace_s)

    async def _hang_up(self) -> None:
        self._keeper.cancel()
        if self._connection is not None:
            self._connection.abort()
            await asyncio.shield(self._connection.lost)

    async def _keep_connected(self) -> object:
        """One connection, from dialling to its loss."""
        if self._closed:
            return END
        try:
            connection = await self._connect()
            self._attach(connection)
        except Exception as error:
            self._refused = error if isinstance(error, StoreRefused) else None
            self._note_failure(reason_of(error))
            raise
        self._loops.loop(f"link {self.name}").good()
        await asyncio.shield(connection.lost)
        return None

    def _note_failure(self, why: str) -> None:
        if why != self._why_down:
            log.warning("store away", extra={"link": self.name, "reason": why})
        self._why_down = why
        self._changed.set()
        self._on_trouble()

    def _attach(self, connection: Connection) -> None:
        if connection.lost.done():  # nobody would take its calls back: they would wait for ever
            raise StoreUnavailable(connection.lost.result())
        connection.on_error = self._on_error
        connection.on_large = self.stats.count_large
        connection.on_read = self._pump
        connection.on_lost = self._detach
        self._connection = connection
        self.up_since = self._loop.time()
        self.stats.connects += 1
        if self.stats.connects > 1:
            log.info("store back", extra={"link": self.name})
        self._changed.set()
        self._pump()
        self._ticker.start()

    def _detach(self, connection: Connection, reason: str) -> None:
        self._connection = None
        self._down_since = self._loop.time()
        sent, unsent = connection.take_back()
        again, lost = _sorted_out(sent, may_repeat=not self._closed)
        self.stats.unknown_outcomes += len(lost)
        for call in lost:
            call.lose(reason)
        self._line.put_back(again + unsent)
        if not self._closed:
            self.stats.losses += 1
            self._note_failure(reason)
            if self._waiting:
                self._ticker.start()

    def _bulk_link(self) -> Link:
        """The second line, for replies above 256 KB; opened by its first user."""
        if self._bulk is None:
            same = (self._connect, self._options, self._policy, self._on_trouble, self, self._loops)
            self._bulk = Link(f"{self.name} bulk", *same)
        return self._bulk


def _sorted_out(sent: list[Call], *, may_repeat: bool) -> tuple[list[Call], list[Call]]:
    """Of calls without a reply: those to be sent again, and those whose outcome is unknown."""
    again, lost = list[Call](), list[Call]()
    for call in sent:
        if not call.future.done():
            (again if call.idempotent and may_repeat else lost).append(call)
    return again, lost


def _guarded(listener: Callable[[], None]) -> Callable[[], None]:
    """A listener's own fault must not keep a link from taking back the calls that were lost."""

    def tell() -> None:
        try:
            listener()
        except Exception:
            log.exception("a listener of a link failed")

    return tell


def retry_later(call: Call, delay_s: float, submit: Callable[[Call], None], message: str) -> None:
    """Send the call again after a pause, or give up with `message` if its time would be over by then."""
    loop = call.future.get_loop()
    if loop.time() + delay_s >= call.deadline:
        call.fail(StoreUnavailable(f"not carried out within its time: {message}"))
    else:
        loop.call_later(delay_s, submit, call)
