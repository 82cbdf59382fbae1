"""The default consistent hash: 65 536 slots, each owned by the node that scores highest for it.

A key is hashed to a slot, a slot belongs to the node with the highest random weight (rendezvous). So the
spread does not depend on luck with points (G5), a lookup is one hash and two look-ups in a table, and a
node that comes or goes moves exactly its own share. Scores are whole numbers where all weights are equal,
so every process and machine agrees; unequal weights need the logarithm of weighted rendezvous.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from roost.balancing.ring import DEFAULT_WEIGHT, Array, check_node

SLOTS = 65_536
_MASK = SLOTS - 1

_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SEEDS: Array = np.arange(1, SLOTS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


class _Table(NamedTuple):
    """One state: the owner of each slot by its place in `names`, and the score that made it the owner."""

    names: tuple[str, ...]
    """In name order; only nodes that may own a slot."""
    weights: dict[str, int]
    owners: Array
    scores: Array
    lookup: Any
    """`owners` as a memoryview, which gives a plain int for a plain index."""


def _table(names: tuple[str, ...], weights: dict[str, int], owners: Array, scores: Array) -> _Table:
    return _Table(names, weights, owners, scores, memoryview(owners))


_NOBODY = _table((), {}, np.zeros(0, np.uint16), np.zeros(0, np.uint64))


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
        table = self._table
        if table.weights.get(node) == weight:
            return
        weights = {**table.weights, node: weight}
        if node in table.weights or not weight or _weighted(weights) or not table.names:
            self._table = _built(weights)
        else:
            self._table = _with(table, node, weights)

    def remove_node(self, node: str) -> bool:
        """Take a node out; False if it was not in."""
        table = self._table
        if node not in table.weights:
            return False
        weights = {name: weight for name, weight in table.weights.items() if name != node}
        if node not in table.names:
            self._table = table._replace(weights=weights)
        elif len(table.names) == 1:
            self._table = _NOBODY._replace(weights=weights)
        elif _weighted(table.weights) != _weighted(weights):
            self._table = _built(weights)
        else:
            self._table = _without(table, node, weights)
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
        scores = _scores(_SEEDS[slot : slot + 1], table.names, table.weights)[:, 0]
        best = np.argsort(-scores.astype(np.float64) if scores.dtype.kind == "f" else ~scores, kind="stable")
        return [table.names[at] for at in best[:n]]

    def get_node_of_each(self, keys: Iterable[str]) -> list[str | None]:
        """`get_node` of many keys at once."""
        names, lookup = self._table.names, self._table.lookup
        if not names:
            return [None for _ in keys]
        return [names[lookup[xxh3_64_intdigest(key.encode()) & _MASK]] for key in keys]

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
        """The exact share of all keys that each node has."""
        names, owners = self._table.names, self._table.owners
        counts = np.bincount(owners, minlength=len(names)).tolist()
        return {name: count / SLOTS for name, count in zip(names, counts, strict=True)}

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


def _scores(seeds: Array, names: tuple[str, ...], weights: Mapping[str, int]) -> Array:
    """One row per node, one column per slot: splitmix64 of the slot, started by the node's own hash."""
    starts = np.array([xxh3_64_intdigest(name.encode()) for name in names], np.uint64)
    z = seeds[None, :] ^ starts[:, None]
    z ^= z >> np.uint64(30)
    z *= _MIX_1
    z ^= z >> np.uint64(27)
    z *= _MIX_2
    z ^= z >> np.uint64(31)
    if not _weighted(weights):
        return z
    shares = np.array([weights[name] for name in names], np.float64)
    return np.log((z.astype(np.float64) + 0.5) / 2.0**64) / shares[:, None]


def _built(weights: dict[str, int]) -> _Table:
    """From nothing, a few nodes at a time: all at once would need half a megabyte for each."""
    names = tuple(sorted(name for name, weight in weights.items() if weight))
    if not names:
        return _NOBODY._replace(weights=weights)
    owners = np.zeros(SLOTS, np.uint16)
    best: Array = None
    for at, name in enumerate(names):
        scores = _scores(_SEEDS, (name,), weights)[0]
        if best is None:
            best = scores
        else:
            wins = scores > best  # on a tie the first name stays
            owners[wins] = at
            best = np.maximum(best, scores)
    return _table(names, weights, owners, best)


def _with(table: _Table, node: str, weights: dict[str, int]) -> _Table:
    names = tuple(sorted((*table.names, node)))
    place = names.index(node)
    scores = _scores(_SEEDS, (node,), weights)[0]
    wins = scores > table.scores
    ties = scores == table.scores
    owners = table.owners + (table.owners >= place).astype(np.uint16)
    if ties.any():
        wins |= ties & (owners > place)
    owners[wins] = place
    return _table(names, weights, owners, np.maximum(table.scores, scores))


def _without(table: _Table, node: str, weights: dict[str, int]) -> _Table:
    place = table.names.index(node)
    names = table.names[:place] + table.names[place + 1 :]
    orphans = np.flatnonzero(table.owners == place)
    owners = table.owners - (table.owners > place).astype(np.uint16)
    scores = table.scores.copy()
    candidates = _scores(_SEEDS[orphans], names, weights)
    owners[orphans] = candidates.argmax(axis=0)
    scores[orphans] = candidates.max(axis=0)
    return _table(names, weights, owners, scores)
