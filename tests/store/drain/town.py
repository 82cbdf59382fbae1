"""Entity servers that speak the calls of a drain and hold nobody but in the map; and a town of them.

The store, discovery, the leader of the partitions and the wire are real.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from roost.api.discovery import RegisterInput
from roost.binding.drain.certificate import GateReport, gate_name
from roost.binding.drain.jobs import Drains
from roost.binding.drain.model import DrainRequest, Job
from roost.binding.drain.movers import ENTITY, MOVE, RETIRE, SURVEY, UNRETIRE, WireMovers
from roost.binding.scripts import Committed, Frozen, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.owner import Owner
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.testing.waiting import eventually
from roost.wire.answer import Answer
from roost.wire.server import Call, WireServer

SECRET = b"a secret of the tests"
TYPE = "entity"
BEAT_S = 0.5

encode = msgspec.msgpack.encode
Judge = Callable[[str, bool], tuple[str, str] | None]
"""What an attempt to move (user, force) comes to instead of a move; None: it is moved."""


class Double:
    """An entity server: moves in the map as a real one does, without any state."""

    def __init__(self, town: Town, owner: Owner) -> None:
        self.town = town
        self.owner = owner
        self.wire = WireServer(secret=SECRET, role="entity")
        self.address = ("", 0)
        self.instance_id = ""
        self.cached: dict[str, tuple[bool, int, bool, str, str, int]] = {}
        """User → online, idle ms, dirty, verdict, why or party, retry ms: those in memory."""
        self.judge: Judge = lambda user, force: None
        self.cut_off: set[str] = set()
        """Targets that it cannot reach."""
        self.gate = asyncio.Event()
        """While it is not set, moves stand still."""
        self.gate.set()
        self.moves: list[str] = []
        """Users whose move was asked for, in order."""
        self.moved = Counter[str]()
        self.alone_by_force = False
        """Whether its parties are too large: by force each of them goes alone."""
        self.roles: set[str] = set()
        self.retired = False
        self.at_once = self.most_at_once = 0
        self._beating: asyncio.Task[None] | None = None

    async def start(self, version: str, capacity: int, labels: dict[str, str]) -> None:
        for method, handler in (
            (MOVE, self._move),
            (SURVEY, self._survey),
            (RETIRE, self._retire),
            (UNRETIRE, self._unretire),
        ):
            self.wire.register(ENTITY, method, handler, in_task=True)
        self.address = await self.wire.start(("127.0.0.1", 0))
        given = RegisterInput(
            type=TYPE,
            group="test",
            server_id=self.owner.server_id,
            private_ip=self.address[0],
            ports={"wire": self.address[1]},
            version=version,
            capacity=capacity,
            labels=labels,
            ttl_seconds=60.0,
        )
        self._given = given
        registered = await self.town.discovery.register(given)
        self.instance_id = registered.instance_id
        self.owner = Owner(self.owner.server_id, registered.life)
        self._beating = asyncio.create_task(self._beat(version, capacity))

    async def register_again(self) -> None:
        """As by a process that was frozen beyond its lease: a new life, which holds nobody of the old one."""
        self.cached.clear()
        again = msgspec.structs.replace(
            self._given, instance_id=self.instance_id, former_life=self.owner.life
        )
        self.owner = Owner(self.owner.server_id, (await self.town.discovery.register(again)).life)

    async def _beat(self, version: str, capacity: int) -> None:
        while not self.town.is_over:
            for partition in range(len(self.town.bindings.partitions)):
                await self.town.bindings.beat(
                    TYPE, self.owner, capacity=capacity, version=version, partition=partition
                )
            await asyncio.sleep(BEAT_S)

    async def die(self) -> None:
        """As by kill -9, and discovery has noticed."""
        await self.stop()
        await self.town.discovery.remove(self.instance_id, cause="crashed")

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        await self.wire.close(0)

    # -- the calls

    async def _move(self, call: Call) -> Answer:
        self.roles.add(call.peer.peer_role)
        type_, move_id, users, target, terms = msgspec.msgpack.decode(call.payload)
        assert type_ == TYPE
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
            parties = {self.cached[user][4] for user in users if user in self.cached} - {""}
            if self.alone_by_force and terms["force"]:
                parties.clear()
            with_them = [
                user for user, known in self.cached.items() if known[4] in parties and known[3] == "now"
            ]
            answers = [
                await self._move_one(user, move_id, Owner(*target[:2]), terms)
                for user in dict.fromkeys((*users, *with_them))
            ]
        finally:
            self.at_once -= 1
        return Answer(encode(answers))

    async def _move_one(
        self, user: str, move_id: str, target: Owner, terms: dict[str, Any]
    ) -> tuple[Any, ...]:
        self.moves.append(user)
        record = await self.town.bindings.read(TYPE, user)
        if record is None or record.owner != self.owner:
            return user, "gone", "", {}, 0
        if (instead := self.judge(user, terms["force"])) is not None:
            return user, *instead, {"retryMs": 50}, record.epoch
        if target.server_id in self.cut_off:
            return user, "returned", f"{target.server_id} cannot be reached", {}, record.epoch
        if user not in self.cached:
            await self.town.bindings.release(TYPE, user, self.owner, record.epoch)
            return user, "released", "", {}, record.epoch
        bindings = self.town.bindings
        frozen = await bindings.freeze(
            TYPE, user, self.owner, record.epoch, move_id, target, ttl_ms=terms["markMs"]
        )
        if not isinstance(frozen, Frozen):
            return user, "returned", "not frozen", {}, record.epoch
        committed = await bindings.commit(TYPE, user, move_id, target, frozen.epoch)
        assert isinstance(committed, Committed)
        self.town.doubles[target.server_id].cached[user] = self.cached.pop(user)
        self.moved[user] += 1
        return user, "moved", "", {"flush": 1.0, "accept": 2.0, "total": 4.0}, frozen.epoch

    async def _survey(self, call: Call) -> Answer:
        type_, cursor, limit = msgspec.msgpack.decode(call.payload)
        assert type_ == TYPE
        page = sorted(user for user in self.cached if user > cursor)[:limit]
        rows = []
        for user in page:
            online, idle_ms, dirty, verdict, note, retry_ms = self.cached[user]
            rows.append((user, int(online), idle_ms, int(dirty), verdict, note, retry_ms))
        return Answer(encode((page[-1] if len(page) == limit else "", rows)))

    async def _retire(self, call: Call) -> Answer:
        self.retired = True
        return Answer(encode(()))

    async def _unretire(self, call: Call) -> Answer:
        self.retired = False
        return Answer(encode(()))


class Town:
    def __init__(self, store: Store, bindings: Bindings, discovery: Discovery) -> None:
        self.store = store
        self.bindings = bindings
        self.discovery = discovery
        self.doubles: dict[str, Double] = {}
        self.is_over = False
        self.drains = self.new_drains()
        self._leading: list[asyncio.Task[None]] = []

    def new_drains(self) -> Drains:
        """A manager's, with connections of its own."""
        return Drains(self.store, self.bindings, self.discovery, WireMovers(lambda: SECRET))

    def lead(self, drains: Drains | None = None) -> asyncio.Task[None]:
        """A manager runs; cancelled it ends cleanly."""
        task = asyncio.create_task((drains or self.drains).lead())
        self._leading.append(task)
        return task

    async def open(
        self, server_id: str, version: str = "1.0", *, capacity: int = 0, labels: dict[str, str] | None = None
    ) -> Double:
        double = Double(self, Owner(server_id, "0"))
        self.doubles[server_id] = double
        await double.start(version, capacity, labels or {})

        async def is_open() -> bool:
            rows = await self.bindings.servers(TYPE)
            return any(row.server_id == server_id and row.open and row.alive for row in rows)

        await eventually(is_open, f"{server_id} to be open")
        return double

    async def settle(self, double: Double, *users: str, online: bool = True, cached: bool = True) -> None:
        """These users live there."""
        for user in users:
            answer = await self.bindings.bind(TYPE, user, double.owner)
            assert isinstance(answer, Placed), answer
            if cached:
                double.cached[user] = (online, 1000, False, "now", "", 0)

    async def owner(self, user: str) -> str:
        record = await self.bindings.read(TYPE, user)
        return record.owner.server_id if record is not None and record.owner is not None else ""

    async def owners(self, users: list[str]) -> Counter[str]:
        return Counter([await self.owner(user) for user in users])

    async def start(self, *servers: str, **more: Any) -> Job:
        return await self.drains.start(DrainRequest(servers=list(servers), **{"rate": 10_000} | more))

    async def becomes(self, job: Job, *states: str, over: bool = False) -> Job:
        """The job, once it is in one of these states."""
        found = job

        async def is_so() -> bool:
            nonlocal found
            found = await self.drains.get(job.id)
            return found.state in states and (found.is_over or not over)

        await eventually(is_so, f"a drain that is {states}", details=lambda: repr(found))
        return found

    async def gate(self, server_id: str) -> Gate:
        given = RegisterInput(type="gate", group="test", server_id=server_id, ttl_seconds=60.0)
        registered = await self.discovery.register(given)
        return Gate(self, gate_name(server_id, registered.life))

    async def close(self) -> None:
        self.is_over = True
        for task in self._leading:
            task.cancel()
        await asyncio.gather(*self._leading, return_exceptions=True)
        for double in self.doubles.values():
            await double.stop()


class Gate:
    """Tells what it counted, as a gate does: at first, and at last when nobody is moved any more."""

    def __init__(self, town: Town, name: str) -> None:
        self.name = name
        self._town = town

    async def tell(self, job: Job, *, final: bool, taken: int = 10, seen: str = "") -> None:
        report = GateReport(gate=self.name, taken=taken, answered=taken, is_final=final, seen=seen)
        await self._town.drains.tell(job.id, self.name, report)


@asynccontextmanager
async def open_town(store: Store, *, partitions: int = 1) -> AsyncIterator[Town]:
    discovery = Discovery(store, 60.0)
    bindings = Bindings(store, BindingSettings(partitions=partitions, slow_start_seconds=0), discovery)
    keepers = [asyncio.create_task(loop) for loop in bindings.loops(("manager",))]
    town = Town(store, bindings, discovery)
    try:
        yield town
    finally:
        await town.close()
        for keeper in keepers:
            keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*keepers, return_exceptions=True)
