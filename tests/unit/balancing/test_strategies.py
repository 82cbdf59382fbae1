"""Each strategy: whom it chooses, and that nobody who does not accept is ever among them (G6)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.balancing import STRATEGIES, ConsistentHash, Fleet, HashRing, Refusal, Server
from roost.balancing.strategies import Strategy, rendezvous
from roost.balancing.strategies.bounded_load import BoundedLoad
from roost.balancing.strategies.consistent_hash import ConsistentHashing
from roost.balancing.strategies.least_connections import PICK_S, LeastConnections, Picks
from roost.balancing.strategies.random_choice import Random, TwoChoices
from roost.balancing.strategies.rendezvous import Rendezvous
from roost.balancing.strategies.round_robin import RoundRobin
from roost.balancing.strategies.singleton import Singleton

KEYS = [f"user:{n}" for n in range(300)]
every = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)

SERVERS = st.builds(
    Server,
    server_id=st.text("abcdefgh", min_size=1, max_size=3),
    load=st.integers(0, 50),
    capacity=st.sampled_from([0, 10, 40]),
    weight=st.sampled_from([0, 1, 50, 100, 100, 300]),
    healthy=st.booleans(),
    open=st.booleans(),
)


def told(strategy: Strategy, servers: Iterable[Server]) -> Fleet:
    """The fleet, after the strategy heard of each of its servers."""
    fleet = Fleet(servers)
    for server in fleet.servers.values():
        strategy.on_server_event(server, "added")
    return fleet


def chosen(strategy: Strategy, key: str, fleet: Fleet) -> Server:
    found = strategy.choose(key, fleet)
    assert isinstance(found, Server), found
    return found


def placed(strategy: Strategy, servers: list[Server], users: int) -> dict[str, int]:
    """Loads after so many users came one after the other, each seen by the next choice."""
    fleet = told(strategy, servers)
    for n in range(users):
        server = chosen(strategy, f"user:{n}", fleet)
        grown = replace(server, load=server.load + 1)
        fleet = Fleet({**fleet.servers, server.server_id: grown}.values())
    return {server.server_id: server.load for server in fleet.servers.values()}


# -- what holds for each


@every
@settings(max_examples=60, deadline=None)
@given(servers=st.lists(SERVERS, max_size=8, unique_by=lambda server: server.server_id))
def test_g6_only_who_accepts_is_chosen_and_somebody_is_where_anybody_does(
    make: Callable[[], Strategy], servers: list[Server]
) -> None:
    strategy = make()
    fleet = told(strategy, servers)
    for key in KEYS[:10]:
        found = strategy.choose(key, fleet)
        if any(server.accepting for server in servers):
            assert isinstance(found, Server)
            assert found.accepting
            assert found in servers
        else:
            assert isinstance(found, Refusal)
            assert found.reason


@every
def test_the_refusal_says_why(make: Callable[[], Strategy]) -> None:
    strategy = make()
    servers = [
        Server("a", healthy=False),
        Server("b", healthy=False, open=False),
        Server("c", open=False),
        Server("d", load=9, capacity=9),
        Server("e", load=10, capacity=9),
        Server("f", weight=0),
    ]

    assert strategy.choose("user:1", Fleet()) == Refusal("no server is registered")
    assert strategy.choose("user:1", told(strategy, servers)) == Refusal(
        "none of 6 servers takes new users: 2 full, 1 not open, 1 of weight 0, 2 unhealthy"
    )


@every
def test_a_server_that_left_is_not_chosen_and_the_rest_are(make: Callable[[], Strategy]) -> None:
    strategy = make()
    gone = Server("a")
    told(strategy, [gone, Server("b")])
    strategy.on_server_event(gone, "removed")

    assert {chosen(strategy, key, Fleet([Server("b")])).server_id for key in KEYS[:20]} == {"b"}


@every
def test_a_strategy_that_heard_less_or_more_than_the_fleet_still_finds_who_accepts(
    make: Callable[[], Strategy],
) -> None:
    """A thread may hold an older fleet than the strategy knows."""
    strategy = make()
    told(strategy, [Server("gone1"), Server("gone2")])

    assert chosen(strategy, "user:1", Fleet([Server("not heard of")])).server_id == "not heard of"


@every
def test_a_strategy_is_known_by_its_name(make: Callable[[], Strategy]) -> None:
    assert STRATEGIES[make().name] is make


@every
def test_document_001_each_strategy_stands_alone(make: Callable[[], Strategy]) -> None:
    strategy = make()
    assert not strategy.available
    assert strategy.get_server_id("alice") is None

    strategy.on_server_event(Server("502"), "added")
    strategy.on_server_event(Server("501"), "added")
    assert strategy.available == ["501", "502"]
    assert {strategy.get_server_id(key) for key in KEYS} <= {"501", "502"}

    strategy.on_server_event(Server("501", open=False), "changed")
    assert strategy.available == ["502"]
    assert {strategy.get_server_id(key) for key in KEYS[:20]} == {"502"}

    strategy.on_server_event(Server("502"), "removed")
    assert not strategy.available
    assert strategy.get_server_id("alice") is None
    strategy.on_server_event(Server("501"), "changed")
    assert strategy.get_server_id("alice") == "501"


def test_a_server_that_the_hash_refuses_is_not_remembered() -> None:
    strategy = ConsistentHashing()
    with pytest.raises(ValueError):
        strategy.on_server_event(Server(""), "added")
    assert not strategy.available


# -- consistent hash


@pytest.mark.parametrize("hash_of", [ConsistentHash, HashRing])
def test_consistent_hash_lends_the_keys_of_who_does_not_accept_and_gives_exactly_them_back(
    hash_of: Callable[[], ConsistentHash | HashRing],
) -> None:
    hashed = hash_of()
    strategy = ConsistentHashing(hashed)
    servers = [Server(f"server{n}") for n in range(6)]
    whole = told(strategy, servers)
    before = {key: chosen(strategy, key, whole).server_id for key in KEYS}
    changed = replace(servers[2], healthy=False)
    strategy.on_server_event(changed, "changed")
    less = Fleet([changed, *servers[:2], *servers[3:]])

    during = {key: chosen(strategy, key, less).server_id for key in KEYS}

    assert before == {key: hashed.get_node(key) for key in KEYS}
    for key in KEYS:
        owner, heir = hashed.get_nodes(key, 2)
        assert during[key] == (heir if owner == "server2" else owner)
    strategy.on_server_event(servers[2], "changed")
    assert {key: chosen(strategy, key, whole).server_id for key in KEYS} == before


def test_consistent_hash_follows_a_weight() -> None:
    strategy = ConsistentHashing()
    told(strategy, [Server("a"), Server("b")])
    strategy.on_server_event(Server("b", weight=300), "changed")
    fleet = Fleet([Server("a"), Server("b", weight=300)])

    counts = Counter(chosen(strategy, f"user:{n}", fleet).server_id for n in range(8_000))

    assert counts["b"] / counts["a"] == pytest.approx(3, rel=0.1)


# -- bounded load


@pytest.mark.parametrize("epsilon", [0.05, 0.25, 1.0])
def test_bounded_load_never_passes_its_cap(epsilon: float) -> None:
    strategy = BoundedLoad(epsilon)
    fleet = told(strategy, [Server(f"server{n}", weight=100 + 100 * (n % 2)) for n in range(9)])
    for users in range(600):
        server = chosen(strategy, f"user:{users}", fleet)
        cap = math.ceil((1 + epsilon) * (users + 1) * server.weight / 1300)
        assert server.load + 1 <= cap
        grown = replace(server, load=server.load + 1)
        fleet = Fleet({**fleet.servers, server.server_id: grown}.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(SERVERS, min_size=1, max_size=8, unique_by=lambda server: server.server_id))
def test_bounded_load_gives_to_the_first_candidate_below_its_cap(servers: list[Server]) -> None:
    strategy = BoundedLoad()
    fleet = told(strategy, servers)
    accepting = [server for server in servers if server.accepting]
    users = sum(server.load for server in accepting) + 1
    weights = sum(server.weight for server in accepting)
    for key in KEYS[:5]:
        below = [
            fleet.servers[node]
            for node in strategy.hash.get_nodes(key, 9)
            if fleet.servers[node].accepting
            and fleet.servers[node].load < math.ceil(1.25 * users * fleet.servers[node].weight / weights)
        ]
        found = strategy.choose(key, fleet)
        assert found == below[0] if below else isinstance(found, Refusal)
        assert bool(below) is bool(accepting)


def test_bounded_load_is_the_consistent_hash_where_nobody_is_near_the_cap() -> None:
    bounded, plain = BoundedLoad(), ConsistentHashing()
    servers = [Server(f"server{n}", load=1_000) for n in range(5)]
    fleet = told(bounded, servers)
    told(plain, servers)
    assert [bounded.choose(key, fleet) for key in KEYS] == [plain.choose(key, fleet) for key in KEYS]


def test_bounded_load_needs_room_above_the_mean() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        BoundedLoad(0)


# -- rendezvous


def test_rendezvous_moves_only_what_it_must() -> None:
    strategy = Rendezvous()
    servers = [Server(f"server{n}") for n in range(6)]
    before = {key: chosen(strategy, key, Fleet(servers)).server_id for key in KEYS}
    less = {key: chosen(strategy, key, Fleet(servers[1:])).server_id for key in KEYS}
    more = {key: chosen(strategy, key, Fleet([*servers, Server("new")])).server_id for key in KEYS}

    assert {before[key] for key in KEYS if less[key] != before[key]} == {"server0"}
    assert {more[key] for key in KEYS if more[key] != before[key]} == {"new"}


def test_rendezvous_respects_weights() -> None:
    fleet = Fleet([Server("a"), Server("b", weight=200), Server("c", weight=300)])
    counts = Counter(chosen(Rendezvous(), f"user:{n}", fleet).server_id for n in range(12_000))
    assert counts["b"] / counts["a"] == pytest.approx(2, rel=0.15)
    assert counts["c"] / counts["a"] == pytest.approx(3, rel=0.15)


def test_rendezvous_bears_the_highest_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "xxh3_64_intdigest", lambda data: 2**64 - 1)
    fleet = Fleet([Server("b"), Server("a", weight=1)])
    assert chosen(Rendezvous(), "user:1", fleet).server_id == "a"


# -- round robin


def test_round_robin_is_smooth() -> None:
    strategy = RoundRobin()
    fleet = Fleet([Server("a", weight=5), Server("b", weight=1), Server("c", weight=1)])

    order = "".join(chosen(strategy, "", fleet).server_id for _ in range(14))

    assert order == "aabacaa" * 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_round_robin_is_fair_in_every_cycle(weights: list[int]) -> None:
    strategy = RoundRobin()
    fleet = Fleet([Server(f"server{n}", weight=weight) for n, weight in enumerate(weights)])
    for _ in range(2):
        counts = Counter(chosen(strategy, "", fleet).server_id for _ in range(sum(weights)))
        assert counts == {f"server{n}": weight for n, weight in enumerate(weights)}


def test_round_robin_passes_over_who_does_not_accept_and_owes_nothing_to_who_left() -> None:
    strategy = RoundRobin()
    both = Fleet([Server("a"), Server("b")])
    one = Fleet([Server("a"), Server("b", healthy=False)])
    assert [chosen(strategy, "", both).server_id for _ in range(2)] == ["a", "b"]
    assert [chosen(strategy, "", one).server_id for _ in range(3)] == ["a", "a", "a"]
    assert [chosen(strategy, "", both).server_id for _ in range(2)] == ["a", "b"]

    chosen(strategy, "", both)
    strategy.on_server_event(Server("a"), "removed")
    strategy.on_server_event(Server("b"), "removed")
    assert [chosen(strategy, "", both).server_id for _ in range(2)] == ["a", "b"]


# -- by load, by chance


def test_least_connections_compares_users_per_weight() -> None:
    strategy = LeastConnections()
    servers = [Server("a", load=10), Server("b", load=25, weight=300), Server("c", load=9, weight=50)]
    assert chosen(strategy, "", Fleet(servers)).server_id == "b"
    assert placed(strategy, [Server("a"), Server("b", weight=300)], 400) == {"a": 100, "b": 300}


def test_least_connections_agrees_everywhere_on_a_tie() -> None:
    servers = [Server("b"), Server("c"), Server("a")]
    assert chosen(LeastConnections(), "", Fleet(servers)).server_id == "a"


def test_random_respects_weights() -> None:
    strategy = Random(random.Random(1))
    fleet = Fleet([Server("a"), Server("b", weight=300)])
    counts = Counter(chosen(strategy, "", fleet).server_id for _ in range(8_000))
    assert counts["b"] / counts["a"] == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_two_choices_pile_up_less_than_one(seed: int) -> None:
    servers = [Server(f"server{n:02}") for n in range(40)]
    once = max(placed(Random(random.Random(seed)), servers, 800).values())
    twice = max(placed(TwoChoices(random.Random(seed)), servers, 800).values())
    assert 20 <= twice <= 23 < once


# -- singleton


def test_singleton_stays_until_its_server_does_not_accept() -> None:
    strategy = Singleton()
    a, b, c = Server("a"), Server("b"), Server("c")

    def serves(*servers: Server) -> str:
        (found,) = {chosen(strategy, key, Fleet(servers)).server_id for key in KEYS[:20]}
        return found

    assert serves(b, c) == "b"
    assert serves(a, b, c) == "b"
    assert serves(a, replace(b, open=False), c) == "a"
    assert serves(a, b, c) == "a"
    assert serves(b, c) == "b"


# -- candidates and picks


@every
@settings(max_examples=60, deadline=None)
@given(servers=st.lists(SERVERS, max_size=8, unique_by=lambda s: s.server_id), n=st.integers(1, 10))
def test_candidates_accept_and_come_once(make: Callable[[], Strategy], servers: list[Server], n: int) -> None:
    strategy = make()
    fleet = told(strategy, servers)
    found = strategy.candidates("user:1", fleet, n)
    ids = [server.server_id for server in found]
    assert len(set(ids)) == len(ids) <= n
    assert all(server.accepting for server in found)
    if strategy.name != "bounded_load":  # which names only those below the cap
        assert len(ids) == min(n, len(fleet.accepting))


@pytest.mark.parametrize(
    "name", ["consistent_hash", "hash_ring", "rendezvous", "least_connections", "singleton"]
)
def test_the_first_candidate_is_who_is_chosen_and_the_next_who_would_be_without_it(name: str) -> None:
    servers = [Server(f"s{n}", load=n, weight=100 + n % 2) for n in range(30)]
    strategy = STRATEGIES[name]()
    fleet = told(strategy, servers)
    for key in KEYS[:50]:
        first, second = strategy.candidates(key, fleet, 2)
        assert strategy.rehearsal().choose(key, fleet) == first
        fewer = Fleet(server for server in servers if server != first)
        assert strategy.rehearsal().choose(key, fewer) == second


def test_the_documented_ring_can_be_chosen_by_name() -> None:
    strategy = STRATEGIES["hash_ring"]()
    fleet = told(strategy, [Server(f"s{n}") for n in range(7)])
    ring = HashRing([f"s{n}" for n in range(7)])
    assert [chosen(strategy, key, fleet).server_id for key in KEYS] == [ring.get_node(key) for key in KEYS]


@pytest.mark.parametrize("make", [LeastConnections, TwoChoices])
def test_own_picks_count_until_the_next_report(make: Callable[[], LeastConnections | TwoChoices]) -> None:
    strategy = make()
    fleet = told(strategy, [Server(f"s{n}") for n in range(4)])
    counts = Counter(chosen(strategy, key, fleet).server_id for key in KEYS)
    assert max(counts.values()) - min(counts.values()) < 40, "not all of them on the first"
    before = strategy.picks.of("s0")
    strategy.on_server_event(replace(fleet.servers["s0"], load=before), "changed")
    assert strategy.picks.of("s0") == 0, "the report has them"
    assert strategy.picks.of("s1") > 0


def test_what_is_no_report_of_load_keeps_the_picks() -> None:
    strategy = LeastConnections()
    fleet = told(strategy, [Server("a"), Server("b", load=1)])
    assert chosen(strategy, "x", fleet).server_id == "a"
    strategy.on_server_event(replace(fleet.servers["a"], zone="z"), "changed")
    assert strategy.picks.of("a") == 1
    strategy.on_server_event(replace(fleet.servers["a"], life="2"), "changed")
    assert strategy.picks.of("a") == 0


def test_picks_that_nobody_reports_are_forgotten() -> None:
    now = 0.0
    picks = Picks(lambda: now)
    picks.note("a")
    assert picks.of("a") == 1
    now = PICK_S
    assert picks.of("a") == 0


def test_a_server_that_must_be_full_by_now_comes_last() -> None:
    strategy = LeastConnections()
    fleet = told(strategy, [Server("small", load=0, capacity=2), Server("large", load=50, capacity=100)])
    assert [chosen(strategy, key, fleet).server_id for key in "abcd"] == ["small", "small", "large", "large"]


def test_an_explanation_picks_nobody() -> None:
    strategy = LeastConnections()
    fleet = told(strategy, [Server("a"), Server("b")])
    strategy.rehearsal().choose("x", fleet)
    assert strategy.picks.of("a") == 0
