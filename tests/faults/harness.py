"""What the fault tests share: callers that check every reply, a proxy that mistreats bytes, and patience."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from roost.core.errors import OutcomeUnknown, StoreError, StoreUnavailable
from roost.store.link import Link, LinkOptions
from roost.store.store import Store
from roost.testing import RunningServer, eventually, open_store

FAST = LinkOptions(command_timeout_s=0.5, connect_timeout_s=0.5)
PATIENT = LinkOptions(command_timeout_s=5.0, connect_timeout_s=1.0)
"""Where no call may fail: on a busy machine half a second can pass without any fault."""

VERY_PATIENT = LinkOptions(command_timeout_s=60.0, connect_timeout_s=1.0)
"""Where very many calls are sent at once, and none may fail."""

HANG_S = 10.0
"""No call of these tests may take this long: it hangs."""

HONEST: tuple[type[StoreError], ...] = (StoreUnavailable, OutcomeUnknown)
"""The errors that a call may end with when its store fails."""


async def reaches(read: Callable[[], int], goal: int) -> None:
    """Wait until a number that only grows has come that far."""
    await eventually(lambda: read() >= goal, f"the number to reach {goal}", HANG_S)


async def in_thread(work: Callable[..., object], *args: object) -> None:
    """Do something slow to a server while the callers go on."""
    await asyncio.to_thread(work, *args)


def opened(
    url: str, options: LinkOptions = FAST, client_name: str = "roost", wait_s: float | None = HANG_S
) -> AbstractAsyncContextManager[Store]:
    """A store that gives up fast: a fault must be seen within the time of a test."""
    return open_store(url, options=options, client_name=client_name, wait_s=wait_s)


async def closes_after(url: str, disturb: Callable[[Store], None]) -> None:
    """Close right after something that wakes the keepers, and one, two, three turns of the loop later."""
    for turns in range(6):
        async with opened(url) as store:
            rung: list[bytes] = []
            stop = store.listen(b"bell", rung.append)
            await reaches(rung.__len__, 1)
            disturb(store)
            stop()
            for _ in range(turns):
                await asyncio.sleep(0)
            async with asyncio.timeout(HANG_S):
                await store.close()


def only_link(store: Store) -> Link:
    (link,) = store.links()
    return link


def clients_of(server: RunningServer, name: str) -> list[dict[str, str]]:
    """The lines of CLIENT LIST with this client name."""
    text: str = server.command_reply("CLIENT", "LIST").decode()
    clients = [dict(part.split("=", 1) for part in line.split()) for line in text.splitlines()]
    return [client for client in clients if client["name"] == name]


async def outcome(call: Awaitable[Any]) -> Any:
    """The reply, or the error as a value; an endless wait fails the test."""
    try:
        async with asyncio.timeout(HANG_S):
            return await call
    except StoreError as error:
        return error


async def outcomes(calls: Iterable[Awaitable[Any]]) -> list[Any]:
    return list(await asyncio.gather(*map(outcome, calls)))


Ask = Callable[[Store, int, str], Awaitable[None]]
"""One checked question: gets the store, the caller's number and a token nobody else has."""


async def echo(store: Store, caller: int, token: str) -> None:
    """Every other caller's calls may be repeated, the others' may not."""
    reply = await store.call("ECHO", token, idempotent=caller % 2 == 0)
    assert reply == token.encode(), f"{token} got the reply {reply!r}"


async def write_and_read(store: Store, caller: int, token: str) -> None:
    """Each caller has a key of its own, so what it reads is what it wrote last."""
    key = f"k{caller}".encode()
    await store.call("SET", key, token, key=key, idempotent=True)
    reply = await store.call("GET", key, key=key, idempotent=True)
    assert reply == token.encode(), f"{token} read {reply!r}"


class Crowd:
    """Callers that ask again and again, and hold every reply against what they asked for."""

    def __init__(self, store: Store, ask: Ask, callers: int, allowed: tuple[type[StoreError], ...]) -> None:
        self._store = store
        self._ask = ask
        self._allowed = allowed
        self._stopping = False
        self._answered_by = [0] * callers
        self.errors: Counter[str] = Counter()
        self.slowest_s = 0.0
        self._tasks = [asyncio.create_task(self._keep_asking(n)) for n in range(callers)]

    @property
    def answered(self) -> int:
        return sum(self._answered_by)

    @property
    def failed(self) -> int:
        return self.errors.total()

    async def progress(self, rounds: int = 3, timeout_s: float = HANG_S) -> None:
        """Wait until every caller has had some more right answers."""
        goal = [count + rounds for count in self._answered_by]
        await eventually(
            lambda: (
                self._broken()
                or all(have >= want for have, want in zip(self._answered_by, goal, strict=True))
            ),
            f"every caller gets answers; errors so far {dict(self.errors)}",
            timeout_s,
        )

    async def trouble(self) -> None:
        """Wait until somebody has met an error."""
        before = self.failed
        await eventually(lambda: self._broken() or self.failed > before, "somebody to meet the fault", HANG_S)

    async def outlive(self, strike: Callable[[], None], heal: Callable[[], None]) -> None:
        """Everybody gets answers before the strike and after the healing, and somebody meets the fault."""
        await self.progress()
        strike()
        await self.trouble()
        await in_thread(heal)
        await self.progress()

    async def stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        """End all callers, whatever they have met; returns when they are gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _broken(self) -> bool:
        return any(task.done() for task in self._tasks)

    async def _keep_asking(self, caller: int) -> None:
        loop = asyncio.get_running_loop()
        turn = 0
        while not self._stopping:
            turn += 1
            token = f"{caller}-{turn}-{'x' * (turn * 37 % 200)}"
            started = loop.time()
            try:
                async with asyncio.timeout(HANG_S):
                    await self._ask(self._store, caller, token)
                self._answered_by[caller] += 1
            except self._allowed as error:
                self.errors[type(error).__name__] += 1
                await asyncio.sleep(0.01)  # a store that is away refuses at once; do not spin on it
            self.slowest_s = max(self.slowest_s, loop.time() - started)


@contextlib.asynccontextmanager
async def crowd(
    store: Store, ask: Ask = echo, callers: int = 64, allowed: tuple[type[StoreError], ...] = HONEST
) -> AsyncIterator[Crowd]:
    """Callers at work while the block runs; a wrong reply, an error not allowed, or a hang fails the test."""
    group = Crowd(store, ask, callers, allowed)
    try:
        yield group
        await group.stop()
    finally:
        await group.cancel()


Split = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    return (data,)


def single_bytes(data: bytes) -> Iterable[bytes]:
    return (data[n : n + 1] for n in range(len(data)))


class Proxy:
    """A TCP proxy before a real server that can split, hold, blackhole and cut what passes through it."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._pipes: list[_Pipe] = []
        self._server: asyncio.Server | None = None
        self.split: Split = whole
        """How the bytes of the server are cut into pieces that arrive one by one."""
        self.accepted = 0
        self._is_dark = False

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await eventually(lambda: not self._pipes, "the proxy's connections to end", HANG_S)
        await self._server.wait_closed()

    def hold_replies(self) -> None:
        """From now on the server hears the present connections, and they do not hear the server."""
        for pipe in self._pipes:
            pipe.replies_flow.clear()

    def blackhole(self) -> None:
        """Leave the present connections open and let nothing through; new connections work."""
        for pipe in self._pipes:
            pipe.replies_flow.clear()
            pipe.requests_flow.clear()

    def go_dark(self) -> None:
        """Let nothing through, over present connections or new ones."""
        self._is_dark = True
        self.blackhole()

    def come_back(self) -> None:
        """After the dark: what hung in it is cut, new connections work."""
        self._is_dark = False
        self.cut()

    def cut(self) -> None:
        """End the present connections without a goodbye."""
        for pipe in self._pipes:
            pipe.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            far = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        pipe = _Pipe(self, (reader, writer), far)
        self._pipes.append(pipe)
        if self._is_dark:
            self.blackhole()
        try:
            await pipe.run()
        finally:
            self._pipes.remove(pipe)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Pipe:
    def __init__(self, proxy: Proxy, near: Stream, far: Stream) -> None:
        self._proxy = proxy
        self._near = near
        self._far = far
        self.requests_flow = asyncio.Event()
        self.replies_flow = asyncio.Event()
        self.requests_flow.set()
        self.replies_flow.set()
        self._over = asyncio.Event()

    def cut(self) -> None:
        self._over.set()

    async def run(self) -> None:
        ways = [
            asyncio.create_task(self._forward(self._near[0], self._far[1], self.requests_flow, None)),
            asyncio.create_task(self._forward(self._far[0], self._near[1], self.replies_flow, self._proxy)),
        ]
        await self._over.wait()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for _, writer in (self._near, self._far):
            writer.transport.abort()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        flow: asyncio.Event,
        splitter: Proxy | None,
    ) -> None:
        try:
            while data := await reader.read(65536):
                await flow.wait()
                for piece in splitter.split(data) if splitter else (data,):
                    writer.write(piece)
                    await writer.drain()
                    if splitter and splitter.split is not whole:
                        await _let_it_arrive()
        except ConnectionError:
            pass
        self._over.set()


async def _let_it_arrive() -> None:
    """Two turns of the loop: one finds the receiving socket readable, in the next it has been read."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
