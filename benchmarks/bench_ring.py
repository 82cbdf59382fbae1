"""How fast are our two consistent hashes beside uhashring: lookup, add, remove, many nodes, memory?"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

from report import Case, Figure, need, publish, result_file
from roost.balancing import ConsistentHash, HashRing

try:
    from uhashring import HashRing as TheirRing
except ImportError:
    need("uhashring")

ROUNDS = 5
ROUND_S = 0.25
NODES = 100
MANY_NODES = 10_000
NEWCOMER = "server-new"
KEYS = [f"user:{n}" for n in range(100_000)]
LOOKUP_PROMISED, LOOKUP_MOST_US = {"uhashring": 3.0}, 1.0
CHANGE_PROMISED, CHANGE_MOST_US = {"uhashring": 10.0}, 1_000.0

METHOD = (
    f"One process, one thread. A lookup is get_node of {len(KEYS):,} different keys in turn, with the loop "
    f"around it. Add and remove take turns, each timed alone: one more node beside {NODES}. "
    f"Contenders take turns within each of {ROUNDS} rounds of {ROUND_S:g} s; in a round the median of its "
    f"passes counts for add and remove, in the end the median of rounds. uhashring: HashRing(nodes), as its "
    f"documentation has it, 160 points for a node. HashRing: 150 points, as document 000 has it. Weights are "
    f"equal. Memory is what tracemalloc sees to be kept; numpy reports its arrays to it. "
    f"With {MANY_NODES:,} nodes ours are measured alone."
)

Made = Any
"""HashRing, ConsistentHash or theirs: the verbs have the same names."""

OURS: dict[str, Callable[[list[str]], Made]] = {"HashRing": HashRing, "ConsistentHash": ConsistentHash}


def names_of(count: int) -> list[str]:
    return [f"server{n}" for n in range(count)]


def lookups_per_second(made: Made) -> float:
    get_node = made.get_node
    done, started = 0, time.perf_counter()
    while (took := time.perf_counter() - started) < ROUND_S:
        first = done % len(KEYS)
        some = KEYS[first : first + 1_000]
        for key in some:
            get_node(key)
        done += len(some)
    return done / took


def changes_per_second(made: Made) -> tuple[float, float]:
    """Adds and removes, each by the median of its passes."""
    adds: list[float] = []
    removes: list[float] = []
    until = time.perf_counter() + ROUND_S
    while not adds or time.perf_counter() < until:
        started = time.perf_counter()
        made.add_node(NEWCOMER)
        added = time.perf_counter()
        made.remove_node(NEWCOMER)
        removed = time.perf_counter()
        adds.append(added - started)
        removes.append(removed - added)
    return 1 / median(adds), 1 / median(removes)


def beside_them(kind: str) -> list[Case | Figure]:
    """Ours beside uhashring among 100 nodes: the promises."""
    lookup, add, remove = (
        Case(f"{kind}: lookup", LOOKUP_PROMISED),
        Case(f"{kind}: add a node", CHANGE_PROMISED),
        Case(f"{kind}: remove a node", CHANGE_PROMISED),
    )
    names = names_of(NODES)
    contenders: dict[str, Made] = {"ours": OURS[kind](names), "uhashring": TheirRing(nodes=names)}
    for made in contenders.values():
        changes_per_second(made)
    for number in range(1, ROUNDS + 1):
        print(f"{kind}: round {number} of {ROUNDS}", flush=True)
        for name, made in contenders.items():
            lookup.add(name, lookups_per_second(made))
            added, removed = changes_per_second(made)
            add.add(name, added)
            remove.add(name, removed)
    return [
        *(lookup, add, remove),
        in_us(lookup, LOOKUP_MOST_US),
        in_us(add, CHANGE_MOST_US),
        in_us(remove, CHANGE_MOST_US),
    ]


def in_us(case: Case, most: float) -> Figure:
    return Figure(case.name, "µs", [1e6 / rate for rate in case.ours], most)


def among_many(kind: str) -> list[Case | Figure]:
    made = OURS[kind](names_of(MANY_NODES))
    lookups = [1e6 / lookups_per_second(made) for _ in range(ROUNDS)]
    changes = [changes_per_second(made) for _ in range(ROUNDS)]
    return [
        Figure(f"{kind}: lookup, {MANY_NODES:,} nodes", "µs", lookups),
        Figure(f"{kind}: add, {MANY_NODES:,} nodes", "µs", [1e6 / add for add, _ in changes]),
        Figure(f"{kind}: remove, {MANY_NODES:,} nodes", "µs", [1e6 / remove for _, remove in changes]),
    ]


def at_once() -> list[Figure]:
    """A batch of all keys."""
    ring, table = HashRing(names_of(NODES)), ConsistentHash(names_of(NODES))
    ways: dict[str, Callable[[], object]] = {
        "HashRing: distribution": lambda: ring.distribution(KEYS),
        "ConsistentHash: distribution": lambda: table.distribution(KEYS),
        "ConsistentHash: get_node_of_each": lambda: table.get_node_of_each(KEYS),
    }
    return [
        Figure(f"{name}, {len(KEYS):,} keys", "ms", [1e3 * seconds(once) for _ in range(ROUNDS)])
        for name, once in ways.items()
    ]


def seconds(once: Callable[[], object]) -> float:
    started = time.perf_counter()
    once()
    return time.perf_counter() - started


def memory() -> list[Figure]:
    makers = {**OURS, "uhashring": lambda names: TheirRing(nodes=names)}
    return [
        Figure(f"{name}: memory, {count:,} nodes", "KiB", [kib_of(make, names_of(count))])
        for count in (NODES, MANY_NODES)
        for name, make in makers.items()
        if count == NODES or name in OURS
    ]


def kib_of(make: Callable[[list[str]], Made], names: list[str]) -> float:
    """What stays allocated for it, without the names."""
    gc.collect()
    tracemalloc.start()
    made = make(names)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return held / 1024


if __name__ == "__main__":
    path = result_file()
    found: list[Case | Figure] = [row for kind in OURS for row in beside_them(kind)]
    found += [row for kind in OURS for row in among_many(kind)]
    found += [*at_once(), *memory()]
    sys.exit(publish("ring", "calls per second unless another unit is named", METHOD, found, path))
