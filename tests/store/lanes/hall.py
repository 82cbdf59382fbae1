"""Order servers without a network, in the test's process: their store is real, their time is the test's.

A server has everything but its port and its loops: the test steps its leases, and loses its requests to the
log, or the answers to them, where it wants to.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, cast

from roost.core.errors import StoreUnavailable
from roost.db.database import Database
from roost.db.orders import OrderRow, is_newer
from roost.lanes.appending import Appending
from roost.lanes.clock import IdClock
from roost.lanes.commands import (
    SERVICE,
    Amend,
    Cancel,
    Command,
    Durability,
    Method,
    New,
    Outcome,
    Side,
    decode_outcome,
    encode,
)
from roost.lanes.dispatch import Dispatch
from roost.lanes.executor import LaneExecutor
from roost.lanes.ids import LAUNCHED_MS
from roost.lanes.index import OrderIndex
from roost.lanes.log import Log, Logged
from roost.lanes.outbox import Outbox
from roost.lanes.owner import Ownership
from roost.lanes.placement import Place, Table
from roost.lanes.scripts import ShardScripts
from roost.lanes.selector import Spot
from roost.lanes.shard import Shard
from roost.lanes.work import unfinished
from roost.servers.orders.checking import Checking
from roost.servers.orders.engine import Engine
from roost.servers.orders.forwarding import Forwarding
from roost.servers.orders.host import Host
from roost.servers.orders.keeping import Keeping
from roost.servers.orders.metrics import OrderMetrics
from roost.servers.orders.order_rows import OrderRows
from roost.servers.orders.outlet import Outlet
from roost.servers.orders.reading import Reading
from roost.servers.orders.sessions import Sessions
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store
from roost.testing import FakeClock, eventually
from roost.wire.answer import Answer
from roost.wire.connection import Connection, call_of
from roost.wire.frame import Frame
from roost.wire.pool import Pool

TTL_MS = 6000
DIRECT_COMMANDS = 8
"""Of one turn: so that commands also wait in their lanes."""
T0_US = 1_790_000_000_000_000

Fault = Literal["request lost", "answer lost", "request hangs", "answer hangs", "request waits"]


class Ledger:
    """The database of orders: it keeps the newest row of each, or takes none at all."""

    def __init__(self) -> None:
        self.rows: dict[int, OrderRow] = {}
        self.is_away = False
        self._held: asyncio.Future[None] | None = None

    def hold(self) -> asyncio.Future[None]:
        """Who asks waits until this is done."""
        self._held = asyncio.get_running_loop().create_future()
        return self._held

    def release(self) -> None:
        """Whoever asks from now on waits for nothing."""
        self._held = None

    async def put_orders(self, rows: Sequence[OrderRow]) -> None:
        if self.is_away:
            raise StoreUnavailable("the database is away")
        for row in rows:
            kept = self.rows.get(row.order_id)
            if kept is None or is_newer(row, kept):
                self.rows[row.order_id] = row

    async def last_seq(self, shard: int) -> int:
        if self._held is not None:
            await self._held
        if self.is_away:
            raise StoreUnavailable("the database is away")
        return max((row.seq for row in self.rows.values() if row.shard == shard), default=0)

    async def newest_order_id(self, at_least: int, mask: int, bits: int) -> int:
        ids = (order_id for order_id in self.rows if order_id >= at_least and order_id & mask == bits)
        return max(ids, default=0)

    async def orders_between(self, shard: int, after: int, before: int) -> list[OrderRow]:
        return [row for row in self.rows.values() if row.shard == shard and after < row.seq < before]

    async def order(self, order_id: int) -> OrderRow | None:
        if self._held is not None:
            await self._held
        if self.is_away:
            raise StoreUnavailable("the database is away")
        return self.rows.get(order_id)


class HallTime(IdClock):
    """One time for the store's leases and for ids; `skew_ms` is what the clock of ids is wrong by."""

    def __init__(self) -> None:
        super().__init__(T0_US // 1000, 0.0)
        self.now_us = T0_US
        self.skew_ms = 0
        self.store_is_away = False
        """Whether no lease can be asked for."""
        self.no_resigns = False
        """Whether no lease can be given up."""
        self.no_discovery = False
        """Whether nobody knows which shards they should own."""

    def now_ms(self, at: float) -> int:
        return self.now_us // 1000 + self.skew_ms

    def anchor(self, store_ms: int, at: float) -> bool:
        return True


class Faulty:
    """Appends to the log, some of which meet a fault."""

    def __init__(self, script: Any) -> None:
        self._script = script
        self.faults: deque[Fault] = deque()
        self.is_dead = False
        self._waiting: list[Callable[[], None]] = []

    def go_on(self) -> None:
        """Send what waits, and let nothing else wait."""
        waiting, self._waiting = self._waiting, []
        if "request waits" in self.faults:
            self.faults.remove("request waits")
        for send in waiting:
            send()

    def submit(self, parameters: tuple[Any, ...], key: bytes | None) -> asyncio.Future[Any]:
        fault: Fault | None = self.faults.popleft() if self.faults else None
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.is_dead or fault == "request hangs":
            return told
        if fault == "request lost":
            told.set_exception(StoreUnavailable("the request was lost"))
            return told
        if fault == "request waits":
            self._waiting.append(lambda: self._send(told, fault, parameters, key))
        else:
            self._send(told, fault, parameters, key)
        return told

    def _send(
        self, told: asyncio.Future[Any], fault: Fault | None, parameters: tuple[Any, ...], key: bytes | None
    ) -> None:
        sent = self._script.submit(parameters, key)
        sent.add_done_callback(partial(self._answered, told, fault))

    def _answered(self, told: asyncio.Future[Any], fault: Fault | None, sent: asyncio.Future[Any]) -> None:
        if self.is_dead or fault == "answer hangs" or told.done():
            sent.exception()
        elif fault == "answer lost":
            sent.exception()
            told.set_exception(StoreUnavailable("the answer was lost"))
        elif (error := sent.exception()) is not None:
            told.set_exception(error)
        else:
            told.set_result(sent.result())


class FaultyStore:
    """A store whose appends may be lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.appends = Faulty(None)
        self.library = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def script(self, capability: str, name: str, *answers: type) -> Any:
        script: Any = self._store.library.script(capability, name, *answers)
        if (capability, name) != ("lanes", "append"):
            return script
        faults = self.appends.faults
        self.appends = Faulty(script)
        self.appends.faults = faults
        return self.appends


class Timed:
    """The scripts of a shard's lease, asked at the hall's time."""

    def __init__(self, scripts: ShardScripts, time: HallTime) -> None:
        self._scripts = scripts
        self._time = time

    async def campaign(self, **named: Any) -> Any:
        if self._time.store_is_away:
            raise StoreUnavailable("the store is away")
        return await self._scripts.campaign(**named, now=self._time.now_us)

    async def resign(self, **named: Any) -> Any:
        if self._time.no_resigns:
            raise StoreUnavailable("the store is away")
        return await self._scripts.resign(**named)

    async def look(self, **named: Any) -> Any:
        return await self._scripts.look(**named, now=self._time.now_us)


class Trader:
    """A connection that remembers every answer and push."""

    def __init__(self, role: str = "trader") -> None:
        self.peer_role = role
        self.answers: defaultdict[int, list[Answer]] = defaultdict(list)
        self.pushes: list[bytes] = []
        self._requests = itertools.count(1)

    def next_request(self) -> int:
        return next(self._requests)

    def reply_later(self, request: int, answer: Answer) -> None:
        self.answers[request].append(answer)

    def deliver(self, request: int, payload: bytes) -> None:
        self.reply_later(request, Answer(payload))

    def push(self, service: int, method: int, payload: bytes) -> None:
        self.pushes.append(payload)

    def on_close(self, told: Callable[[Any], None]) -> None:
        pass


class Server:
    """One order server. What is not given to it by a test does not happen: it has no loops."""

    def __init__(
        self,
        hall: Hall,
        name: str,
        *,
        workers: int = 4,
        durability: Durability = Durability.MEMORY,
        snapshot_commands: int = 1_000_000,
        queue_limit: int = 65_536,
        failures_to_halt: int = 0,
        wanted: Collection[int] = range(16),
        traded: frozenset[str] = frozenset(),
        ledger: Ledger | None = None,
    ) -> None:
        ledger = ledger or hall.ledger
        self.name = name
        self.time = hall.time
        self.wanted = wanted
        self.clock = FakeClock()
        self.logs = FaultyStore(hall.store)
        self.trader = Trader()
        index = self.index = OrderIndex(hall.store, ttl_s=3600)
        self.outbox = Outbox(ledger)
        sessions = Sessions()
        database = cast(Database, ledger)
        self.dispatch = Dispatch(hall.table, index, database, LAUNCHED_MS)
        pool = cast(Pool, Peers(hall))
        self.forwarding = Forwarding(pool, lambda number: self.ownership.address_of(number))
        self.host = Host(
            partial(_executor, workers, queue_limit),
            self.dispatch,
            sessions,
            self.forwarding,
            lambda: hall.time.now_ms(0.0),
            failures_to_halt,
            traded,
            direct_commands=DIRECT_COMMANDS,
        )
        self.keeping = Keeping(
            cast(Store, self.logs),
            self.host,
            Outlet(sessions, index, self.outbox, database),
            hall.time,
            durability,
            server=name,
            snapshot_commands=snapshot_commands,
        )
        self.checking = Checking(self.keeping.kept, snapshot_commands)
        self.ownership = Ownership(
            lambda number: cast(ShardScripts, Timed(hall.scripts(number), hall.time)),
            self.keeping,
            self._wanted,
            hall.time,
            server=name,
            address=f"{name}:1",
            ttl_ms=TTL_MS,
            clock=self.clock,
        )
        rows = OrderRows(self.outbox, database)
        self.reading = Reading(self.host, self.ownership, f"{name}:1", rows)

    @property
    def faults(self) -> deque[Fault]:
        """What the next appends meet, in turn."""
        return self.logs.appends.faults

    def shard_of(self, symbol: str) -> Shard:
        """The shard here that serves a symbol."""
        place = self.dispatch.place(symbol)
        assert isinstance(place, Place)
        return self.host.routes.shards[place.shard]

    def engine_of(self, symbol: str) -> Engine:
        return cast(Engine, self.shard_of(symbol).machine)

    def page(self) -> OrderMetrics:
        return OrderMetrics(self.host, self.ownership, self.keeping, self.index, self.outbox, self.time)

    def balance(self) -> tuple[int, int]:
        """(received, answered + rejected + forwarded + under way), as the metrics page has them."""
        values: defaultdict[str, float] = defaultdict(float)
        for metric in self.page().collect():
            values[metric.name] += sum(sample.value for sample in metric.samples)
        became = ("answered", "rejected", "forwarded", "under_way")
        return int(values["roost_orders_received"]), int(sum(values[f"roost_orders_{one}"] for one in became))

    def engine_of_shard(self, number: int) -> Engine:
        return cast(Engine, self.host.routes.shards[number].machine)

    def send(self, method: int, command: Command | Any, *, epoch: int = 0) -> int:
        """Without waiting; the number under which `trader.answers` will have the answer."""
        payload = command if isinstance(command, bytes) else encode(command)
        request = self.trader.next_request()
        frame = Frame(0, SERVICE, method, 0, 0, request, epoch, payload)
        trader = cast(Connection, self.trader)
        if method <= Method.AMEND:
            self.host.take(trader, [frame])
        elif (answer := self.reading.query(call_of(frame, trader))) is not None:
            self.trader.reply_later(request, answer)
        return request

    async def ask(self, method: int, command: Command | Any) -> Answer:
        return await self.answer_to(self.send(method, command))

    async def answer_to(self, request: int) -> Answer:
        await eventually(lambda: bool(self.trader.answers[request]), "an answer")
        (answer,) = self.trader.answers[request]
        return answer

    async def outcome(self, method: int, command: Command | Any) -> Outcome:
        answer = await self.ask(method, command)
        assert not answer.code, answer.message
        return decode_outcome(answer.payload)

    async def new(
        self, account: str, number: int, symbol: str, price: int = 10, quantity: int = 5
    ) -> Outcome:
        return await self.outcome(Method.NEW, New(account, number, 0, symbol, Side.BUY, price, quantity))

    async def cancel(self, account: str, number: int, order_id: int, symbol: str = "") -> Outcome:
        return await self.outcome(Method.CANCEL, Cancel(account, number, 0, order_id, symbol))

    async def amend(self, account: str, number: int, order_id: int, price: int, quantity: int) -> Outcome:
        return await self.outcome(Method.AMEND, Amend(account, number, 0, order_id, "", price, quantity))

    async def quiet(self) -> None:
        """Returns when nothing is queued or on its way to the log."""
        await eventually(self._is_quiet, "everything in the log")

    async def snapshot(self) -> None:
        """Write every shard now, as a hand-over would."""
        for kept in list(self.keeping.kept.values()):
            kept.is_owed = True
        await self.keeping.step()

    def kill(self) -> None:
        """kill -9: nothing of it reaches the store any more, and it hears nothing."""
        self.logs.appends.is_dead = True

    def _is_quiet(self) -> bool:
        shards = self.host.routes.shards
        return all(shard.commits.is_idle for shard in shards.values()) and not any(
            self.host.queued(number) for number in shards
        )

    async def _wanted(self) -> Collection[int]:
        if self.time.no_discovery:
            raise StoreUnavailable("the store is away")
        return self.wanted


class Peers:
    """The way from one server of the hall to another."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def at(self, host: str, port: int) -> Any:
        return Way(self._hall.servers[host])


class Way:
    def __init__(self, server: Server) -> None:
        self._server = server

    def send(
        self,
        service: int,
        method: int,
        payload: bytes,
        *,
        done: Callable[[Answer], None],
        epoch: int,
        budget_ms: int,
        traceparent: bytes | None,
    ) -> None:
        caller = Trader("orders")
        caller.reply_later = lambda request, answer: done(answer)  # type: ignore[method-assign]
        frame = Frame(0, service, method, 0, budget_ms, 1, epoch, payload, traceparent=traceparent)
        self._server.host.take(cast(Connection, caller), [frame])


class Hall:
    """A store, a database, the time, and the servers that share them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger()
        self.time = HallTime()
        self.table = Table()
        self.servers: dict[str, Server] = {}

    def server(self, name: str, **options: Any) -> Server:
        server = self.servers[name] = Server(self, name, **options)
        return server

    async def started(self, name: str, **options: Any) -> Server:
        """A server that owns what it wants, where nobody else does."""
        server = self.server(name, **options)
        await server.ownership.step()
        await server.ownership.step()
        return server

    async def takes_over(self, name: str, **options: Any) -> Server:
        """A server that comes when the others have been silent for the time of a lease."""
        server = self.server(name, **options)
        for _ in range(TTL_MS // 1000 + 2):
            await self.pass_s(1)
            await server.ownership.step()
        return server

    async def pass_s(self, seconds: float) -> None:
        self.time.now_us += int(seconds * 1_000_000)
        for server in self.servers.values():
            await server.clock.advance(seconds)

    def scripts(self, number: int) -> ShardScripts:
        return ShardScripts(self.store.library, self.store.keys, shard_scope(number))

    def log(self, number: int) -> Log:
        return Log(self.store, shard_keys(self.store.keys, shard_scope(number)), Appending(self.store))

    async def entries(self, number: int) -> list[Logged]:
        return [entry async for entry in self.log(number).read()]


class HallPlacements:
    """The placement that all servers of the hall share."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    @property
    def table(self) -> Table:
        return self._hall.table

    async def look(self) -> Table:
        return self._hall.table

    async def finish(self, symbol: str, at: Spot, move: str) -> None:
        self.use(self._hall.table.with_pin(symbol, at))

    def use(self, table: Table) -> None:
        self._hall.table = table
        for server in self._hall.servers.values():
            server.dispatch.use(table)


def _executor(
    workers: int, queue_limit: int, handle: Callable[[str, Any], None], after_turn: Callable[[], None]
) -> LaneExecutor:
    return LaneExecutor(
        handle,
        workers_per_shard=workers,
        queue_limit=queue_limit,
        after_turn=after_turn,
        unfinished=unfinished,
    )
