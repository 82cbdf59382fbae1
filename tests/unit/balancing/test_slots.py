"""The default consistent hash alone: its scores, its mapping for ever, its tables."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from roost.balancing import ConsistentHash, slots

GOLDEN_NODES = ["server1", "server2", "server3", "game-kr-1-0001", "10.0.0.1:7777"]
GOLDEN = {
    "user:1": "server1",
    "user:2": "server3",
    "user:3": "server2",
    "player-42": "server1",
    "01JD0000000000000000000000": "server3",
    "플레이어": "server3",
    "": "game-kr-1-0001",
    "a": "10.0.0.1:7777",
    "1000000": "server2",
    "x@example.com": "10.0.0.1:7777",
}
GOLDEN_WEIGHTED = {
    "user:1": "server3",
    "user:2": "server3",
    "user:3": "server3",
    "player-42": "10.0.0.1:7777",
    "01JD0000000000000000000000": "server3",
    "플레이어": "10.0.0.1:7777",
}
SCORES = {
    0: 5669639681371697918,
    1: 6966756706917523247,
    32768: 14150328204129141881,
    65535: 7559418610787544033,
}

FLEETS = st.dictionaries(st.text(min_size=1, max_size=5), st.sampled_from([0, 100, 100, 200]), max_size=6)
often = settings(max_examples=40, deadline=None)


def slow_score(slot: int, node: str) -> int:
    """splitmix64, one number at a time."""
    z = ((slot + 1) * 0x9E3779B97F4A7C15 % 2**64) ^ xxh3_64_intdigest(node.encode())
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def slow_order(weights: dict[str, int], key: str) -> list[str]:
    slot = xxh3_64_intdigest(key.encode()) % 65_536
    scores: dict[str, float] = {node: slow_score(slot, node) for node, weight in weights.items() if weight}
    if len({weight for weight in weights.values() if weight}) > 1:
        scores = {node: math.log((score + 0.5) / 2**64) / weights[node] for node, score in scores.items()}
    return sorted(scores, key=lambda node: (-scores[node], node))


def tables(made: ConsistentHash) -> tuple[Any, ...]:
    table = made.state
    return table.names, table.weights, table.starts.tolist(), table.owners.tolist(), table.scores.tolist()


@often
@given(weights=FLEETS)
def test_it_is_rendezvous_for_each_slot(weights: dict[str, int]) -> None:
    made = ConsistentHash(weights)
    for n in range(30):
        expected = slow_order(weights, f"user:{n}")
        assert made.get_nodes(f"user:{n}", 9) == expected
        assert made.get_node(f"user:{n}") == (expected[0] if expected else None)


def test_the_mapping_is_the_same_for_ever() -> None:
    made = ConsistentHash(GOLDEN_NODES)
    assert {key: made.get_node(key) for key in GOLDEN} == GOLDEN


def test_the_mapping_by_weight_is_the_same_for_ever() -> None:
    made = ConsistentHash({node: 50 * n for n, node in enumerate(GOLDEN_NODES)})
    assert {key: made.get_node(key) for key in GOLDEN_WEIGHTED} == GOLDEN_WEIGHTED


def test_the_scores_are_the_same_for_ever() -> None:
    scores = ConsistentHash(["server1"]).state.scores
    assert {slot: int(scores[slot]) for slot in SCORES} == SCORES
    assert all(slow_score(slot, "server1") == score for slot, score in SCORES.items())


@often
@given(weights=FLEETS, data=st.data())
def test_any_order_of_insertion_gives_the_same_tables(weights: dict[str, int], data: Any) -> None:
    grown = ConsistentHash()
    for node in data.draw(st.permutations(list(weights))):
        grown.add_node(node, weights[node])
    assert tables(grown) == tables(ConsistentHash(weights))


@often
@given(weights=FLEETS, weight=st.sampled_from([0, 50, 100, 200]))
def test_add_then_remove_gives_the_same_tables(weights: dict[str, int], weight: int) -> None:
    made = ConsistentHash(weights)
    before = tables(made)
    made.add_node("a newcomer", weight)
    made.remove_node("a newcomer")
    assert tables(made) == before


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ({"a": 100, "b": 100}, [("c", 200), ("c", None), ("c", 100), ("b", 300), ("b", 100)]),
        ({"a": 100, "b": 200, "c": 300}, [("c", 400), ("b", 100), ("c", None), ("a", 0), ("a", 100)]),
        ({"a": 100, "b": 0}, [("b", 50), ("a", 50), ("b", None), ("a", None)]),
    ],
)
def test_equal_and_unequal_weights_follow_each_other_without_a_trace(
    first: dict[str, int], changes: list[tuple[str, int | None]]
) -> None:
    made, expected = ConsistentHash(first), dict(first)
    for node, weight in changes:
        if weight is None:
            made.remove_node(node)
            del expected[node]
        else:
            made.add_node(node, weight)
            expected[node] = weight
        assert tables(made) == tables(ConsistentHash(expected))


def test_the_size_of_equal_weights_does_not_matter() -> None:
    light, heavy = ConsistentHash({"a": 1, "b": 1}), ConsistentHash({"a": 9_000, "b": 9_000})
    assert light.diff(heavy) == {}


def test_a_heavy_node_leaves_many_light_ones() -> None:
    weights = {f"light{n}": 1 for n in range(300)} | {"heavy": 300, "other": 2}
    made = ConsistentHash(weights)
    del weights["heavy"]
    made.remove_node("heavy")
    assert tables(made) == tables(ConsistentHash(weights))


@pytest.mark.parametrize("order", ["abc", "cab", "bca", "cba"])
@pytest.mark.parametrize("weight", [100, 200])
def test_where_hashes_of_names_collide_the_first_by_name_owns_everything(
    monkeypatch: pytest.MonkeyPatch, order: str, weight: int
) -> None:
    met = 8 * 0x9E3779B97F4A7C15 % 2**64  # also where the hash of a name meets that of a slot
    monkeypatch.setattr(
        slots, "xxh3_64_intdigest", lambda data: met if data in b"abc" else xxh3_64_intdigest(data)
    )
    weights = dict.fromkeys(order, 100) | {"c": weight}
    made = ConsistentHash()
    for node in order:
        made.add_node(node, weights[node])

    found = made.distribution(f"user:{n}" for n in range(50))

    expected = {"a": 50, "b": 0, "c": 0} if weight == 100 else {"a": 0, "b": 0, "c": 50}
    assert found == expected
    assert tables(made) == tables(ConsistentHash(weights))
    made.remove_node("a")
    del weights["a"]
    assert tables(made) == tables(ConsistentHash(weights))


def test_many_keys_at_once_are_each_key() -> None:
    made = ConsistentHash(["a", "b", "c"])
    keys = [f"user:{n}" for n in range(100)]
    assert made.get_node_of_each(keys) == [made.get_node(key) for key in keys]
    assert ConsistentHash().get_node_of_each(iter(keys)) == [None] * 100


def test_the_shares_are_what_would_be_lost_without_anybody() -> None:
    made = ConsistentHash({"a": 100, "b": 300, "idle": 0})
    shares = made.shares()
    lost = {node: share for (node, _), share in made.diff(ConsistentHash()).items()}
    assert shares == {**lost, "idle": 0.0}
    assert sum(shares.values()) == 1.0
    assert shares["b"] == pytest.approx(0.75, abs=0.01)
    assert ConsistentHash().shares() == {}
    assert ConsistentHash({"idle": 0}).shares() == {"idle": 0.0}


def test_the_circle_is_told_at_evenly_spread_places_and_keys_lie_on_it() -> None:
    table = ConsistentHash(["a", "b", "c"])
    assert ConsistentHash().owners_at(8) == []
    owners = table.owners_at(slots.SLOTS)
    assert {name: owners.count(name) / slots.SLOTS for name in "abc"} == pytest.approx(table.shares())
    assert table.owners_at(4) == [
        owners[0],
        owners[slots.SLOTS // 4],
        owners[slots.SLOTS // 2],
        owners[3 * slots.SLOTS // 4],
    ]
    for key in ("ann", "bob", "cid"):
        assert owners[round(ConsistentHash.position_of(key) * slots.SLOTS)] == table.get_node(key)
