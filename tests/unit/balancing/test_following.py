"""Snapshots: the whole fleet is replaced at once, and nobody can tell it from one by one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.discovery import Change, Instance
from roost.balancing import Fleet, LoadBalancer, Refusal, Server, balancer, following
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
    assert follower.available == sorted(names)
    apply(follower, snapshot(names[1:], load=1))
    assert follower.available == sorted(names[1:])

    assert made == 2
    assert time.perf_counter() - started < 2.0, "it takes a fiftieth of that, and one by one much more"
    assert {server.load for server in follower.all_servers} == {1}


def test_many_changes_at_once_do_not_hold_up_everybody_else() -> None:
    """As when a panic of a large service begins or ends."""
    names = [f"server{n}" for n in range(MANY)]
    follower = LoadBalancer(RoundRobin())
    apply(follower, snapshot(names))
    suspects = snapshot(names).instances or []
    started = time.perf_counter()
    for one in suspects:
        one.status, one.accepting, one.willing = "suspect", False, False
        apply(follower, Change("changed", 2, "2", one.instance_id, instance=one))
    assert follower.available == []
    assert time.perf_counter() - started < 2.0, "it takes a tenth of that; a fleet for each change took five"


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


def test_the_last_heartbeat_is_shown_and_a_newer_one_alone_is_no_event() -> None:
    heard = Heard()
    balancer = LoadBalancer(heard)
    for at in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"):
        one = Instance(
            "game",
            "kr",
            server_id="501",
            instance_id="i",
            life="1",
            status="ready",
            accepting=True,
            last_heartbeat=at,
        )
        apply(balancer, Change("snapshot", 1, "1", instances=[one]))
        assert [server.last_heartbeat for server in balancer.all_servers] == [at]
    assert heard.heard == [("501", "added")]


class Burst:
    """Everything at once, without a pause in which others could run."""

    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    async def watch(self, type_: str = "*", group: str = "*") -> AsyncIterator[Change]:
        for change in self._changes:
            yield change
        await asyncio.Event().wait()


async def test_others_have_their_turn_while_thousands_of_changes_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "SLICE_S", 0.0)
    first = snapshot(["a"])
    again = [
        Change("changed", n, "1", instance=(snapshot(["a"], load=n).instances or [])[0]) for n in range(50)
    ]
    seen: set[int] = set()
    async with following.following(Burst([first, *again]), "game") as balancer:
        while balancer.all_servers[0].load < 49:
            seen.add(balancer.all_servers[0].load)
            await asyncio.sleep(0)
    assert len(seen) > 10


async def test_a_large_snapshot_is_taken_in_beside_the_loop() -> None:
    threads: list[threading.Thread] = []

    class Noting(RoundRobin):
        def on_server_event(self, server: Server, event: ServerEvent) -> None:
            threads.append(threading.current_thread())
            super().on_server_event(server, event)

    large = snapshot([f"s{n}" for n in range(following.MANY + 1)])
    async with following.following(Burst([large]), "game", balancer=LoadBalancer(Noting())) as balancer:
        assert len(balancer.all_servers) == following.MANY + 1
    assert threading.main_thread() not in threads
