"""The order of users: what costs nobody anything first, the busiest last; parties whole; waits respected."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.binding.drain.line import LONGEST_WAIT_S, Line, Surveyed, is_canary
from roost.binding.party import MOST_IN_PARTY


def user(
    name: str,
    *,
    online: bool = False,
    idle_ms: int = 0,
    dirty: bool = False,
    verdict: str = "now",
    note: str = "",
) -> Surveyed:
    return Surveyed(name, online, idle_ms, dirty, verdict, note)  # type: ignore[arg-type]


def test_the_idle_and_clean_go_first_and_the_hot_last() -> None:
    line = Line()
    line.fill(
        [
            user("hot", online=True, dirty=True),
            user("quiet", online=True, idle_ms=9000),
            user("quieter", online=True, idle_ms=99_000),
            user("offline", dirty=True),
        ],
        ["hot", "never-came", "quiet"],
        0.0,
    )
    assert line.take(99) == [("never-came",), ("offline",), ("quieter",), ("quiet",), ("hot",)]


def test_a_party_goes_whole_when_its_busiest_member_would() -> None:
    line = Line()
    line.fill(
        [
            user("a", note="raid"),
            user("b", online=True),
            user("c", online=True, dirty=True, note="raid"),
        ],
        (),
        0.0,
    )
    assert line.take(1) == [("b",)]
    assert line.take(1) == [("a", "c")], "more than asked for, but never half a party"


def test_a_party_that_is_too_large_is_pinned_and_goes_one_by_one_when_forced() -> None:
    line = Line()
    members = [user(f"m{number:03}", note="raid") for number in range(MOST_IN_PARTY + 1)]
    surveyed = [*members, user("z", online=True)]
    line.fill(surveyed, (), 0.0)
    assert line.take(999) == [("z",)], "nobody waits for them"
    assert (len(line.pinned), line.pinned["m000"]) == (65, "a party of 65, more than 64")
    line.fill(surveyed, (), 0.0, force=True)
    assert line.pinned == {}
    assert line.take(999) == [*((one.user,) for one in members), ("z",)]


def test_who_cannot_move_now_is_named_and_left_out_until_forced() -> None:
    line = Line()
    surveyed = [user("a", verdict="pinned", note="in a duel"), user("b", verdict="later"), user("c")]
    line.fill(surveyed, (), 0.0)
    assert (line.pinned, line.later, line.left) == ({"a": "in a duel"}, 1, 3)
    assert line.take(9) == [("c",)]
    line.fill(surveyed, (), 0.0, force=True)
    assert sorted(line.take(9)) == [("a",), ("b",), ("c",)]


def test_who_came_back_waits_longer_each_time() -> None:
    line, now = Line(), 0.0
    waits = []
    for _ in range(8):
        line.came_back("a", now)
        began = now
        line.fill([user("a")], (), now)
        assert not line.take(1)
        while True:
            now += 0.25
            line.fill([user("a")], (), now)
            if line.take(1):
                break
        waits.append(now - began)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.5, LONGEST_WAIT_S)


def test_others_keep_their_place_when_only_some_are_wanted() -> None:
    line = Line()
    line.fill([user(name) for name in "abcd"], (), 0.0)
    assert line.take(9, lambda name: name in "bd") == [("b",), ("d",)]
    assert not line.wants(lambda name: name in "bd")
    assert line.take(9) == [("a",), ("c",)]


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=3), st.tuples(st.booleans(), st.sampled_from(["", "p", "q"]))
    ),
    st.sets(st.text("abcdef", min_size=1, max_size=3)),
    st.sets(st.text("abcdef", min_size=1, max_size=3)),
)
def test_everybody_is_taken_once(
    known: dict[str, tuple[bool, str]], bound: set[str], without: set[str]
) -> None:
    line = Line()
    surveyed = [user(name, online=online, note=party) for name, (online, party) in known.items()]
    line.fill(surveyed, bound, 0.0, without=without)
    taken = []
    while groups := line.take(2):
        taken += [name for group in groups for name in group]
    assert sorted(taken) == sorted((known.keys() | bound) - without)
    assert line.left == len(taken)


@given(st.text(max_size=20), st.integers(0, 99))
def test_a_canary_grows(name: str, percent: int) -> None:
    assert is_canary(name, "j", 100)
    assert not is_canary(name, "j", 0)
    assert not is_canary(name, "j", percent) or is_canary(name, "j", percent + 1)


def test_a_canary_is_about_so_many() -> None:
    assert 350 < sum(is_canary(f"user-{number}", "j", 5) for number in range(10_000)) < 650


def test_whoever_was_taken_and_not_tried_is_the_next_in_the_same_order() -> None:
    line = Line()
    line.fill([], ["a", "b", "c", "d"], 0.0)
    taken = line.take(3)

    line.put_back(taken[1:])

    assert line.take(99) == [("b",), ("c",), ("d",)]
