"""Entity servers in this process on a real store and a real SQLite file; the test beats for them.

Their leases run on a clock that only the test moves, so a lapse is a step of that clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from roost.binding.scripts import Bound, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.errors import Unavailable
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.url import sqlite_url
from roost.discovery.service import Discovery
from roost.sdk.entity import Entity, Message
from roost.servers.entity.beating import Beating, beat_or_carry
from roost.servers.entity.carrying import Carrying, Settler
from roost.servers.entity.host import Host
from roost.servers.entity.lease import Lease
from roost.servers.entity.market import Market
from roost.servers.entity.settings import EntitySettings
from roost.store.keys.binding import partition_keys
from roost.store.store import Store
from roost.testing import eventually
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.frame import Frame
from roost.wire.pool import Pool
from roost.wire.server import Answer, WireServer

SECRET = b"sixteen-bytes-or-more"
TYPE = "entity"
ENTITY, MESSAGE, LOGIN, LOGOUT = 1, 1, 2, 3
BUDGET_MS = 20_000
MOVE, ACCEPT, COMMIT, SURVEY, RETIRE, UNRETIRE = 4, 5, 6, 7, 8, 9
_moves = itertools.count(1)


class Counter(Entity):
    """Counts, and does what the message says."""

    def __init__(self) -> None:
        self.count = 0
        self.seen: list[int] = []

    async def load(self, state: bytes | None) -> None:
        self.count = int(state or b"0")

    def save(self) -> bytes:
        return str(self.count).encode()

    async def handle(self, message: Message) -> object:
        self.seen.append(message.sequence)
        if message.body == "raise":
            self.count += 1
            raise ValueError("a fault of the class")
        self.count += 1
        return self.count


class Clock:
    """Monotonic time of the leases: real time and what the test adds."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> float:
        return time.monotonic() + self.ahead_s


class Link:
    """The way of one server to the map, which the test may cut."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._bindings, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **more: Any) -> Any:
            if self.is_cut:
                raise Unavailable("the store does not answer")
            return await found(*args, **more)

        return call


@dataclass
class House:
    """One entity server."""

    host: Host
    owner: Owner
    lease: Lease
    beating: Beating
    clock: Clock
    link: Link
    carrying: Carrying
    settler: Settler
    server: WireServer
    peer: Peer
    manager: Peer
    loops: list[asyncio.Task[None]]
    pushed: list[Frame] = field(default_factory=list)
    address: tuple[str, int] = ("", 0)
    _sequences: dict[str, int] = field(default_factory=dict)

    @property
    def users(self) -> list[str]:
        return sorted(self.host.sessions)

    async def beat(self) -> None:
        self.beating.ticked_at = time.monotonic()
        await self.beating.beat(self.host.bindings)

    async def step(self, *, ticks: bool = True) -> bool:
        """What the thread that beats does: a beat, or a lease in the database."""
        if ticks:
            self.beating.ticked_at = time.monotonic()
        return await beat_or_carry(self.beating, self.host.bindings, self.carrying)

    async def settles(self) -> None:
        """The store answers again: until no lease in the database is needed any more."""

        async def is_settled() -> bool:
            await self.settler.step()
            return await self.step()

        await eventually(is_settled, "what was acknowledged is written")

    def lapse(self) -> None:
        """Its lease is over by its own clock, as after a long pause; the store has not ended it."""
        self.clock.ahead_s += 3600

    def put(
        self,
        user: str,
        body: Any,
        sequence: int,
        *,
        oldest: int | None = None,
        epoch: int = 0,
        session: str = "s",
        type_: str = TYPE,
    ) -> asyncio.Task[Answer]:
        """Sent at once, in the order of the calls; answered later."""
        payload = msgspec.msgpack.encode((type_, user, session, body))
        return self.send(MESSAGE, payload, sequence=sequence, oldest=oldest, epoch=epoch)

    def send(self, method: int, payload: bytes, **more: Any) -> asyncio.Task[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody waits for it

        def done(answer: Answer | Exception) -> None:
            if future.done():
                return
            if isinstance(answer, Answer):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        self.peer.send(ENTITY, method, payload, budget_ms=BUDGET_MS, done=done, **more)
        return future  # type: ignore[return-value]

    async def ask(self, user: str, body: Any, sequence: int | None = None, **more: Any) -> Answer:
        sequence = self._sequences.get(user, 0) + 1 if sequence is None else sequence
        self._sequences[user] = sequence
        return await self.put(user, body, sequence, **more)

    async def result(self, user: str, body: Any = "up", sequence: int | None = None, **more: Any) -> Any:
        answer = await self.ask(user, body, sequence, **more)
        assert answer.code is Code.OK, (answer.code, answer.message)
        return msgspec.msgpack.decode(answer.payload)[0]

    async def login(
        self, user: str, session: str = "s", *, epoch: int = 0, type_: str = TYPE, **context: Any
    ) -> Answer:
        payload = msgspec.msgpack.encode((type_, user, session, context))
        return await self.send(LOGIN, payload, epoch=epoch)

    async def logout(self, user: str, session: str = "s", reason: str = "closed") -> Answer:
        return await self.send(LOGOUT, msgspec.msgpack.encode((TYPE, user, session, reason)))

    async def move(self, to: House | tuple[Owner, tuple[str, int]], *users: str, **terms: Any) -> list[Any]:
        """`[user, outcome, why, phases, epoch]` for each, as a manager hears it."""
        owner, address = (to.owner, to.address) if isinstance(to, House) else to
        payload = (TYPE, f"m{next(_moves)}", users, (*owner, *address), terms)
        answer = await self.asks(MOVE, *payload)
        assert answer.code is Code.OK, (answer.code, answer.message)
        found: list[Any] = msgspec.msgpack.decode(answer.payload)
        return found

    async def outcome(self, to: House | tuple[Owner, tuple[str, int]], user: str, **terms: Any) -> str:
        [report] = await self.move(to, user, **terms)
        assert report[0] == user
        return str(report[1])

    async def asks(self, method: int, *parts: Any) -> Answer:
        """A manager asks this server."""
        return await self.manager.call(ENTITY, method, msgspec.msgpack.encode(parts), budget_ms=BUDGET_MS)

    async def crash(self) -> None:
        """Gone as by kill -9: nothing is written, nothing is said."""
        for task in self.loops:
            task.cancel()
        await asyncio.gather(*self.loops, return_exceptions=True)
        self.loops.clear()
        await self.host.workers.close()
        await self.peer.close()
        await self.manager.close()
        if self.host.mover.peers is not None:
            await self.host.mover.peers.close()
        if self.host.dealing.market is not None:
            await self.host.dealing.market.close()
        await self.server.close(0)


class Town:
    """A store, a database, and as many servers as the test opens."""

    def __init__(self, store: Store, bindings: Bindings, database: Database) -> None:
        self.store = store
        self.bindings = bindings
        self.database = database
        self.order_servers: list[str] = []
        """Their addresses, if there are any."""
        self._lives = itertools.count(1)
        self._news = itertools.count(1)
        self._stack = contextlib.AsyncExitStack()

    async def open(
        self,
        server_id: str = "501",
        entity: type[Entity] = Counter,
        *,
        database: Any = None,
        **settings: Any,
    ) -> House:
        return await self._stack.enter_async_context(self._house(server_id, entity, database, settings))

    @asynccontextmanager
    async def _house(
        self, server_id: str, entity: type[Entity], database: Any, changed: dict[str, Any]
    ) -> AsyncIterator[House]:
        owner, clock = Owner(server_id, str(next(self._lives))), Clock()
        leases = [Lease(clock.now) for _ in self.bindings.partitions]
        settings = replace(EntitySettings(), **changed)
        link: Any = Link(self.bindings)
        carrying = Carrying(
            TYPE,
            leases,
            lambda: contextlib.nullcontext(self.database),
            ttl_ms=self.bindings.settings.lease_ms,
            patience_s=1.0,
            limit_s=settings.database_lease_seconds,
            now=clock.now,
        )
        beating = Beating(TYPE, lambda: owner, leases, settings.capacity, "1.0", clock.now)
        host = Host(entity, TYPE, "1.0", settings, link, database or self.database, leases, lambda: owner)
        settler = Settler(carrying, host.residence, host.sessions, entity.durability)
        server = WireServer(secret=SECRET, role="entity")
        host.serve(server)
        address = await server.start(("127.0.0.1", 0))
        pushed: list[Frame] = []
        peer = Peer(*address, secret=SECRET, role="gate", on_push=pushed.append)
        manager = Peer(*address, secret=SECRET, role="manager")
        host.mover.peers = Pool(partial(Peer, secret=SECRET, role="entity"))
        if self.order_servers:
            host.dealing.market = Market(
                self._known_order_servers, partial(Peer, secret=SECRET, role="entity")
            )
        loops = [asyncio.create_task(loop) for loop in host.loops(Loops())]
        house = House(
            host,
            owner,
            leases[0],
            beating,
            clock,
            link,
            carrying,
            settler,
            server,
            peer,
            manager,
            loops,
            pushed,
        )
        house.address = address
        await self.shows(owner)
        await house.beat()
        try:
            yield house
        finally:
            await house.crash()

    async def _known_order_servers(self) -> list[str]:
        return list(self.order_servers)

    async def leases_end(self, house: House, *, beating: Sequence[House] = ()) -> None:
        """More than a lease passes, in the store and for this server, while the others beat."""
        for _ in range(int(self.bindings.settings.lease_ms / 1000 / 1.5) + 1):
            house.clock.ahead_s += 1.5
            await house.step()
            for partition in self.bindings.partitions:
                key = partition_keys(self.store.keys, partition.scope)["partition"]
                await self.store.call("HINCRBY", key, "clock_ms", 1500, key=key)
            for other in beating:
                await other.step()

    async def shows(self, owner: Owner, willing: str = "1") -> None:
        """The leader of each partition has heard of this life."""
        for partition in self.bindings.partitions:
            key = self.store.keys.leader(partition.scope)
            await self.store.call("HSET", key, "holder", "m", "epoch", 1, "until_ms", 0, key=key)
            await partition.scripts.sync(
                holder="m",
                epoch="1",
                type=TYPE,
                number=next(self._news),
                full=0,
                max_step_ms=2000,
                rows=[owner.server_id, owner.life, willing],
            )

    async def bind(self, user: str, house: House, *, seen: int = 0) -> int:
        """The map names this server; its epoch."""
        answer = await self.bindings.bind(TYPE, user, house.owner, seen=seen)
        assert isinstance(answer, Bound | Placed), answer
        assert answer.owner == house.owner, answer
        return answer.epoch

    async def bury(self, house: House) -> None:
        await self.bindings.bury(TYPE, house.owner)

    async def state(self, user: str) -> bytes | None:
        row = await self.database.read(TYPE, user)
        return row.state if row is not None else None

    async def close(self) -> None:
        await self._stack.aclose()


@asynccontextmanager
async def open_town(store: Store, folder: Path, *, partitions: int = 1) -> AsyncIterator[Town]:
    settings = BindingSettings(partitions=partitions, slow_start_seconds=0)
    bindings = Bindings(store, settings, Discovery(store, 30.0))
    async with open_database(sqlite_url(folder / "users.db")) as database:
        town = Town(store, bindings, database)
        try:
            yield town
        finally:
            await town.close()
