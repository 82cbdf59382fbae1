"""Order servers that do as a test says, on real connections: they own and answer what they are told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from roost.core.loops import Loops
from roost.lanes.commands import (
    DECODERS,
    SERVICE,
    Durability,
    Event,
    Method,
    Outcome,
    Places,
    Standing,
    State,
    encode,
)
from roost.lanes.ids import SHARDS
from roost.lanes.work import refused
from roost.sdk.connect import connect
from roost.sdk.direct.trader import Trader
from roost.settings import Loaded
from roost.wire.answer import Answer
from roost.wire.limits import Limits
from roost.wire.server import Call, WireServer

SECRET = "a-secret-for-these-tests"

Act = Callable[["OrderServer", Call], Answer | None]


class OrderServer:
    """`script` holds what to do with the next commands; when it is empty they are accepted."""

    def __init__(self) -> None:
        self.owns = set(range(SHARDS))
        self.others: dict[int, str] = {}
        self.script: deque[Act] = deque()
        self.commands: list[tuple[Method, Any]] = []
        self.queries: list[Any] = []
        self.follows: list[dict[int, int]] = []
        self.unfollows: list[str] = []
        self.missed: list[Event] = []
        """Pushed after a FOLLOW, before its answer."""
        self.missed_first: list[Event] = []
        """Instead, for the first FOLLOW."""
        self.gaps: dict[int, int] = {}
        """By shard the number after which it has events."""
        self.standing: Standing | None = None
        self.answer: Outcome | None = None
        """To a question for the answer to a command."""
        self.unknown = "UNKNOWN_ORDER"
        """Why there is none."""
        self.connections: list[Any] = []
        self.places = 0
        """How often it was asked who owns what."""
        self.is_silent = False
        """Whether it does not say."""
        self.address = ""
        self.server = WireServer(secret=SECRET.encode(), role="orders")
        for method in (Method.NEW, Method.CANCEL, Method.AMEND):
            self.server.register(SERVICE, method, self._command)
        self.server.register(SERVICE, Method.QUERY, self._query)
        self.server.register(SERVICE, Method.FOLLOW, self._follow)
        self.server.register(SERVICE, Method.UNFOLLOW, self._unfollow)
        self.server.register(SERVICE, Method.PLACES, self._places)

    async def start(self) -> None:
        host, port = await self.server.start(("127.0.0.1", 0))
        self.address = f"{host}:{port}"

    def push(self, event: Event) -> None:
        for connection in self.connections:
            connection.push(SERVICE, int(Method.FOLLOW), encode(event))

    def _command(self, call: Call) -> Answer | None:
        self.commands.append((Method(call.method), DECODERS[call.method](call.payload)))
        return (self.script.popleft() if self.script else accept)(self, call)

    def _query(self, call: Call) -> Answer:
        self.queries.append(DECODERS[Method.QUERY](call.payload))
        found = self.answer or self.standing
        return Answer(encode(found)) if found else refused(self.unknown)

    def _follow(self, call: Call) -> Answer:
        cursor = DECODERS[Method.FOLLOW](call.payload).cursor
        self.follows.append(cursor)
        self.connections.append(call.peer)
        gaps = {shard: after for shard, after in self.gaps.items() if cursor.get(shard, 0) < after}
        for event in self.missed_first or self.missed:
            if event.shard not in gaps:
                call.peer.push(SERVICE, int(Method.FOLLOW), encode(event))
        self.missed_first = []
        return Answer(encode((sorted(self.owns), gaps)))

    def _unfollow(self, call: Call) -> Answer:
        self.unfollows.append(DECODERS[Method.UNFOLLOW](call.payload).account)
        return Answer(encode(()))

    def _places(self, call: Call) -> Answer | None:
        self.places += 1
        if self.is_silent:
            return None
        owners = self.others | dict.fromkeys(self.owns, self.address)
        return Answer(encode(Places(1, "mixed", {}, owners)))


# -- what a script may say


def accept(server: OrderServer, call: Call) -> Answer:
    command = DECODERS[call.method](call.payload)
    order_id = getattr(command, "order_id", 0) or 1000 + command.client_seq
    return Answer(encode(outcome(order_id, State.OPEN, "", len(server.commands))))


def outcome(order_id: int, state: State, reason: str, seq: int) -> Outcome:
    return Outcome(order_id, state, 0, 5, reason, 3, 17, 42, seq, Durability.EVERYSEC, 1_700_000_000_000)


def refuse_by_shard(reason: str) -> Act:
    return lambda server, call: Answer(encode(outcome(0, State.REFUSED, reason, 9)))


def not_taken(reason: str, *, depth: int = 0, retry_after_ms: int = 0) -> Act:
    return lambda server, call: refused(reason, depth=depth, retry_after_ms=retry_after_ms)


def hang_up(server: OrderServer, call: Call) -> None:
    """It may be carried out, and nobody hears of it."""
    call.peer.cut("by the test")


def say_nothing(server: OrderServer, call: Call) -> None:
    return None


# -- who trades with them


class Market:
    """Servers and traders of one test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.servers: list[OrderServer] = []

    async def server(self) -> OrderServer:
        server = OrderServer()
        await server.start()
        self._stack.push_async_callback(server.server.close, 0.1)
        self.servers.append(server)
        return server

    async def trader(self, **options: Any) -> Trader:
        client = connect("redis://127.0.0.1:1")
        settings = Loaded.load(environ={"ROOST_WIRE_SECRET": SECRET}).settings
        addresses = [server.address for server in self.servers]
        given: dict[str, Any] = {"servers": addresses, "settings": settings, "next_seq": 1, "timeout_s": 10.0}
        return await self._stack.enter_async_context(client.trader("acct-7", **given | options))

    def trader_of(self, servers: Callable[[], Awaitable[list[str]]]) -> Trader:
        """One to whom `servers` says who there is, as discovery does."""
        own: dict[str, Any] = {"ssl": None, "limits": Limits(wait_s=0.3), "cursor": {}, "loops": Loops()}
        return Trader("acct-7", servers, secret=SECRET.encode(), timeout_s=5.0, next_seq=1, **own)


def event(number: int, *, shard: int = 3, account: str = "acct-7") -> Event:
    return Event(account, number, shard, 100 + number, 77, "AAPL", 1, 100, 1, 0, 1_700_000_000_000)
