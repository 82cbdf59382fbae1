"""Snapshots: the whole fleet is replaced at once, and nobody can tell it from one by one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.discovery import Change, Instance
from roost.balancing import Fleet, LoadBalancer, Refusal, Server, balancer
from roost.balancing.following import apply
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.consistent_hash import ConsistentHashing
from roost.balancing.strategies.round_robin import RoundRobin

MANY = 5_000
KEYS = [f"user:{n}" for n in range(20)]

SERVERS = st.builds(
    Server,
    server_id=st.sampled_from("abcde"),
    load=st.integers(0, 1),
    weight=st.sampled_from([0, 100, 300]),
    healthy=st.booleans(),
    life=st.sampled_from(["1", "2"]),
)
FLEETS = st.lists(SERVERS, max_size=5, unique_by=lambda server: server.server_id)


class Heard(ConsistentHashing):
    """A consistent hash that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, ServerEvent]] = []

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        self.heard.append((server.server_id, event))
        super().on_server_event(server, event)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def one_by_one(balancer: LoadBalancer, servers: list[Server]) -> None:
    for server_id in {server.server_id for server in balancer.all_servers} - {s.server_id for s in servers}:
        balancer.unregister_server(server_id)
    for server in servers:
        balancer.register_server(server)


def by_id(servers: list[Server]) -> dict[str, Server]:
    return {server.server_id: server for server in servers}


def snapshot(names: list[str], **fields: Any) -> Change:
    seen = [
        Instance(
            type="game",
            group="kr-1",
            server_id=name,
            instance_id=f"i-{name}",
            life="1",
            status="ready",
            accepting=True,
            last_heartbeat="",
            **fields,
        )
        for name in names
    ]
    return Change("snapshot", 1, "1", instances=seen)


@settings(max_examples=60, deadline=None)
@given(before=FLEETS, ill=st.sets(st.sampled_from("abcde")), after=FLEETS, later=FLEETS)
def test_replacing_all_is_registering_each(
    before: list[Server], ill: set[str], after: list[Server], later: list[Server]
) -> None:
    clock, told = Clock(), Heard()
    at_once, each = LoadBalancer(told, clock=clock), LoadBalancer(clock=clock)
    for made in (at_once, each):
        one_by_one(made, before)
        for server_id in sorted(ill):
            made.mark_server_healthy(server_id, False)

    for servers in (after, later):
        clock.now += 10
        old = by_id(at_once.all_servers)
        told.heard.clear()

        at_once.replace_servers(servers)
        one_by_one(each, servers)

        new = by_id(at_once.all_servers)
        assert at_once.all_servers == each.all_servers
        assert at_once.available == each.available == told.available
        assert [at_once.select_server(key) for key in KEYS] == [each.select_server(key) for key in KEYS]
        assert sorted(told.heard) == sorted(
            [(name, "removed") for name in old.keys() - new.keys()]
            + [(name, "added") for name in new.keys() - old.keys()]
            + [(name, "changed") for name in new.keys() & old.keys() if new[name] != old[name]]
        )


def test_a_snapshot_of_many_is_one_new_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    class Counted(Fleet):
        def __init__(self, *args: Any, **more: Any) -> None:
            nonlocal made
            made += 1
            super().__init__(*args, **more)

    names = [f"server{n}" for n in range(MANY)]
    follower = LoadBalancer(RoundRobin())
    monkeypatch.setattr(balancer, "Fleet", Counted)
    started = time.perf_counter()

    apply(follower, snapshot(names))
    apply(follower, snapshot(names[1:], load=1))

    assert made == 2
    assert time.perf_counter() - started < 2.0, "it takes a fiftieth of that, and one by one much more"
    assert follower.available == sorted(names[1:])
    assert {server.load for server in follower.all_servers} == {1}


def test_a_snapshot_that_says_nothing_new_is_not_told() -> None:
    told = Heard()
    follower = LoadBalancer(told)
    apply(follower, snapshot(["a", "b"]))
    told.heard.clear()
    apply(follower, snapshot(["b", "a"]))
    assert told.heard == []
    apply(follower, snapshot([]))
    assert follower.select_server("user:1") == Refusal("no server is registered")


def test_what_the_strategy_refuses_ends_the_replacing_where_one_by_one_would() -> None:
    follower = LoadBalancer()
    follower.replace_servers([Server("old")])
    with pytest.raises(ValueError):
        follower.replace_servers([Server("a"), Server("bad", weight=-1), Server("b")])
    assert follower.available == ["a"]


def test_a_strategy_may_be_any_subclass() -> None:
    class Last(Strategy):
        name = "last"

        def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
            return fleet.accepting[-1] if fleet.accepting else fleet.refusal()

    follower = LoadBalancer(Last())
    follower.replace_servers([Server("a"), Server("b")])
    assert follower.explain("user:1").chosen == follower.get_server_id("user:1") == "b"
