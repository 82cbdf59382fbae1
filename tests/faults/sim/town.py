"""One run: entity servers, gates, players, a controller that empties a server, and faults."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.backoff import Backoff
from roost.core.owner import Owner
from roost.servers.entity.session import Session
from roost.store.keys import Keys
from tests.faults.sim.checks import Checks
from tests.faults.sim.loop import NODE, Node, SimLoop
from tests.faults.sim.network import Network
from tests.faults.sim.processes import (
    DURABILITIES,
    TYPE,
    AppendList,
    Controller,
    EntityNode,
    GateNode,
    Player,
    entity_class,
)
from tests.faults.sim.rows import SimDatabase
from tests.faults.sim.storage import TOPOLOGY, SimStore, Valkey

EPOCH_S = 1_700_000_000.0
LEASE_S = 6.0
LONGEST_S = 150.0
"""Virtual time after which somebody who has no answer is stuck."""
LATEST_S = 2.5
"""After which nothing that was held up is on its way any more."""
ACCEPT = (1, 5)


class Plan(NamedTuple):
    """What befalls a run besides what the seed draws."""

    seed: int
    crash: str = ""
    """Who dies: source, target, controller or gate."""
    at_step: int = 0
    """At which of its steps since the first move began."""
    pause: str = ""
    failover: bool = False
    database: float = 0.0
    """Share of calls that go wrong, while users are moved."""
    store: float = 0.0
    cuts: int = 0
    doubles: float = 0.0
    aim: str = ""
    """A verb of store or database whose answers are often lost or late."""
    loses: str = ""
    """A script that a failover loses."""
    holds_up: float = 0.0
    """Share of offers, and of answers to them, that come after the source has gone back."""
    durability: int = -1
    """Which of `DURABILITIES`; -1: drawn."""

    @classmethod
    def drawn(cls, seed: int) -> Plan:
        """A mixture, by the seed."""
        rng = random.Random(seed * 7919 + 1)
        kind = rng.randrange(14)
        who = rng.choice(["source", "target", "controller", "gate"])
        return cls(
            seed,
            crash=who if kind in (0, 1, 2) else "",
            at_step=rng.randrange(1, 160),
            pause=rng.choice(["source", "target"]) if kind in (3, 4) else "",
            failover=kind in (5, 6),
            database=rng.choice([0.0, 0.0, 0.1, 0.25]),
            store=rng.choice([0.0, 0.0, 0.05]),
            cuts=rng.choice([0, 0, 1, 3]),
            doubles=rng.choice([0.0, 0.3]),
            aim=rng.choice(["freeze", "claim", "commit", "renew"]) if kind in (8, 9, 10) else "",
            loses=rng.choice(["freeze", "commit", "commit", "renew"]) if kind in (10, 11, 12) else "",
            holds_up=rng.choice([0.3, 0.6]) if kind in (9, 11, 12, 13) else 0.0,
        )


class Outcome(NamedTuple):
    plan: Plan
    faults: list[str]
    trace: list[str]
    steps: int
    """Callbacks that were run."""
    moves: dict[str, int]
    reached: bool
    """Whether the planned step of the crash came."""
    departed: int
    lengths: dict[str, int]
    """How many steps each that may die made from the first move until the source was empty."""


class Town:
    def __init__(self, plan: Plan, valkey: Valkey, loop: SimLoop) -> None:
        self.plan = plan
        self.valkey = valkey
        self.loop = loop
        self.random = loop.random
        self.trace: list[str] = []
        self.checks = Checks(self)
        self.store = SimStore(Keys())
        self.database = SimDatabase(self.fault, self.latency)
        self.network = Network(self.latency, self._is_doubled, self._held_up)
        pick = plan.durability if plan.durability >= 0 else self.random.randrange(len(DURABILITIES))
        self.entity = entity_class(DURABILITIES[pick])
        AppendList.town = self
        self.entities: dict[str, EntityNode] = {}
        self.everybody: list[Node] = []
        self.gates: list[GateNode] = []
        self.players: list[Player] = []
        self.controllers: list[Controller] = []
        self.failovers = 0
        self.failovers_planned = plan.failover or bool(plan.loses)
        self.was_paused = bool(plan.pause)
        self.moves = 0
        self.is_rough = False
        """Faults of calls happen now."""
        self.is_busy = True
        """Players wait for answers."""
        self.reached = False
        self.lengths: dict[str, int] = {}
        self.departed = 0
        """Servers that were retired and have left."""
        self._lost = 0
        self._lives = 0
        self._news = 0
        self._bindings = self.bindings()

    # -- what processes ask of the world

    def bindings(self) -> Bindings:
        """For one process: what it gathers for the store dies with it."""
        return Bindings(self.store, BindingSettings(slow_start_seconds=0), None)  # type: ignore[arg-type]

    def now_us(self) -> int:
        return int((EPOCH_S + self.loop.now) * 1_000_000)

    def draw(self, most: float) -> float:
        return self.random.random() * most

    def latency(self) -> float:
        drawn = self.random.random()
        return 0.0002 + 0.001 * drawn if drawn < 0.9 else 0.02 * drawn

    def fault(self, node: Node | None, what: str, verb: str) -> str:
        rate = self.plan.database if what == "database" else self.plan.store
        if verb and verb == self.plan.aim and isinstance(node, EntityNode) and self.moves:
            rate = max(rate, 0.4)
        if not self.is_rough or node in (None, self.loop.world) or not rate or self.random.random() >= rate:
            return ""
        verdict = self.random.choice(["unsent", "lost", "late"])
        self.tell(f"a call of {node} to the {what} ({verb}) is {verdict}")
        return verdict

    def _is_doubled(self, service: int, method: int) -> bool:
        return (service, method) == ACCEPT and self.random.random() < self.plan.doubles

    def _held_up(self, service: int, method: int) -> float:
        if (service, method) != ACCEPT or not self.is_rough or self.random.random() >= self.plan.holds_up:
            return 0.0
        self.tell("an offer, or the answer to one, is held up")
        return 0.2 + self.draw(1.2)

    def asked(self, verb: str) -> None:
        """Before it is done: a failover soon after may lose it."""
        if (
            verb != self.plan.loses
            or not verb
            or not self.is_rough
            or self._lost >= 3
            or self.random.random() < 0.4
        ):
            return
        self._lost += 1
        self.tell(f"what is asked from now on ({verb}) does not reach the replica")
        kept, world = self.valkey.snapshot(), self.loop.world.context
        self.loop.call_later(
            self.draw(self.random.choice([0.003, 0.03, 0.3])), self._failed_over, kept, context=world
        )

    def _failed_over(self, kept: dict[bytes, tuple[bytes, int]]) -> None:
        self.valkey.restore(kept)
        self.failovers += 1
        self.tell("the store fails over and loses its last writes")

    def session(self, user: str, node: Node) -> Session | None:
        return node.host.sessions.get(user) if isinstance(node, EntityNode) else None

    def is_up(self, owner: Owner) -> bool:
        node = self.entities.get(owner.server_id)
        return node is not None and node.alive and node.owner == owner

    def has_lapsed(self, node: Node) -> bool:
        return isinstance(node, EntityNode) and not node.host.residence.is_held(0)

    def tell(self, what: str) -> None:
        node = NODE.get()
        self.trace.append(f"{self.loop.now - 1000:8.3f} {node.name if node else 'world':>13}  {what}")

    # -- the run

    async def run(self) -> None:
        for server_id in ("501", "502", "503")[: 2 + self.random.randrange(2)]:
            await self.open(server_id, is_open=server_id == "501")
        for number in (1, 2):
            gate = GateNode(self, number)
            self._start(gate, gate.start)
            self.gates.append(gate)
        await asyncio.sleep(0.5)
        self._play()
        await asyncio.sleep(0.7)
        source, targets = self.entities["501"], [n for id_, n in self.entities.items() if id_ != "501"]
        await self.show(source, "0")
        for target in targets:
            await self.show(target, "1")
        await self._drain(source, targets)
        await self._quiet()

    def _start(self, node: Node, start: Callable[..., None], *args: Any) -> None:
        self.loop.add(node)
        self.everybody.append(node)
        self.loop.call_soon(start, *args, context=node.context)

    async def open(self, server_id: str, *, is_open: bool = True) -> EntityNode:
        self._lives += 1
        node = EntityNode(self, server_id, self._lives)
        self.entities[server_id] = node
        self._start(node, node.start)
        await self.show(node, "1" if is_open else "0")
        for gate in self.gates:
            if gate.alive:
                gate.learn()
        return node

    async def show(self, node: EntityNode, state: str) -> None:
        """The leader has heard of this life, and whether it takes new users."""
        partition = self._bindings.partitions[0]
        self.valkey.command(
            "HSET", self.store.keys.leader(partition.scope), "holder", "m", "epoch", 1, "until_ms", 0
        )
        self._news += 1
        rows = [node.owner.server_id, node.owner.life, state]
        await partition.scripts.sync(
            holder="m", epoch="1", type=TYPE, number=self._news, full=0, max_step_ms=2000, rows=rows
        )

    def _play(self) -> None:
        for number in range(2 + self.random.randrange(3)):
            player = Player(self, f"u{number}", 10 + self.random.randrange(8))
            self.players.append(player)
            gate = self.gates[number % 2]
            self.loop.call_soon(gate.serve, player, context=gate.context)
            self.loop.spawn(self._sends(player))

    async def _sends(self, player: Player) -> None:
        for number in list(player.unanswered):
            while len(player.sent) >= 4:
                await asyncio.sleep(0.02)
            await asyncio.sleep(self.draw(0.25))
            gate = player.gate
            assert gate is not None
            player.sent[number] = None
            if gate.alive:
                self.loop.call_soon(player.send, number, context=gate.context)

    async def _drain(self, source: EntityNode, targets: list[EntityNode]) -> None:
        self.source, self.targets = source, targets
        self.is_rough = True
        self._direct()
        if self.plan.failover:
            self.loop.spawn(self._fails_over())
        if self.plan.pause:
            self.loop.spawn(self._pauses())
        for _ in range(self.plan.cuts):
            self.loop.spawn(self._cuts())
        deadline = self.loop.now + LONGEST_S
        while self.loop.now < deadline and any(player.unanswered for player in self.players):
            await asyncio.sleep(0.1)
            if self.loop.now > 1012.0:
                self.is_rough = False

    def _direct(self) -> None:
        controller = Controller(self, len(self.controllers) + 1)
        self.controllers.append(controller)
        self._start(controller, controller.start, self.source, self.targets)

    async def _quiet(self) -> None:
        """Faults are over: everybody writes what they have, marks end."""
        self.is_rough = self.is_busy = False
        await asyncio.sleep(LATEST_S)
        deadline = self.loop.now + LEASE_S
        while self.loop.now < deadline and not all(node.is_quiet for node in self.entities.values()):
            await asyncio.sleep(0.25)
        for player in self.players:
            for _ in range(20):
                found = await self._bindings.resolve(TYPE, player.user)
                if type(found).__name__ != "Moving":
                    break
                await asyncio.sleep(0.5)
        await asyncio.sleep(2.0)

    # -- faults

    def began_move(self, controller: Controller) -> None:
        """The first move begins: from here on the steps of who shall die are counted."""
        if self.moves != 1:
            return
        plan, mortals = self.plan, self._mortals(controller)
        self._began = {who: node.steps for who, node in mortals.items()}
        if plan.crash:
            victim = mortals[plan.crash]
            victim.at_step = (victim.steps + plan.at_step, lambda: self._crash(victim))

    def emptied(self, controller: Controller) -> None:
        """Nobody is at the source any more."""
        if controller is self.controllers[0] and self.moves:
            mortals = self._mortals(controller)
            self.lengths = {who: node.steps - self._began[who] for who, node in mortals.items()}

    def _mortals(self, controller: Controller) -> dict[str, Node]:
        return {
            "source": self.source,
            "target": self.targets[0],
            "controller": controller,
            "gate": self.gates[0],
        }

    def leaves(self, node: EntityNode) -> None:
        """It was retired, and ends."""
        self.tell(f"{node} leaves")
        self.departed += 1
        self.loop.crash(node)
        self.network.lose(node)

    def _crash(self, node: Node) -> None:
        self.reached = True
        self.tell(f"{node} dies")
        if isinstance(node, EntityNode):
            self.checks.spare(node)
        self.loop.crash(node)
        self.network.lose(node)
        self.loop.call_later(0.5 + self.draw(6.0), self._again, node, context=self.loop.world.context)

    async def _opens_again(self, server_id: str) -> None:
        await self.open(server_id)

    def _again(self, node: Node) -> None:
        """Somebody starts another."""
        if isinstance(node, EntityNode):
            self.loop.spawn(self._opens_again(node.owner.server_id))
        elif isinstance(node, GateNode):
            other = self.gates[1]
            for player in node.clients.values():
                self.loop.call_soon(other.serve, player, context=other.context)
        else:
            self._direct()

    async def _pauses(self) -> None:
        await asyncio.sleep(self.draw(0.5))
        node = self.source if self.plan.pause == "source" else self.targets[0]
        self.tell(f"{node} is paused for longer than its lease")
        self.checks.spare(node)
        node.paused_until = self.loop.now + LEASE_S + self.draw(self.random.choice([0.5, 3.0]))
        self.loop.call_later(self.draw(LEASE_S), self._notice, node, context=self.loop.world.context)

    def _notice(self, node: Node) -> None:
        """Those who are connected with a server that hangs give the connection up."""
        for peer in self.network.peers:
            if peer.node.alive and peer.goes_to(node):
                self.loop.call_soon(peer.cut, "it hangs", context=peer.node.context)

    async def _fails_over(self) -> None:
        """A replica that is behind becomes the primary."""
        for _ in range(1 + self.random.randrange(2)):
            await asyncio.sleep(self.draw(0.6))
            kept = self.valkey.snapshot()
            await asyncio.sleep(self.draw(0.15))
            self._failed_over(kept)

    async def _cuts(self) -> None:
        await asyncio.sleep(self.draw(0.8))
        peers = [peer for peer in self.network.peers if peer.node.alive and peer.link is not None]
        if peers:
            peer = peers[self.random.randrange(len(peers))]
            self.tell(f"the connection of {peer.node} to {peer.address[0]} is cut")
            self.loop.call_soon(peer.cut, "cut", context=peer.node.context)


def play(plan: Plan, valkey: Valkey) -> Outcome:
    """One run, the same each time."""
    valkey.command("FLUSHALL")
    loop = SimLoop(plan.seed)
    with _virtual(loop, plan.seed):
        town: list[Town] = []

        async def main() -> None:
            town.append(Town(plan, valkey, loop))
            one = town[0]
            TOPOLOGY.begin(valkey, one.fault, one.latency, one.now_us, one.asked)
            await town[0].run()

        loop.run_until_complete(main())
        one = town.pop()
        faults = one.checks.judge() + loop.raised
        outcome = Outcome(
            plan,
            faults,
            one.trace,
            loop.steps,
            dict(one.checks.outcomes),
            one.reached,
            one.departed,
            one.lengths,
        )
        loop.close()
        del one, main
    return outcome


@contextmanager
def _virtual(loop: SimLoop, seed: int) -> Iterator[None]:
    """Time is the loop's, chance is the seed's; what dead processes leave behind is nobody's concern."""
    kept = (time.monotonic, time.time, sys.unraisablehook, Backoff.next, random.getstate())
    time.monotonic, time.time = loop.time, lambda: EPOCH_S + loop.now
    sys.unraisablehook = lambda _: None
    Backoff.next = _next  # type: ignore[method-assign]
    random.seed(seed)
    gc.freeze()
    gc.disable()
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
            del AppendList.town
            TOPOLOGY.end()
            gc.collect()  # of coroutines that never end: here, where nobody minds
    finally:
        time.monotonic, time.time, sys.unraisablehook = kept[:3]
        Backoff.next = kept[3]  # type: ignore[method-assign]
        random.setstate(kept[4])
        gc.unfreeze()
        gc.enable()
        logging.disable(logging.NOTSET)


def _next(self: Backoff) -> float:
    ceiling = min(self.cap_s, self.base_s * 2.0 ** min(self._attempt, 32))
    self._attempt += 1
    return ceiling * random.uniform(0.5, 1.0)
