"""The processes: entity servers and gates of the real code, a controller, players."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from roost.api.discovery import Change, Instance
from roost.binding.model import BindingChange
from roost.binding.service import Bindings
from roost.core.errors import RoostError
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.sdk.entity import Durability, Entity, Journal, WriteBack, WriteThrough
from roost.sdk.entity import Message as EntityMessage
from roost.servers.entity.beating import Beating
from roost.servers.entity.host import Host
from roost.servers.entity.lease import Lease
from roost.servers.entity.retiring import Retiring
from roost.servers.entity.settings import EntitySettings
from roost.servers.gate.carrier import Carrier, Services
from roost.servers.gate.finder import Finder, route_of
from roost.servers.gate.peers import Peers, Server
from roost.servers.gate.queued import LaneCounts, LaneLimits, Message, Refusal, Room, Terms
from roost.store.feed import parse_entry
from roost.wire.pool import Pool
from tests.faults.sim.loop import NODE, Node
from tests.faults.sim.network import SimPeer, SimServer

if TYPE_CHECKING:
    from tests.faults.sim.town import Town

TYPE = "entity"
WIRE_PORT = 7000
MANAGER = "manager"
RETIRE = (1, 8)
QUIET_MS = 500


class AppendList(Entity):
    """Every message is appended; the answer is how many there are. Whatever is wrong shows in the list."""

    town: ClassVar[Town]

    def __init__(self) -> None:
        self.list: list[int] = []

    async def load(self, state: bytes | None) -> None:
        await asyncio.sleep(self.town.draw(0.001))
        self.list = msgspec.msgpack.decode(state, type=list[int]) if state is not None else []

    def save(self) -> bytes:
        return msgspec.msgpack.encode(self.list)

    async def handle(self, message: EntityMessage) -> object:
        with self.town.checks.executes(self.user, NODE.get(), replayed=message.replayed):
            await asyncio.sleep(self.town.draw(0.002))
            self.list.append(message.body)
        self.push(message.body)
        return len(self.list)


def entity_class(durability: Durability) -> type[AppendList]:
    return type("Listed", (AppendList,), {"durability": durability})


DURABILITIES: list[Durability] = [WriteBack(ms=300), WriteBack(ms=300), WriteThrough(), Journal(ms=300)]


class EntityNode(Node):
    """An entity server in one of its lives."""

    def __init__(self, town: Town, server_id: str, life: int) -> None:
        super().__init__(f"{server_id}/{life}")
        self.town = town
        self.owner = Owner(server_id, str(life))
        self.address = (server_id, WIRE_PORT)
        self.host: Host
        self.left = False

    def start(self) -> None:
        """Inside the loop, in the context of this process."""
        town, settings = (
            self.town,
            replace(EntitySettings(), idle_seconds=3600, stall_ms=1000, handle_ms=60_000),
        )
        leases = [Lease(town.loop.time)]
        bindings = town.bindings()
        beating = Beating(TYPE, lambda: self.owner, leases, settings.capacity, "1.0", town.loop.time)
        host = self.host = Host(
            town.entity,
            TYPE,
            "1.0",
            settings,
            bindings,
            town.database,  # type: ignore[arg-type]
            leases,
            lambda: self.owner,
        )
        host.retiring = Retiring(host, town.loop.time)
        host.retiring.leave = self._leave
        host.healer.connections = lambda: town.failovers + 1
        host.healer.beat = lambda: beating.beat(bindings)
        host.mover.peers = Pool(lambda id_, port: SimPeer(town.network, self, (id_, port), "entity"))  # type: ignore[arg-type,return-value]
        server = SimServer(self)
        host.serve(server)  # type: ignore[arg-type]
        town.network.servers[self.address] = server
        self.tasks = [town.loop.spawn(loop) for loop in host.loops(Loops())]
        self.tasks.append(town.loop.spawn(self._beat(beating, bindings)))

    def _leave(self) -> None:
        self.left = True
        self.town.checks.leaves(self)
        self.town.leaves(self)

    async def _beat(self, beating: Beating, bindings: Bindings) -> None:
        while True:
            beating.ticked_at = self.town.loop.time()
            try:
                await beating.beat(bindings)
            except (RoostError, TimeoutError):
                await asyncio.sleep(bindings.settings.beat_ms / 5000)
            else:
                await asyncio.sleep(bindings.settings.beat_ms / 1000)

    @property
    def is_quiet(self) -> bool:
        """Dead; or awake with nothing to write, to move or to wait for."""
        if not self.alive:
            return True
        host, is_awake = self.host, self.paused_until <= self.town.loop.now
        is_clean = not any(session.unsaved.is_dirty for session in host.sessions.values())
        return is_awake and is_clean and not host.mover.under_way and not host.retiring.is_on

    def would_serve(self, user: str) -> bool:
        session, residence = self.host.sessions.get(user), self.host.residence
        if session is None or not session.is_open:
            return False
        return residence.is_held(session.partition) and residence.is_current(session)

    def unwritten(self) -> dict[str, set[int]]:
        """What would be lost if it died now."""
        rows, lost = self.town.database.rows, dict[str, set[int]]()
        for user, session in self.host.sessions.items():
            row = rows.get(user)
            kept = msgspec.msgpack.decode(row.state) if row is not None and row.state is not None else []
            assert isinstance(session.entity, AppendList)
            lost[user] = set(session.entity.list) - set(kept)
        return lost


def instance_of(node: EntityNode) -> Instance:
    """As discovery shows it."""
    server_id, life = node.owner
    return Instance(
        type=TYPE,
        group="main",
        instance_id=f"{server_id}-{life}",
        server_id=server_id,
        life=life,
        status="ready",
        accepting=True,
        last_heartbeat="",
        hostname=node.address[0],
        ports={"wire": node.address[1]},
    )


class GateNode(Node):
    """A gate: its lanes, its finder, its follower of the feed."""

    def __init__(self, town: Town, number: int) -> None:
        super().__init__(f"gate-{number}")
        self.town = town
        self.number = number
        self.clients: dict[str, Player] = {}
        self.counts = LaneCounts()

    def start(self) -> None:
        self.bindings = self.town.bindings()
        self.peers = Peers(self._dial)
        self.finder = Finder(self.bindings, self.peers)
        limits = LaneLimits(wait_s=30.0, timeout_s=60.0)
        terms = Terms(limits, Room(10_000, 10_000_000), self.counts, self.town.loop.time)
        self.services = Services(self.finder, self.peers, terms)
        self.learn()
        self.tasks = [self.town.loop.spawn(work) for work in (self._follow(), self._expire())]

    def learn(self) -> None:
        """Discovery tells which servers there are."""
        instances = [instance_of(node) for node in self.town.entities.values()]
        self.peers.apply(TYPE, Change("snapshot", 1, "1", instances=instances))

    def _dial(self, server: Server) -> SimPeer:
        return SimPeer(self.town.network, self, server.address, "gate", self._pushed, server.lost)

    def _pushed(self, frame: Any) -> None:
        """As `Session.pushed` judges it."""
        if frame.method != 1:
            return
        user = msgspec.msgpack.decode(frame.payload)[1]
        client = self.clients.get(user)
        if client is not None and frame.epoch >= client.carrier.lane.epoch:
            client.carrier.lane.epoch = frame.epoch
            client.told(frame.epoch)

    async def _follow(self) -> None:
        """The feed, by polling; after a failover whatever was known is forgotten."""
        after, failovers = "0-0", 0
        key = self.town.store.keys.feed(self.bindings.partitions[0].scope)
        while True:
            await asyncio.sleep(self.town.draw(0.06) if self.town.is_busy else 1.0)
            try:
                if self.town.failovers != failovers:
                    failovers, after = self.town.failovers, "0-0"
                    self.finder.forget_all()
                    self.finder.verify([one.carrier.lane for one in self.clients.values()])
                found = await self.town.store.call("XRANGE", key, f"({after}", "+", key=key, idempotent=True)
            except RoostError:
                continue
            for raw in found:
                after = raw[0].decode()
                change = BindingChange.of(parse_entry(raw))
                self.finder.changed(change)
                if (client := self.clients.get(change.user)) is not None:
                    client.carrier.lane.changed(route_of(change))

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            for client in list(self.clients.values()):
                client.carrier.lane.expire()

    def serve(self, player: Player) -> None:
        self.clients[player.user] = player
        player.enter(self)


class OrderedCarrier(Carrier):
    """Those of a server are kept in a set: its order must not depend on where they are in memory."""

    def __hash__(self) -> int:
        return hash((int(self.client.user[1:]), int(self.client.session_id[:6])))


class Player:
    """A user who sends numbers, a few at once, and does not rest before each is answered."""

    def __init__(self, town: Town, user: str, count: int) -> None:
        self.town = town
        self.user = user
        self.session_id = ""
        self.results: dict[int, int] = {}
        """What was answered, by number."""
        self.unanswered: dict[int, None] = dict.fromkeys(range(1, count + 1))
        self.sent: dict[int, None] = {}
        self.epochs: list[int] = []
        self.carrier: Carrier
        self.gate: GateNode | None = None
        self.entries = 0

    # -- what a carrier asks of a client

    is_connected = True
    traceparent: bytes | None = None

    def context(self) -> dict[str, Any]:
        return {"nickname": self.user}

    def gone(self, reason: str) -> None:
        self.town.checks.fault(f"I11: {self.user} was disconnected: {reason}")

    def taken_over(self, reason: str) -> None:
        self.town.checks.fault(f"I11: {self.user} was taken over: {reason}")

    def greeted(self, carrier: Carrier) -> None:
        pass

    def looking(self, carrier: Carrier) -> None:
        pass

    def deliver(self, carrier: Carrier, message: Message, payload: bytes, epoch: int) -> None:
        assert isinstance(message.id, int)
        self.sent.pop(message.id, None)
        if message.id in self.results:
            self.town.checks.fault(f"{self.user}: {message.id} was answered twice")
        self.results[message.id] = msgspec.msgpack.decode(payload)[0]
        self.unanswered.pop(message.id, None)
        self.town.tell(f"{self.user} has the answer to {message.id}: {self.results[message.id]}")

    def refuse(self, carrier: Carrier, message: Message, refusal: Refusal) -> None:
        self.town.checks.fault(f"I8: {self.user}: {message.id} was refused: {refusal}")

    def told(self, epoch: int) -> None:
        if self.epochs and epoch < self.epochs[-1]:
            self.town.checks.fault(f"I12: {self.user} was told something of {epoch} after {self.epochs[-1]}")
        self.epochs.append(epoch)

    # -- its own side

    def enter(self, gate: GateNode) -> None:
        """Log in there; what was not answered is sent again under the same numbers."""
        self.entries += 1
        self.session_id = f"{self.entries:06}-{self.user}"
        self.gate = gate
        self.carrier = OrderedCarrier(self, TYPE, gate.services, resumed=self.entries > 1)
        for number in list(self.sent):
            self.send(number)

    def send(self, number: int) -> None:
        """At the gate; what was answered meanwhile is done."""
        if number not in self.unanswered:
            return
        payload = msgspec.msgpack.encode((TYPE, self.user, self.session_id, number))
        refusal = self.carrier.lane.take(Message(number, number, payload))
        if refusal is not None:
            self.town.checks.fault(f"I8: {self.user}: {number} was not taken: {refusal}")


class Controller(Node):
    """Empties servers: asks the source for each user until nobody is bound there."""

    def __init__(self, town: Town, number: int) -> None:
        super().__init__(f"controller-{number}")
        self.town = town
        self.reports: list[tuple[Any, ...]] = []
        self.done: Callable[[], None] = lambda: None

    def start(self, source: EntityNode, targets: list[EntityNode]) -> None:
        self.tasks = [self.town.loop.spawn(self._drain(source, targets))]

    async def _drain(self, source: EntityNode, targets: list[EntityNode]) -> None:
        town, bindings, number = self.town, self.town.bindings(), 0
        peer = SimPeer(town.network, self, source.address, MANAGER)
        while source.alive:
            with contextlib.suppress(RoostError, TimeoutError):
                users = await bindings.binders(TYPE, source.owner, "", 100)
                held = [user for user in users if (await self._is_at(bindings, user, source))]
                if not held:
                    town.emptied(self)
                    await peer.call(*RETIRE, msgspec.msgpack.encode((TYPE, QUIET_MS)), budget_ms=1000)
                    break
                to = targets[number % len(targets)]
                number += 1
                if to.alive:
                    await self._move(peer, held[: 1 + number % 3], to)
            await asyncio.sleep(town.draw(0.05))
        self.done()

    async def _is_at(self, bindings: Bindings, user: str, node: EntityNode) -> bool:
        record = await bindings.read(TYPE, user)
        return record is not None and record.owner == node.owner

    async def _move(self, peer: SimPeer, users: list[str], to: EntityNode) -> None:
        town = self.town
        town.moves += 1
        terms = {"maxBlockMs": 500, "quiesceMs": 1000, "markMs": 3000, "force": True}
        target = [to.owner.server_id, to.owner.life, *to.address]
        payload = msgspec.msgpack.encode([TYPE, f"m{town.moves}", users, target, terms])
        town.began_move(self)
        answer = await peer.call(1, 4, payload, budget_ms=2500)
        if not answer.code:
            for user, outcome, why, phases, epoch in msgspec.msgpack.decode(answer.payload):
                self.reports.append((user, outcome, why, phases, epoch))
                town.tell(f"the move of {user} to {to}: {outcome} {why}")
                town.checks.moved(outcome, phases)
