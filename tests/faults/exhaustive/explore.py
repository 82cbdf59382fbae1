"""Breadth first through every interleaving; what must hold is looked at in each state."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.faults.exhaustive import weather
from tests.faults.exhaustive.rules import ALL, Rules
from tests.faults.exhaustive.state import Gate, Record, Row, Server, World

Judge = Callable[[World], str]


KINDS = frozenset({"crash", "gate", "pause", "store", "database", "wire", "failover", "idle"})
"""Of faults; each costs one. `crash` is a server's; `idle` is a release, which is none, but as rare."""


class Bounds(NamedTuple):
    servers: int = 2
    ops: int = 2
    moves: int = 1
    faults: int = 2
    kinds: frozenset[str] = KINDS
    states: int = 1_000_000
    """No further than this."""


@dataclass
class Found:
    """What an exploration came to."""

    states: int
    depth: int
    complete: bool
    fault: str = ""
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        size = f"{self.states} states, depth {self.depth}{'' if self.complete else ', not complete'}"
        if not self.fault:
            return f"holds: {size}"
        told = "\n".join(f"  {number:2}. {line}" for number, line in enumerate(self.story, 1))
        return f"{self.fault} ({size})\n{told}"


def start(bounds: Bounds) -> World:
    """The user is at A under epoch 1, written, and the gate knows it."""
    names = [chr(65 + number) for number in range(bounds.servers)]
    first = Server("A", is_open=True, epoch=1, current=True, rev=1)
    servers = (first, *(Server(name) for name in names[1:]))
    record = Record("A", 1, 0, "A", seats="A")
    gate = Gate("A", 1, "u" * bounds.ops)
    world = World(servers, record, Row("A", 1, 1, ()), gate, bounds.moves, bounds.faults)
    world.kinds = bounds.kinds
    return world


def fault_of(world: World) -> str:
    """Which invariant does not hold; empty if all do."""
    if world.row.stray:
        return f"I3: a write under {world.row.stray} changed the row at {world.row.e}"
    serving = list(world.serving())
    if len(serving) > 1:
        return f"I1: {' and '.join(one.name for one in serving)} serve at once"
    for one in serving:
        if fault := _memory_fault(world, one):
            return fault
    record = world.record
    held = {record.s, record.d} - {""}
    if set(record.seats) != held:
        return f"I5: seats at {record.seats or 'none'}, held by {''.join(sorted(held)) or 'nobody'}"
    return ""


def _memory_fault(world: World, server: Server) -> str:
    ops = server.ops
    if len(set(ops)) < len(ops):
        return f"I2: an operation was executed twice: {ops}"
    if list(ops) != sorted(ops):
        return f"I2: operations are out of order: {ops}"
    answered = {number for number, letter in enumerate(world.gate.state, 1) if letter == "d"}
    lost = answered - set(ops) - world.spared
    if lost:
        return f"I2 I3 I7: operation {min(lost)} was acknowledged and {server.name} serves without it"
    return ""


def is_settled(world: World) -> bool:
    """Everything is answered, nobody is on the move, somebody can go on, and the map names whoever serves,
    under their epoch or a later one."""
    record = world.record
    if set(world.gate.state) != {"d"} or record.st == "M":
        return False
    return all(one.name == record.s and one.epoch <= record.e for one in world.serving())


class Explorer:
    def __init__(self, bounds: Bounds, rules: Rules = ALL) -> None:
        self._bounds = bounds
        self._rules = rules
        self._index: dict[tuple[Any, ...], int] = {}
        self._from = array("q", [-1])
        self._said: list[str] = [""]
        self._edges_from, self._edges_to = array("q"), array("q")
        """Steps that are no fault: by them everything must come to an end."""
        self._settled = bytearray()

    def run(self) -> Found:
        was_on = gc.isenabled()
        gc.disable()  # it would look at every world again and again, and free nothing
        try:
            return self._run()
        finally:
            if was_on:
                gc.enable()

    def _run(self) -> Found:
        first = start(self._bounds)
        self._index[first.key()] = 0
        self._settled.append(is_settled(first))
        layer, depth = [(0, first)], 0
        while layer:
            following: list[tuple[int, World]] = []
            for at, world in layer:
                for fault, number, after in self._expand(at, world):
                    if fault:
                        return Found(len(self._said), depth + 1, False, fault, self._story(number))
                    following.append((number, after))
                if len(self._said) >= self._bounds.states:
                    return Found(len(self._said), depth, False)
            layer, depth = following, depth + (1 if following else 0)
        return self._judge_ends(depth)

    def _expand(self, at: int, world: World) -> Iterator[tuple[str, int, World]]:
        for said, after, kind in weather.steps(world, self._rules):
            if kind:
                after = after.copy()
                after.faults -= 1
                if not after.faults:
                    after.history = ()
            key = after.key()
            number = self._index.get(key)
            is_new = number is None
            if number is None:
                number = self._index[key] = len(self._said)
                self._from.append(at)
                self._said.append(said)
                self._settled.append(is_settled(after))
            if not kind:
                self._edges_from.append(at)
                self._edges_to.append(number)
            if is_new:
                yield fault_of(after), number, after

    def _story(self, number: int) -> list[str]:
        told: list[str] = []
        while number > 0:
            told.append(self._said[number])
            number = self._from[number]
        return told[::-1]

    def _judge_ends(self, depth: int) -> Found:
        """From every state there is a way to the end without another fault (I4)."""
        count = len(self._said)
        backwards: list[list[int]] = [[] for _ in range(count)]
        for a, b in zip(self._edges_from, self._edges_to, strict=True):
            backwards[b].append(a)
        reached = bytearray(self._settled)
        todo = [number for number in range(count) if reached[number]]
        while todo:
            for before in backwards[todo.pop()]:
                if not reached[before]:
                    reached[before] = 1
                    todo.append(before)
        stuck = reached.find(0)
        if stuck < 0:
            return Found(count, depth, True)
        return Found(
            count, depth, True, "I4: the user is stuck, or the map wrong, for ever", self._story(stuck)
        )
