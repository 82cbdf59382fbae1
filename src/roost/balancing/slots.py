"""The default consistent hash: 65 536 slots, each owned by the node that scores highest for it.

A key is hashed to a slot, a slot belongs to the node with the highest random weight (rendezvous). So the
spread does not depend on luck with points (G5), a lookup is one hash and two look-ups in a table, and a
node that comes or goes moves exactly its own share. Scores are whole numbers where all weights are equal,
so every process and machine agrees; unequal weights need the logarithm of weighted rendezvous.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from roost.balancing.ring import DEFAULT_WEIGHT, Array, check_node

SLOTS = 65_536
_MASK = SLOTS - 1

_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BUILD_ANEW_SHARE = 0.5
"""Share of the nodes that changes at once from which on it is cheaper to build all of it."""
_AT_ONCE = 16_384
"""Scores made at a time: these fit the cache, and a heavy node that leaves thousands needs no gigabytes."""


def _stirred(z: Array) -> Array:
    """The first step of splitmix64. It is linear over xor, so slots and nodes take it apart, in advance."""
    return z ^ (z >> np.uint64(30))


_SEEDS: Array = _stirred(np.arange(1, SLOTS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))


class Table(NamedTuple):
    """One state: the owner of each slot by its place in `names`, and the score that made it the owner."""

    names: tuple[str, ...]
    """In name order; only nodes that may own a slot."""
    weights: dict[str, int]
    starts: Array
    """The hash of each of `names`, stirred."""
    owners: Array
    scores: Array
    lookup: Any
    """`owners` as a memoryview, which gives a plain int for a plain index."""


def _table(
    names: tuple[str, ...], weights: dict[str, int], starts: Array, owners: Array, scores: Array
) -> Table:
    return Table(names, weights, starts, owners, scores, memoryview(owners))


_NOBODY = _table((), {}, np.zeros(0, np.uint64), np.zeros(0, np.uint16), np.zeros(0, np.uint64))


class ConsistentHash:
    """The verbs of `HashRing` with the balance of G5. Immutable inside and swapped as a whole."""

    def __init__(self, nodes: Iterable[str] | Mapping[str, int] = ()) -> None:
        self._table = _NOBODY
        weights = dict(nodes) if isinstance(nodes, Mapping) else dict.fromkeys(nodes, DEFAULT_WEIGHT)
        for node, weight in weights.items():
            check_node(node, weight)
        if weights:
            self._table = _built(weights)

    def add_node(self, node: str, weight: int = DEFAULT_WEIGHT) -> None:
        """Add a node, or give it another weight. With weight 0 it is known and owns nothing."""
        check_node(node, weight)
        if self._table.weights.get(node) == weight:
            return
        known = node in self._table.weights
        table = _without(self._table, node) if known else self._table
        self._table = _with(table, node, weight)

    def change_nodes(self, changes: Mapping[str, int | None]) -> None:
        """Give many nodes their weights at once, or take out those of None; readers see all or nothing."""
        for node, weight in changes.items():
            check_node(node, weight or 0)
        weights = {**self._table.weights, **changes}
        kept = {node: weight for node, weight in weights.items() if weight is not None}
        changed = sum(self._table.weights.get(node) != weight for node, weight in changes.items())
        if changed > BUILD_ANEW_SHARE * len(kept):
            self._table = _built(kept)
            return
        after = self.copy()
        for node, weight in changes.items():
            after.remove_node(node) if weight is None else after.add_node(node, weight)
        self._table = after._table

    def copy(self) -> ConsistentHash:
        """Another one in the same state; costs nothing, because states are never written to."""
        copied = ConsistentHash()
        copied._table = self._table
        return copied

    def remove_node(self, node: str) -> bool:
        """Take a node out; False if it was not in."""
        if node not in self._table.weights:
            return False
        self._table = _without(self._table, node)
        return True

    def get_node(self, key: str) -> str | None:
        """The node of a key; None where there is no node."""
        table = self._table
        if not table.names:
            return None
        place: int = table.lookup[xxh3_64_intdigest(key.encode()) & _MASK]
        return table.names[place]

    def get_nodes(self, key: str, n: int) -> list[str]:
        """The first `n` nodes for the key, best first: each is its owner once those before are gone."""
        table = self._table
        if not table.names or n < 1:
            return []
        slot = xxh3_64_intdigest(key.encode()) & _MASK
        scores = _scores(_SEEDS[slot], table.starts, _shares(table.names, table.weights))
        best = np.argsort(-scores if scores.dtype.kind == "f" else ~scores, kind="stable")
        return [table.names[at] for at in best[:n]]

    def get_node_of_each(self, keys: Iterable[str]) -> list[str | None]:
        """`get_node` of many keys at once."""
        names, lookup = self._table.names, self._table.lookup
        if not names:
            return [None for _ in keys]
        return [names[lookup[xxh3_64_intdigest(key.encode()) & _MASK]] for key in keys]

    def owners_at(self, points: int) -> list[str]:
        """Whose the circle of slots is at so many places, evenly spread; none where there is no node."""
        names, lookup = self._table.names, self._table.lookup
        return [names[lookup[at * SLOTS // points]] for at in range(points)] if names else []

    @staticmethod
    def position_of(key: str) -> float:
        """Where a key lies on that circle, from 0 to 1."""
        return (xxh3_64_intdigest(key.encode()) & _MASK) / SLOTS

    @property
    def state(self) -> Table:
        """The whole mapping as one value. A change publishes another one; none is written to afterwards."""
        return self._table

    @property
    def node_count(self) -> int:
        return len(self._table.weights)

    def has_node(self, node: str) -> bool:
        return node in self._table.weights

    @property
    def nodes(self) -> dict[str, int]:
        """Every node with its weight."""
        return dict(self._table.weights)

    def distribution(self, keys: Iterable[str]) -> dict[str, int]:
        """How many of the keys each node has; nodes without any are there with 0."""
        counts = dict.fromkeys(self._table.weights, 0)
        for node in self.get_node_of_each(keys):
            if node is not None:
                counts[node] += 1
        return counts

    def shares(self) -> dict[str, float]:
        """The exact share of all keys that each node has; nodes of weight 0 are there with 0."""
        table = self._table
        counts = np.bincount(table.owners, minlength=len(table.names)).tolist()
        owned = {name: count / SLOTS for name, count in zip(table.names, counts, strict=True)}
        return {name: owned.get(name, 0.0) for name in table.weights}

    def diff(self, other: ConsistentHash) -> dict[tuple[str | None, str | None], float]:
        """(from, to) → the exact share of all keys that would move if `other` took this one's place."""
        mine, theirs = self._owner_names(), other._owner_names()
        moved: dict[tuple[str | None, str | None], float] = {}
        for change in zip(mine, theirs, strict=True):
            if change[0] != change[1]:
                moved[change] = moved.get(change, 0.0) + 1 / SLOTS
        return moved

    def _owner_names(self) -> list[str | None]:
        names = self._table.names
        return [names[at] for at in self._table.lookup] if names else [None] * SLOTS


def _weighted(weights: Mapping[str, int]) -> bool:
    """Whether the nodes that own slots differ in weight."""
    return len({weight for weight in weights.values() if weight}) > 1


def _by_weight(table: Table) -> bool:
    """`_weighted` of what a table was made of, without a walk through all nodes."""
    return bool(table.scores.dtype.kind == "f")


def _shares(names: tuple[str, ...], weights: Mapping[str, int]) -> Array | None:
    """The weights of these nodes; None where all that own slots weigh the same."""
    return np.array([weights[name] for name in names], np.float64) if _weighted(weights) else None


def _start(name: str) -> Array:
    return _stirred(np.uint64(xxh3_64_intdigest(name.encode())))


def _scores(seeds: Array, starts: Array, shares: Array | None, z: Array = None, spare: Array = None) -> Array:
    """splitmix64 of the slot, started by the node's own hash; as many slots and nodes as broadcast.

    Room to work in may be given: new pages for each step cost more than the steps.
    """
    z = np.bitwise_xor(seeds, starts, out=z)
    z *= _MIX_1
    z ^= np.right_shift(z, np.uint64(27), out=spare)
    z *= _MIX_2
    z ^= np.right_shift(z, np.uint64(31), out=spare)
    return z if shares is None else np.log((z.astype(np.float64) + 0.5) / 2.0**64) / shares


def _claim(owners: Array, best: Array, place: int, start: Array, share: Array | None) -> None:
    """Give a node, in place, the slots where it scores highest; on a tie the first by name."""
    z, spare = np.empty((2, _AT_ONCE), np.uint64)
    for at in range(0, SLOTS, _AT_ONCE):
        here = slice(at, at + _AT_ONCE)
        scores = _scores(_SEEDS[here], start, share, z, spare)
        wins, ties = scores > best[here], scores == best[here]
        if ties.any():
            wins |= ties & (owners[here] > place)
        owners[here][wins] = place
        np.maximum(best[here], scores, out=best[here])


def _built(weights: dict[str, int]) -> Table:
    names = tuple(sorted(name for name, weight in weights.items() if weight))
    if not names:
        return _NOBODY._replace(weights=weights)
    starts, shares = np.array([_start(name) for name in names]), _shares(names, weights)
    owners = np.zeros(SLOTS, np.uint16)
    best = np.zeros(SLOTS, np.uint64) if shares is None else np.full(SLOTS, -np.inf)
    for place, start in enumerate(starts):
        _claim(owners, best, place, start, None if shares is None else shares[place])
    return _table(names, weights, starts, owners, best)


def _with(table: Table, node: str, weight: int) -> Table:
    weights = {**table.weights, node: weight}
    if not weight:
        return table._replace(weights=weights)
    if not table.names:
        return _built(weights)
    if not _by_weight(table) and weight != table.weights[table.names[0]]:
        table = _rescored(table, np.float64(table.weights[table.names[0]]))
    weighted = _by_weight(table)
    place = bisect_left(table.names, node)
    names = (*table.names[:place], node, *table.names[place:])
    start = _start(node)
    owners, best = table.owners + (table.owners >= place), table.scores.copy()
    _claim(owners, best, place, start, np.float64(weight) if weighted else None)
    return _table(names, weights, np.insert(table.starts, place, start), owners, best)


def _without(table: Table, node: str) -> Table:
    weights = {name: weight for name, weight in table.weights.items() if name != node}
    if not table.weights[node]:
        return table._replace(weights=weights)
    if len(table.names) == 1:
        return _built(weights)
    place = bisect_left(table.names, node)
    names = table.names[:place] + table.names[place + 1 :]
    starts = np.concatenate((table.starts[:place], table.starts[place + 1 :]))
    shares = np.array([weights[name] for name in names], np.float64) if _by_weight(table) else None
    orphans = np.flatnonzero(table.owners == place)
    owners, best = table.owners - (table.owners > place), table.scores.copy()
    turns = math.ceil(len(orphans) * len(names) / _AT_ONCE) or 1
    step = math.ceil(len(orphans) / turns) or 1
    z, spare = np.empty((2, step, len(names)), np.uint64)
    for at in range(0, len(orphans), step):
        some = orphans[at : at + step]
        scores = _scores(_SEEDS[some, None], starts, shares, z[: len(some)], spare[: len(some)])
        heirs = scores.argmax(axis=1)
        owners[some], best[some] = heirs, scores[np.arange(len(some)), heirs]
    left = _table(names, weights, starts, owners, best)
    return _rescored(left, None) if shares is not None and not _weighted(weights) else left


def _rescored(table: Table, share: Array | None) -> Table:
    """The same owners with the scores that they have under one weight for all: who wins is the same.

    NB: of two whole scores that are one as floats this keeps the higher, `_built` the first by name. With
    10 000 nodes that happens to one of 65 536 slots, once in ten million times.
    """
    scores = _scores(_SEEDS, table.starts[table.owners], share)
    return _table(table.names, table.weights, table.starts, table.owners, scores)
