"""The balancer: document 000's verbs, document 001's interface, zones, slow start, threads."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import SystemRandom
from typing import Any, NoReturn

import pytest

from roost.balancing import STRATEGIES, Fleet, LoadBalancer, Refusal, Server
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.consistent_hash import ConsistentHashing
from roost.balancing.strategies.least_connections import LeastConnections
from roost.balancing.strategies.random_choice import Random
from roost.balancing.strategies.round_robin import RoundRobin
from roost.balancing.strategies.singleton import Singleton

KEYS = [f"user:{n}" for n in range(200)]
every = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Listener(Strategy):
    """A strategy that keeps what it is told and chooses the first."""

    name = "listener"

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, ServerEvent]] = []

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        return fleet.accepting[0] if fleet.accepting else fleet.refusal()

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        self.heard.append((server.server_id, event))
        super().on_server_event(server, event)


def balancer_of(*servers: Server, strategy: Strategy | None = None, **options: Any) -> LoadBalancer:
    balancer = LoadBalancer(strategy, **options)
    for server in servers:
        balancer.register_server(server)
    return balancer


def picks(balancer: LoadBalancer, count: int = 200) -> Counter[str | None]:
    return Counter(balancer.get_server_id(f"user:{n}") for n in range(count))


def ids(servers: list[Server]) -> list[str]:
    return [server.server_id for server in servers]


# -- document 000's verbs


def test_an_empty_balancer_refuses() -> None:
    balancer = LoadBalancer()
    assert balancer.select_server("user:1") == Refusal("no server is registered")
    assert balancer.all_servers == balancer.healthy_servers == []
    assert balancer.available == []


def test_consistent_hash_is_the_default() -> None:
    assert isinstance(LoadBalancer().strategy, ConsistentHashing)


def test_servers_are_registered_and_unregistered() -> None:
    balancer = balancer_of(Server("a", host="h", ports={"udp": 7777}), Server("b"))

    assert ids(balancer.all_servers) == ["a", "b"]
    assert balancer.all_servers[0].ports == {"udp": 7777}
    assert balancer.unregister_server("a") is True
    assert balancer.unregister_server("a") is False
    assert set(picks(balancer)) == {"b"}


def test_the_list_of_servers_is_a_copy() -> None:
    balancer = balancer_of(Server("a"))
    balancer.all_servers.clear()
    assert ids(balancer.all_servers) == ["a"]


def test_a_player_stays_with_its_server() -> None:
    balancer = balancer_of(*(Server(f"server{n}") for n in range(5)))
    before = [balancer.get_server_id(key) for key in KEYS]
    assert [balancer.get_server_id(key) for key in KEYS] == before
    assert len(set(before)) == 5


def test_an_unhealthy_server_loses_its_players_until_it_recovers() -> None:
    balancer = balancer_of(Server("a"), Server("b"), Server("c"))
    before = [balancer.get_server_id(key) for key in KEYS]

    assert balancer.mark_server_healthy("b", False) is True

    assert ids(balancer.healthy_servers) == ["a", "c"]
    during = [balancer.get_server_id(key) for key in KEYS]
    assert all(now == old for now, old in zip(during, before, strict=True) if old != "b")
    assert "b" not in during
    balancer.mark_server_healthy("b")
    assert [balancer.get_server_id(key) for key in KEYS] == before


def test_load_is_updated_and_fills_a_server() -> None:
    balancer = balancer_of(Server("a", capacity=10), Server("b", load=5, capacity=10))
    balancer.strategy = LeastConnections()

    assert balancer.get_server_id("user:1") == "a"
    assert balancer.update_server_load("a", 9) is True
    assert balancer.get_server_id("user:1") == "b"
    balancer.update_server_load("b", 10)
    assert balancer.get_server_id("user:1") == "a"
    balancer.update_server_load("a", 10)
    assert balancer.select_server("user:1") == Refusal("none of 2 servers takes new users: 2 full")


def test_nothing_is_known_of_an_unknown_server() -> None:
    balancer = LoadBalancer()
    assert balancer.update_server_load("x", 1) is False
    assert balancer.mark_server_healthy("x") is False
    assert balancer.all_servers == []


def test_a_newer_picture_takes_the_place_of_the_old_one() -> None:
    balancer = balancer_of(Server("a", load=1, weight=100), Server("a", load=2, weight=50))
    (server,) = balancer.all_servers
    assert (server.load, server.weight) == (2, 50)


def test_a_server_that_its_strategy_refuses_is_not_registered() -> None:
    balancer = balancer_of(Server("a"))
    for bad in (Server("b", weight=-1), Server("")):
        with pytest.raises(ValueError):
            balancer.register_server(bad)
    assert ids(balancer.all_servers) == ["a"]


# -- strategies


def test_the_strategy_hears_of_each_change() -> None:
    listener = Listener()
    balancer = balancer_of(Server("a"), Server("a", load=1), strategy=listener)
    balancer.update_server_load("a", 2)
    balancer.mark_server_healthy("a", False)
    balancer.unregister_server("a")
    balancer.unregister_server("a")
    assert listener.heard == [("a", "added"), *[("a", "changed")] * 3, ("a", "removed")]


def test_a_new_strategy_learns_the_fleet_before_it_chooses() -> None:
    balancer = balancer_of(Server("a"), Server("b"), strategy=RoundRobin())
    listener = Listener()
    balancer.strategy = listener
    assert listener.heard == [("a", "added"), ("b", "added")]
    assert balancer.strategy is listener
    assert balancer.explain("user:1").strategy == "listener"


@every
def test_every_strategy_may_be_set_at_run_time(make: Callable[[], Strategy]) -> None:
    balancer = balancer_of(Server("a"), Server("b"), Server("c", healthy=False))
    balancer.strategy = make()
    balancer.register_server(Server("d"))
    balancer.unregister_server("a")
    assert set(picks(balancer)) <= {"b", "d"}


@every
def test_select_makes_no_io(make: Callable[[], Strategy], monkeypatch: pytest.MonkeyPatch) -> None:
    def io(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("select_server makes I/O")

    balancer = balancer_of(Server("a"), Server("b", healthy=False), strategy=make(), zone="z")
    monkeypatch.setattr(socket, "socket", io)
    monkeypatch.setattr("builtins.open", io)
    monkeypatch.setattr("os.open", io)
    monkeypatch.setattr("time.sleep", io)
    found = [balancer.select_server(key) for key in KEYS]
    monkeypatch.undo()
    assert {server.server_id for server in found if isinstance(server, Server)} == {"a"}


# -- zones


@every
def test_its_own_zone_comes_first(make: Callable[[], Strategy]) -> None:
    near, far = [Server("a", zone="kr"), Server("b", zone="kr")], [Server("c", zone="us"), Server("d")]
    balancer = balancer_of(*near, *far, strategy=make(), zone="kr")

    assert set(picks(balancer)) <= {"a", "b"}
    balancer.mark_server_healthy("a", False)
    assert set(picks(balancer)) == {"b"}
    balancer.mark_server_healthy("b", False)
    assert set(picks(balancer)) <= {"c", "d"}


def test_a_zone_whose_servers_all_weigh_0_is_left() -> None:
    balancer = balancer_of(Server("a", zone="kr", weight=0), Server("b", zone="us"), zone="kr")
    assert set(picks(balancer)) == {"b"}


def test_without_a_zone_every_server_is_equal() -> None:
    balancer = balancer_of(Server("a", zone="kr"), Server("b", zone="us"))
    assert set(picks(balancer)) == {"a", "b"}


# -- slow start


def test_a_new_server_grows_to_its_weight() -> None:
    clock = Clock()
    balancer = balancer_of(Server("old"), strategy=RoundRobin(), slow_start_s=60.0, clock=clock)
    clock.now += 60.0
    balancer.register_server(Server("new"))

    shares = []
    for _ in range(4):
        balancer.strategy = RoundRobin()
        shares.append(picks(balancer, 1_100)["new"])
        clock.now += 30.0

    assert shares == [100, pytest.approx(367, abs=1), 550, 550]


def test_a_server_that_comes_back_in_a_new_life_starts_slowly_again() -> None:
    clock = Clock()
    balancer = balancer_of(Server("a", life="1"), slow_start_s=60.0, clock=clock)
    clock.now += 100.0

    balancer.register_server(Server("a", life="1", load=3))
    assert balancer.all_servers[0].since == 1_000.0
    balancer.update_server_load("a", 4)
    assert balancer.all_servers[0].since == 1_000.0
    balancer.register_server(Server("a", life="2"))
    assert balancer.all_servers[0].since == 1_100.0


def test_a_slow_start_leaves_consistent_hash_where_it_is() -> None:
    servers = [Server("a"), Server("b"), Server("c")]
    slow, plain = balancer_of(*servers, slow_start_s=60.0, clock=Clock()), balancer_of(*servers)
    assert [slow.get_server_id(key) for key in KEYS] == [plain.get_server_id(key) for key in KEYS]


def test_a_cold_fleet_takes_users_and_weight_0_stays_0() -> None:
    balancer = balancer_of(
        Server("a", weight=1), Server("b", weight=0), strategy=RoundRobin(), slow_start_s=60.0, clock=Clock()
    )
    assert set(picks(balancer)) == {"a"}


# -- explain


def test_explain_names_everybody_and_why_not() -> None:
    balancer = balancer_of(
        Server("a"),
        Server("b", healthy=False),
        Server("c", open=False),
        Server("d", load=3, capacity=3),
        Server("e", weight=0),
    )

    told = balancer.explain("user:1")

    assert (told.key, told.strategy, told.chosen, told.refusal) == ("user:1", "consistent_hash", "a", "")
    assert dict(told.considered) == {
        "a": "",
        "b": "unhealthy",
        "c": "not open",
        "d": "full (3 of 3)",
        "e": "of weight 0",
    }


def test_explain_tells_the_refusal() -> None:
    told = balancer_of(Server("a", open=False)).explain("user:1")
    assert told.chosen is None
    assert told.refusal == "none of 1 servers takes new users: 1 not open"


@every
def test_explain_says_what_select_does_next_and_leaves_it_so(make: Callable[[], Strategy]) -> None:
    balancer = balancer_of(*(Server(f"server{n}", healthy=n % 3 > 0) for n in range(9)), strategy=make())
    for key in KEYS:
        told = balancer.explain(key)
        assert balancer.explain(key) == told
        assert balancer.get_server_id(key) == told.chosen


def test_explain_takes_nobodys_turn() -> None:
    balancer = balancer_of(Server("a"), Server("b"), Server("c"), strategy=RoundRobin())
    order = []
    for key in "123456":
        balancer.explain("somebody else")
        order.append(balancer.get_server_id(key))
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_explain_does_not_make_a_singleton_of_whom_it_names() -> None:
    balancer = balancer_of(Server("b"), strategy=Singleton())
    assert balancer.explain("user:1").chosen == "b"
    balancer.register_server(Server("a"))
    assert balancer.get_server_id("user:1") == "a"


def test_explain_bears_chance_that_cannot_be_copied() -> None:
    balancer = balancer_of(Server("a"), strategy=Random(SystemRandom()))
    assert balancer.explain("user:1").chosen == "a"


def test_explain_names_who_is_left_out_for_its_zone() -> None:
    balancer = balancer_of(
        Server("near", zone="kr"),
        Server("far", zone="us"),
        Server("far and full", zone="us", load=1, capacity=1),
        zone="kr",
        slow_start_s=10.0,
    )
    assert dict(balancer.explain("user:1").considered) == {
        "near": "",
        "far": "in another zone",
        "far and full": "full (1 of 1)",
    }
    balancer.mark_server_healthy("near", False)
    told = balancer.explain("user:1")
    assert (told.chosen, dict(told.considered)["far"]) == ("far", "")


# -- document 001's interface


@every
def test_document_001_speaks_to_each_strategy(make: Callable[[], Strategy]) -> None:
    balancer = LoadBalancer(make())
    assert not balancer.available
    assert balancer.get_server_id("42") is None

    balancer.on_server_event(Server("b"), "added")
    balancer.on_server_event(Server("a"), "added")
    assert balancer.available == ["a", "b"]
    assert balancer.get_server_id("42") in ("a", "b")

    balancer.on_server_event(Server("a", open=False), "changed")
    assert balancer.available == ["b"]
    assert balancer.get_server_id("42") == "b"
    balancer.on_server_event(Server("b"), "removed")
    assert not balancer.available
    assert balancer.get_server_id("42") is None


# -- threads


@every
def test_threads_register_update_and_select_at_once(make: Callable[[], Strategy]) -> None:
    """`steady` always accepts, so nobody is ever refused, and nobody unknown is ever chosen."""
    balancer = balancer_of(Server("steady"), strategy=make())
    known = {"steady", *(f"passing{n}" for n in range(3))}
    start, done = threading.Barrier(6), threading.Event()
    faults: list[object] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                start.wait()
                work()
            except Exception as fault:
                faults.append(fault)

        return run

    def change(name: str) -> None:
        for turn in range(6):
            balancer.register_server(Server(name))
            balancer.update_server_load(name, turn)
            balancer.mark_server_healthy(name, turn % 2 == 0)
            balancer.unregister_server(name)

    def select() -> None:
        while not done.is_set():
            for key in KEYS[:20]:
                found = balancer.select_server(key)
                if not isinstance(found, Server) or found.server_id not in known or not found.accepting:
                    faults.append(found)

    writers = [threading.Thread(target=guarded(lambda n=n: change(f"passing{n}"))) for n in range(3)]  # type: ignore[misc]
    readers = [threading.Thread(target=guarded(select)) for _ in range(3)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()

    assert faults == []
    assert ids(balancer.all_servers) == ["steady"]
    assert set(picks(balancer)) == {"steady"}


def test_no_update_of_many_threads_is_lost() -> None:
    balancer = LoadBalancer(Singleton())

    def register(first: int) -> None:
        for n in range(first, first + 50):
            balancer.register_server(Server(f"server{n}"))
            balancer.update_server_load(f"server{n}", n)

    threads = [threading.Thread(target=register, args=(50 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {server.server_id: server.load for server in balancer.all_servers} == {
        f"server{n}": n for n in range(200)
    }


def test_a_fleet_that_was_read_never_changes() -> None:
    balancer = balancer_of(Server("a"), Server("b"))
    held = balancer.all_servers
    copies = [replace(server) for server in held]
    balancer.mark_server_healthy("a", False)
    assert held == copies


def test_what_a_health_checker_said_outlives_newer_pictures_but_not_a_new_life() -> None:
    balancer = LoadBalancer()
    balancer.register_server(Server("501", life="1"))
    balancer.mark_server_healthy("501", False)
    balancer.register_server(Server("501", life="1", load=3))
    assert balancer.healthy_servers == []
    balancer.mark_server_healthy("501")
    balancer.register_server(Server("501", life="1", load=4))
    assert [server.load for server in balancer.healthy_servers] == [4]
    balancer.mark_server_healthy("501", False)
    balancer.register_server(Server("501", life="2"))
    assert len(balancer.healthy_servers) == 1
