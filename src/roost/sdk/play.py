"""A player at a gate: `async with roost.play(url, token) as player`.

async with roost.play("ws://127.0.0.1:8410", token) as player:
    total = await player.request({"op": "add", "n": 2})
    async for push in player.pushes():
        ...

Messages are numbered. When the connection is lost the player connects again, to the next gate of the list,
shows its resume token and sends again what has no answer, under the same numbers: in order, executed once.
A gate that refuses one of those knows nothing of its first attempt: it ends with `OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from roost.core.backoff import Backoff
from roost.core.errors import InvalidInput, OutcomeUnknown, RoostError, StoreUnavailable
from roost.core.loops import END, Loops
from roost.sdk.lines import Line, check_urls, open_line
from roost.sdk.words import FromGate, GateRefused, Push, Reply, Standing, read_words

__all__ = ["GateRefused", "Player", "Push", "Reply", "play"]

log = logging.getLogger("roost.sdk.play")

MAX_PENDING = 128
"""Messages without an answer; who sends more waits."""
MAX_PUSHES = 10_000
"""Pushes that nobody has read; then the oldest is dropped, and counted."""
FIRST_S = 20.0
"""How long the first welcome may take; after it the player tries for ever."""
WELCOME_S = 10.0
PING_S = 30.0
BACKOFF_CAP_S = 1.0

COME_AGAIN = frozenset({"DRAINING", "SLOW_READER", "UNAVAILABLE", "TOO_MANY_REQUESTS", "REQUEST_TIMEOUT"})
"""Farewells after which the player connects again."""

FAILED = "FAILED"
"""The one refusal by which a home says that it has judged the number."""

Token = str | Callable[[], Awaitable[str]]
"""A login token, or where a fresh one (or a ticket) comes from whenever one is needed."""


_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True, eq=False)
class Waiting:
    """A message without an answer."""

    data: bytes
    answer: asyncio.Future[Reply]
    sent_on: int = 0
    """The first connection on which it went out, counted as `connects` does; 0: on none yet."""

    async def transmit(self, line: Line, connects: int) -> None:
        """What cannot be written counts as sent too: nobody knows how much of it went out."""
        self.sent_on = self.sent_on or connects
        await line.send(self.data)

    def judge(self, error: RoostError, connects: int) -> RoostError:
        """A gate speaks for the attempt that came to it; of one on an earlier connection the home knows."""
        is_again = 0 < self.sent_on < connects
        if is_again and isinstance(error, GateRefused) and error.reason != FAILED:
            return OutcomeUnknown(
                f"it was sent before this connection, on which it is refused: {error.message}"
            )
        return error


class Player:
    """One user at a gate. Use it as an async context manager, on one event loop."""

    def __init__(self, url: str, token: Token, *, types: Iterable[str] = (), resume: str = "") -> None:
        self._urls = deque(check_urls(url))
        self._token = token
        self._types = list(types)
        self._loops = Loops()
        self._line: Line | None = None
        """Set while messages may go."""
        self._pending: dict[tuple[str, int], Waiting] = {}
        """By type and number, in the order of sending."""
        self._room = asyncio.Semaphore(MAX_PENDING)
        self._next: dict[str, int] = {}
        self._pushes: asyncio.Queue[Push | None] = asyncio.Queue()
        self._welcomed: asyncio.Future[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._backoff = Backoff(cap_s=BACKOFF_CAP_S)
        self._max_bytes = 0
        self._is_in = False
        """Whether the present connection was welcomed."""
        self.resume = resume
        """The token with which this session goes on, anywhere."""
        self.user = ""
        self.session = ""
        self.types: dict[str, Standing] = {}
        """How the user stood with each service type at the last login."""
        self.connects = 0
        """How often it was welcomed."""
        self.dropped_pushes = 0
        self.ended: RoostError | None = None
        """Why it does not connect any more."""

    async def __aenter__(self) -> Self:
        self._welcomed = asyncio.get_running_loop().create_future()
        self._welcomed.add_done_callback(_seen)
        self._running = asyncio.create_task(
            self._loops.keep_running("sdk-play", self._connect), name="roost player"
        )
        try:
            async with asyncio.timeout(FIRST_S):
                await asyncio.shield(self._welcomed)
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise StoreUnavailable(f"no gate let this player in within {FIRST_S:g} s") from None
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Log out and hang up; what has no answer yet ends with `OutcomeUnknown`."""
        line = self._line
        if line is not None:
            with contextlib.suppress(OSError):
                await line.send(_encode({"logout": True}))
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._end(GateRefused("CLOSED", "the player was closed"))

    # -- what a player does

    async def request(self, body: Any, *, type: str = "") -> Any:  # noqa: A002
        """Send a message and wait for its result. `GateRefused`, or `OutcomeUnknown`."""
        return (await self.ask(body, type=type)).result

    async def ask(self, body: Any, *, type: str = "") -> Reply:  # noqa: A002
        """`request` with everything that the answer says."""
        return await (await self.send(body, type=type))

    async def send(self, body: Any, *, type: str = "") -> asyncio.Future[Reply]:  # noqa: A002
        """Send a message; the future gets its answer. Messages are executed in the order of these calls."""
        type_ = type or next(iter(self.types), "")
        if type_ not in self._next:
            raise InvalidInput(f"this player did not log in to {type_!r}", hint="roost.play(…, types=[…])")
        await self._room.acquire()
        if self.ended is not None:
            self._room.release()
            raise self.ended
        seq = self._next[type_]
        try:
            data = self._encoded(seq, type_, body)
        except BaseException:
            self._room.release()
            raise
        self._next[type_] += 1
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_seen)
        waiting = self._pending[type_, seq] = Waiting(data, answer)
        if self._line is not None:
            with contextlib.suppress(OSError):  # it goes again after the next welcome
                await waiting.transmit(self._line, self.connects)
        return answer

    def _encoded(self, seq: int, type_: str, body: Any) -> bytes:
        try:
            data = _encode({"seq": seq, "type": type_, "body": body})
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"the body cannot be sent: {error}") from None
        if len(data) > self._max_bytes:
            raise InvalidInput(f"a message of {len(data)} bytes; the gate takes {self._max_bytes}")
        return data

    async def pushes(self) -> AsyncIterator[Push]:
        """What the homes send unasked, until the player ends. Each is told once, however many listen."""
        while (push := await self._pushes.get()) is not None:
            yield push
        self._pushes.put_nowait(None)  # for all others who listen

    # -- the connection

    async def _connect(self) -> object:
        """One connection from its login to its end."""
        url, self._is_in = self._urls[0], False
        try:
            line = await open_line(url)
            try:
                await self._serve(line)
            finally:
                self._line = None
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(2):
                        await line.close()
        except GateRefused as error:
            if not await self._may_come_again(error):
                self._end(error)
                return END
        except (StoreUnavailable, OSError, TimeoutError) as error:
            log.info("no gate", extra={"reason": str(error)})
        self._urls.rotate(-1)
        await asyncio.sleep(self._backoff.next())
        return None

    async def _may_come_again(self, error: GateRefused) -> bool:
        if error.reason == "TAKEN_OVER" and not self._is_in:
            return True  # by an earlier attempt of our own, most likely
        if error.reason == "TOKEN_REFUSED" and self.resume and self._token:
            self.resume = ""  # too old: a new session, and nobody knows what became of the old one's messages
            self._fail_pending(OutcomeUnknown("the session could not be resumed"))
            return True
        if error.reason in ("TICKET_REFUSED", "TICKET_USED") and callable(self._token) and self.resume:
            return True
        return error.reason in COME_AGAIN

    async def _serve(self, line: Line) -> None:
        await line.send(_encode(await self._login()))
        async with asyncio.timeout(WELCOME_S):
            await self._take_welcome(await self._read(line))
        self._is_in = True
        self._backoff.reset()
        await self._send_again(line)
        self._line = line
        pinging = asyncio.create_task(self._keep_pinging(line))
        try:
            while (said := await self._read(line)) is not None:
                self._take(said)
        finally:
            pinging.cancel()

    async def _send_again(self, line: Line) -> None:
        """Everything without an answer, in order; also what is sent by others meanwhile."""
        sent: set[tuple[str, int]] = set()
        while unsent := [(key, waiting) for key, waiting in self._pending.items() if key not in sent]:
            for key, waiting in unsent:
                sent.add(key)
                await waiting.transmit(line, self.connects)

    async def _login(self) -> dict[str, Any]:
        fresh = "" if self.resume and not callable(self._token) else self._token
        login = await fresh() if callable(fresh) else fresh
        said: dict[str, Any] = {"login": login, "types": self._types}
        return said | {"resume": self.resume} if self.resume else said

    async def _read(self, line: Line) -> FromGate | None:
        data = await line.receive()
        if data is None:
            return None
        said = read_words(data)
        if said.bye is not None:
            self.resume = said.resume or self.resume
            raise GateRefused(said.bye.code, said.bye.message, said.bye.retry_after_ms / 1000)
        return said

    async def _take_welcome(self, said: FromGate | None) -> None:
        if said is None or said.welcome is None:
            raise OSError("the gate hung up before its welcome")
        welcome = said.welcome
        self.user, self.session, self.resume = welcome.user, welcome.session, welcome.resume
        self.types, self._max_bytes = welcome.types, welcome.max_bytes
        for type_, standing in welcome.types.items():
            self._next[type_] = max(self._next.get(type_, 0), standing.last_seq + 1)
        self.connects += 1
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_result(None)

    def _take(self, said: FromGate) -> None:
        if said.push is not msgspec.UNSET:
            self._keep_push(Push(said.type, said.push, said.epoch, said.n))
        elif said.error is not None:
            self._settle(said, said.error.raised())
        elif said.seq:
            self._settle(said, Reply(said.result, said.seq, said.durability, said.epoch))
        elif said.resume:
            self.resume = said.resume

    def _settle(self, said: FromGate, outcome: Reply | RoostError) -> None:
        waiting = self._pending.pop((said.type, said.seq), None)
        if waiting is None:
            return
        self._room.release()
        if not waiting.answer.done():
            if isinstance(outcome, Reply):
                waiting.answer.set_result(outcome)
            else:
                waiting.answer.set_exception(waiting.judge(outcome, self.connects))

    def _keep_push(self, push: Push) -> None:
        if self._pushes.qsize() >= MAX_PUSHES:
            self._pushes.get_nowait()
            self.dropped_pushes += 1
        self._pushes.put_nowait(push)

    async def _keep_pinging(self, line: Line) -> None:
        async def ping() -> None:
            await asyncio.sleep(PING_S)
            await line.send(_encode({"ping": 0}))

        await self._loops.keep_running("sdk-play-ping", ping)

    # -- the end

    def _fail_pending(self, error: RoostError) -> None:
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            self._room.release()
            if not waiting.answer.done():
                waiting.answer.set_exception(error)

    def _end(self, error: RoostError) -> None:
        if self.ended is not None:
            return
        self.ended = error
        self._fail_pending(OutcomeUnknown(f"the player ended: {error.message}"))
        self._pushes.put_nowait(None)
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_exception(error)


def _seen(answer: asyncio.Future[Any]) -> None:
    """Who sends without waiting need not look at what became of it."""
    if not answer.cancelled():
        answer.exception()


def play(url: str, token: Token = "", *, types: Iterable[str] = (), resume: str = "") -> Player:
    """A player at a gate: `ws://host:8410`, `wss://…` or `tcp://host:8411`; several are a comma list.

    `types` are the service types that it will talk to, by default the gate's own. `resume` goes on with the
    session of another player object, whose messages without an answer are then not known here.
    """
    return Player(url, token, types=types, resume=resume)
