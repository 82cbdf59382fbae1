"""What `ConsistentHash` and the documented `HashRing` promise alike."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.balancing import ConsistentHash, HashRing

Made = HashRing | ConsistentHash
Make = Callable[[Any], Made]

KEYS = [f"user:{n}" for n in range(400)]
FLEETS = st.dictionaries(
    st.text("abcdefg0123456789.:-", min_size=1, max_size=8),
    st.sampled_from([0, 50, 100, 100, 100, 300]),
    min_size=1,
    max_size=8,
)
both = pytest.mark.parametrize("make", [HashRing, ConsistentHash])
often = settings(max_examples=40, deadline=None)


def owners(made: Made) -> dict[str, str | None]:
    return {key: made.get_node(key) for key in KEYS}


def diff(one: Made, other: Made) -> dict[tuple[str | None, str | None], float]:
    if isinstance(one, HashRing) and isinstance(other, HashRing):
        return one.diff(other)
    assert isinstance(one, ConsistentHash)
    assert isinstance(other, ConsistentHash)
    return one.diff(other)


@both
def test_nobody_owns_anything_where_there_is_no_node(make: Make) -> None:
    empty = make(())

    assert empty.get_node("user:1") is None
    assert empty.get_nodes("user:1", 3) == []
    assert empty.node_count == 0
    assert empty.nodes == {}
    assert not empty.has_node("a")
    assert empty.remove_node("a") is False
    assert empty.distribution(KEYS) == {}


@both
def test_one_node_owns_everything(make: Make) -> None:
    made = make(["a"])

    assert set(owners(made).values()) == {"a"}
    assert made.get_nodes("user:1", 3) == ["a"]
    assert made.distribution(KEYS) == {"a": len(KEYS)}


@both
def test_nodes_come_go_and_are_told(make: Make) -> None:
    made = make(["a", "b"])
    made.add_node("c", 50)

    assert made.node_count == 3
    assert made.nodes == {"a": 100, "b": 100, "c": 50}
    assert made.has_node("c")
    assert made.remove_node("c") is True
    assert made.remove_node("c") is False
    assert not made.has_node("c")
    assert made.nodes == {"a": 100, "b": 100}


@both
def test_the_nodes_that_are_told_are_a_copy(make: Make) -> None:
    made = make(["a"])
    made.nodes.clear()
    assert made.node_count == 1


@both
def test_the_given_weights_may_change_later_without_harm(make: Make) -> None:
    given = {"a": 100, "b": 200}
    made = make(given)
    given["c"] = 100
    made.add_node("d")
    assert made.nodes == {"a": 100, "b": 200, "d": 100}
    assert given == {"a": 100, "b": 200, "c": 100}


@both
def test_a_node_that_is_added_twice_is_there_once(make: Make) -> None:
    made = make(["a", "b"])
    before = owners(made)
    made.add_node("a")
    assert made.node_count == 2
    assert owners(made) == before


@both
@pytest.mark.parametrize("n", [-1, 0, 1, 2, 5, 6, 100])
def test_the_candidates_of_a_key_are_distinct_and_begin_with_its_owner(make: Make, n: int) -> None:
    made = make([f"server{i}" for i in range(6)])
    for key in KEYS[:100]:
        found = made.get_nodes(key, n)
        assert len(found) == len(set(found)) == max(0, min(n, 6))
        assert found[:1] == [made.get_node(key)][:n] if n > 0 else found == []


@both
def test_the_second_candidate_is_the_owner_once_the_first_is_gone(make: Make) -> None:
    names = [f"server{i}" for i in range(5)]
    for key in KEYS[:20]:
        made = make(names)
        expected = made.get_nodes(key, 5)
        found = []
        for _ in names:
            found.append(made.get_node(key))
            made.remove_node(str(found[-1]))
        assert found == expected


@pytest.mark.parametrize(("make", "error"), [(HashRing, 0.25), (ConsistentHash, 0.03)])
def test_a_node_has_keys_by_its_weight(make: Make, error: float) -> None:
    weights = {"a": 50, "b": 100, "c": 200, "d": 400}
    keys = [f"user:{n}" for n in range(60_000)]

    counts = make(weights).distribution(keys)

    for node, weight in weights.items():
        assert counts[node] == pytest.approx(len(keys) * weight / 750, rel=error)


@both
def test_a_node_of_weight_0_is_known_and_owns_nothing(make: Make) -> None:
    made = make({"a": 100, "idle": 0})

    assert made.has_node("idle")
    assert made.node_count == 2
    assert made.distribution(KEYS) == {"a": len(KEYS), "idle": 0}
    assert made.get_nodes("user:1", 5) == ["a"]


@both
def test_where_all_weigh_0_nobody_owns_anything(make: Make) -> None:
    made = make({"a": 0, "b": 0})

    assert made.get_node("user:1") is None
    assert made.get_nodes("user:1", 2) == []
    assert made.distribution(KEYS) == {"a": 0, "b": 0}
    made.add_node("c")
    assert made.get_node("user:1") == "c"
    made.remove_node("c")
    assert made.get_node("user:1") is None


@both
def test_a_bad_node_is_refused_and_changes_nothing(make: Make) -> None:
    made = make(["a"])
    for name, weight in (("", 100), ("b", -1), ("a", -5)):
        with pytest.raises(ValueError):
            made.add_node(name, weight)
        with pytest.raises(ValueError):
            make({name: weight})
    assert made.nodes == {"a": 100}


@both
@often
@given(fleet=FLEETS, data=st.data())
def test_the_order_of_insertion_does_not_matter(make: Make, fleet: Mapping[str, int], data: Any) -> None:
    expected = owners(make(fleet))
    grown = make(())
    for name in data.draw(st.permutations(list(fleet))):
        grown.add_node(name, fleet[name])

    assert owners(grown) == expected
    assert grown.nodes == fleet
    assert diff(grown, make(fleet)) == {}


@both
@often
@given(fleet=FLEETS, weight=st.sampled_from([0, 50, 100, 300]))
def test_a_node_takes_only_for_itself_and_gives_back_exactly(
    make: Make, fleet: Mapping[str, int], weight: int
) -> None:
    made = make(fleet)
    before = owners(made)

    made.add_node("newcomer", weight)
    during = owners(made)
    made.remove_node("newcomer")

    assert {during[key] for key in KEYS if during[key] != before[key]} <= {"newcomer"}
    assert owners(made) == before
    assert diff(made, make(fleet)) == {}


@both
@often
@given(fleet=FLEETS, data=st.data())
def test_a_node_that_leaves_moves_only_its_own_keys(make: Make, fleet: Mapping[str, int], data: Any) -> None:
    leaving = data.draw(st.sampled_from(sorted(fleet)))
    made = make(fleet)
    before = owners(made)

    made.remove_node(leaving)

    after = owners(made)
    assert all(before[key] == leaving for key in KEYS if after[key] != before[key])
    assert leaving not in after.values()


@both
@often
@given(
    changes=st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from([None, 0, 50, 100, 100, 100, 300])), max_size=12
    )
)
def test_any_history_gives_what_building_anew_gives(
    make: Make, changes: list[tuple[str, int | None]]
) -> None:
    made = make(())
    expected: dict[str, int] = {}
    for node, weight in changes:
        if weight is None:
            assert made.remove_node(node) is (expected.pop(node, None) is not None)
        else:
            made.add_node(node, weight)
            expected[node] = weight

    assert made.nodes == expected
    assert owners(made) == owners(make(expected))
    assert diff(made, make(expected)) == {}
    for key in KEYS[:5]:
        assert made.get_nodes(key, 9) == make(expected).get_nodes(key, 9)


@both
def test_the_difference_is_the_share_of_keys_that_would_move(make: Make) -> None:
    one, other = make({"a": 100, "b": 100, "c": 300}), make({"a": 200, "c": 300, "d": 100})
    keys = [f"user:{n}" for n in range(40_000)]
    seen = Counter((one.get_node(key), other.get_node(key)) for key in keys)

    told = diff(one, other)

    assert {change for change in seen if change[0] != change[1]} <= told.keys()
    for change, share in told.items():
        assert change[0] != change[1]
        assert seen[change] / len(keys) == pytest.approx(share, abs=0.01)


@both
def test_there_is_no_difference_to_itself_and_the_whole_to_nothing(make: Make) -> None:
    made, empty = make(["a", "b"]), make(())

    assert diff(made, made) == diff(empty, empty) == {}
    assert diff(made, make(["b", "a"])) == {}
    assert sum(diff(empty, made).values()) == pytest.approx(1.0)
    assert diff(empty, make(["a"])) == {(None, "a"): pytest.approx(1.0)}
    assert diff(make(["a"]), empty) == {("a", None): pytest.approx(1.0)}


@both
def test_the_distribution_counts_what_each_lookup_says(make: Make) -> None:
    made = make(["a", "b", "c"])
    assert made.distribution(KEYS) == Counter(owners(made).values())
    assert made.distribution([]) == {"a": 0, "b": 0, "c": 0}


@both
def test_any_text_may_be_a_key_or_a_name(make: Make) -> None:
    made = make(["서버-1", "a b", "#0"])
    for key in ("", "플레이어", "\0", "x" * 10_000):
        assert made.get_node(key) in made.nodes


@both
def test_threads_read_whole_states_while_another_changes_it(make: Make) -> None:
    made = make(["a", "b"])
    known = {"a", "b", "passing"}
    done = threading.Event()
    faults: list[object] = []

    def read() -> None:
        try:
            while not done.is_set():
                for key in KEYS[:50]:
                    found = made.get_nodes(key, 3)
                    if made.get_node(key) not in known or not known >= set(found) or len(found) < 2:
                        faults.append((key, found))
        except Exception as fault:
            faults.append(fault)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(12):
        made.add_node("passing", 100 + turn % 3)
        made.add_node("passing", 100)
        made.remove_node("passing")
    done.set()
    for reader in readers:
        reader.join()

    assert faults == []


@both
def test_a_change_puts_a_new_state_in_place_of_the_old_one(make: Make) -> None:
    """A reader that holds a state sees it unchanged: no array is written to after it is published."""
    made = make(["a", "b", "c"])

    def state() -> Any:
        return made.state

    states = [state()]
    copies = [made.nodes]
    frozen = [bytes(states[0].owners)]
    for change in (
        lambda: made.add_node("d"),
        lambda: made.add_node("a", 200),
        lambda: made.remove_node("b"),
    ):
        change()
        states.append(state())
        copies.append(made.nodes)
        frozen.append(bytes(state().owners))

    assert all(one is not other for one, other in pairwise(states))
    assert [held.weights for held in states] == copies
    assert [bytes(held.owners) for held in states] == frozen


@both
@often
@given(
    before=FLEETS,
    changes=st.dictionaries(st.text("abcdefg", min_size=1, max_size=2), st.sampled_from([None, 0, 100, 300])),
)
def test_many_changes_at_once_are_each_change(
    make: Make, before: Mapping[str, int], changes: Mapping[str, int | None]
) -> None:
    at_once = make(before)
    at_once.change_nodes(changes)
    after = {node: weight for node, weight in {**before, **changes}.items() if weight is not None}
    assert at_once.nodes == after
    assert owners(at_once) == owners(make(after))


@both
def test_a_bad_node_among_many_changes_nothing(make: Make) -> None:
    made = make(["a", "b"])
    with pytest.raises(ValueError, match="name"):
        made.change_nodes({"c": 100, "": 100})
    assert made.nodes == {"a": 100, "b": 100}
