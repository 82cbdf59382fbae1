"""Rates, and what needs a person."""

from __future__ import annotations

from roost.api.drain import JobState
from roost.api.overview import (
    JobNumbers,
    OrderNumbers,
    PlatformHealth,
    ServerNumbers,
    TypeNumbers,
    WorldNumbers,
)
from roost.gateway.live import attention
from roost.gateway.live.rates import Rates


def test_a_rate_needs_two_looks_and_a_counter_that_grows() -> None:
    rates = Rates()
    rates.look(10.0)
    assert rates.of("issued", 5) is None
    rates.look(12.0)
    assert rates.of("issued", 9) == 2.0
    rates.look(13.0)
    assert rates.of("issued", 0) is None, "it began anew"
    rates.look(100.0)
    assert rates.of("issued", 50) is None, "that is too long ago"


def test_a_store_that_is_away_is_the_one_thing_to_know() -> None:
    (one,) = attention.of_health(PlatformHealth("away", ["sweep"], {"world main": None}))
    assert (one.level, one.subject) == ("error", "store")


def test_what_nobody_leads_is_told_once() -> None:
    health = PlatformHealth("ok", ["sweep"], {"world main": None, "drains": None, "bindings 0": "m-1"})
    loop, leader = attention.of_health(health)
    assert loop.subject == "loop/sweep"
    assert leader.what == "nobody leads world main, drains: is a manager running?"


def test_suspects_are_counted_by_type() -> None:
    servers = ServerNumbers(
        total=3, by_type=[TypeNumbers("game", 3, 1, 0, 0), TypeNumbers("login", 1, 0, 0, 0)]
    )
    game, login = attention.of_servers(servers, [("game", "501"), ("game", "502")])
    assert (game.what, game.subject) == ("2 servers of game are suspect", "game/501")
    assert game.todo == "look at Servers; roost instances show 501"
    assert (game.code, game.params) == ("suspects", {"n": "2", "type": "game", "server": "501"})
    assert login.what == "no server of login takes new users"


def test_people_who_wait_in_vain() -> None:
    hold = WorldNumbers("main", mode="hold", waiting=7, capacity=10)
    empty = WorldNumbers("eu", mode="auto", waiting=7, capacity=0)
    calm = WorldNumbers("us", mode="auto", waiting=7, capacity=10)
    unknown = WorldNumbers("kr")
    found = list(attention.of_worlds([hold, empty, calm, unknown]))
    assert [one.subject for one in found] == ["world/main", "world/eu"]


def test_jobs_and_orders() -> None:
    states: tuple[JobState, ...] = ("running", "paused", "failed")
    jobs = [JobNumbers(str(n), state, ["501"], 0, 0, 0.0, None) for n, state in enumerate(states)]
    assert [one.level for one in attention.of_jobs(jobs)] == ["warning", "error"]
    lost, violated = attention.of_orders(OrderNumbers(violations=2), 1)
    assert (lost.what, violated.level) == ("1 shard without an owner: their symbols wait", "error")
    assert list(attention.of_orders(OrderNumbers(violations=0), 0)) == []
