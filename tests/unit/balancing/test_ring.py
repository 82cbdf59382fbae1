"""The documented ring alone: its points, its mapping for ever, and what happens where points meet."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from roost.balancing import HashRing, ring

GOLDEN_NODES = ["server1", "server2", "server3", "game-kr-1-0001", "10.0.0.1:7777"]
GOLDEN = {
    "user:1": "server3",
    "user:2": "server3",
    "user:3": "server2",
    "player-42": "server3",
    "01JD0000000000000000000000": "10.0.0.1:7777",
    "플레이어": "server2",
    "": "game-kr-1-0001",
    "a": "server1",
    "1000000": "server1",
    "x@example.com": "server1",
}
GOLDEN_WEIGHTED = {
    "user:1": "server3",
    "user:2": "server3",
    "user:3": "server2",
    "player-42": "server3",
    "01JD0000000000000000000000": "10.0.0.1:7777",
    "플레이어": "10.0.0.1:7777",
}
POINTS = [7941059898388057860, 8261797059187131076, 10422175053101355522, 17804664070254677354]


def slow_owner(weights: dict[str, int], key: str, virtual_nodes: int) -> str | None:
    """Document 000's algorithm in its own words."""
    points: dict[int, str] = {}
    for node in sorted(weights, reverse=True):
        weight = weights[node]
        for n in range(max(1, virtual_nodes * weight // 100) if weight else 0):
            points[xxh3_64_intdigest(f"{node}#{n}".encode())] = node
    circle = sorted(points)
    at = bisect_left(circle, xxh3_64_intdigest(key.encode()))
    return points[circle[at % len(circle)]] if circle else None


@settings(max_examples=30, deadline=None)
@given(
    weights=st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 300), max_size=6),
    virtual_nodes=st.integers(1, 40),
)
def test_it_says_what_the_document_says(weights: dict[str, int], virtual_nodes: int) -> None:
    made = HashRing(weights, virtual_nodes)
    for n in range(50):
        assert made.get_node(f"user:{n}") == slow_owner(weights, f"user:{n}", virtual_nodes)


def test_the_mapping_is_the_same_for_ever() -> None:
    made = HashRing(GOLDEN_NODES)
    assert {key: made.get_node(key) for key in GOLDEN} == GOLDEN


def test_the_mapping_by_weight_is_the_same_for_ever() -> None:
    made = HashRing({node: 50 * n for n, node in enumerate(GOLDEN_NODES)})
    assert {key: made.get_node(key) for key in GOLDEN_WEIGHTED} == GOLDEN_WEIGHTED


def test_the_points_are_the_same_for_ever() -> None:
    made = HashRing(["server1"], virtual_nodes=4)
    assert made.state.points.tolist() == POINTS


def test_the_document_has_150_points_for_a_node() -> None:
    assert len(HashRing(["server1"]).state.points) == 150
    assert len(HashRing({"server1": 200}).state.points) == 300
    assert len(HashRing({"server1": 1}, virtual_nodes=10).state.points) == 1


def test_a_node_without_points_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        HashRing(virtual_nodes=0)


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight points in all, so that every node meets every other."""
    monkeypatch.setattr(ring, "xxh3_64_intdigest", lambda data: xxh3_64_intdigest(data) & (7 << 61))


@pytest.mark.usefixtures("colliding")
@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_where_points_meet_the_first_by_name_owns_them_whatever_the_order(order: str) -> None:
    made = HashRing()
    for node in order:
        made.add_node(node)
    keys = [f"user:{n}" for n in range(50)]

    assert made.distribution(keys) == {"a": 50, "b": 0, "c": 0}
    assert made.get_nodes("user:1", 3) == ["a", "b", "c"]
    assert HashRing(list(order)).diff(made) == {}

    made.remove_node("a")
    assert made.distribution(keys) == {"b": 50, "c": 0}
    made.add_node("a")
    assert made.distribution(keys) == {"a": 50, "b": 0, "c": 0}


def test_a_node_that_changes_its_weight_is_never_missing_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str | None] = []
    made = HashRing(["only"])

    def look(data: bytes) -> int:
        if data.startswith(b"only#"):  # a point of the node is being made
            seen.append(made.get_node("user:1"))
        return xxh3_64_intdigest(data)

    monkeypatch.setattr(ring, "xxh3_64_intdigest", look)
    made.add_node("only", 200)

    assert seen == ["only"] * 300


def test_keys_before_the_first_and_after_the_last_point_meet_at_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = {b"a#0": 1000, b"b#0": 2**63, b"low": 0, b"at": 1000, b"past": 1001, b"high": 2**64 - 1}
    monkeypatch.setattr(ring, "xxh3_64_intdigest", places.__getitem__)
    made = HashRing(["a", "b"], virtual_nodes=1)

    assert [made.get_node(key) for key in ("low", "at", "past", "high")] == ["a", "a", "b", "a"]
    assert made.get_nodes("high", 2) == ["a", "b"]
    assert made.diff(HashRing()) == {
        ("a", None): pytest.approx(0.5),
        ("b", None): pytest.approx(0.5),
    }
