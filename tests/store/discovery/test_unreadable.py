"""One bad value is refused, and one bad row is left out and named: its neighbours do not suffer for it."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from roost.api.discovery import Beat, RegisterInput
from roost.balancing.balancer import LoadBalancer
from roost.core.errors import InvalidInput, UnknownInstance
from roost.discovery.probes import Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.store import scopes
from roost.store.store import Store
from roost.testing import eventually
from tests.store.discovery.fleet import Fleet, invariants, read_state
from tests.store.discovery.test_accepting import add, following

SERVICE = "game:eu"
BAD_BEATS = {
    "a float": '[false,false,"ready",3.5,0,1,LIFE,{}]',
    "an odd status": '[false,false,"asleep",0,0,1,LIFE,{}]',
    "a list": '[false,false,"ready",0,0,1,LIFE,[1]]',
    "a word": '[false,false,"ready",many,0,1,LIFE,{}]',
    "nothing": "",
    "no text": "\x00",
    "depth": '[false,false,"ready",0,0,1,LIFE,{"a":' + "[" * 2000 + "]" * 2000 + "}]",
}


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


# -- at the verb


class Odd:
    """Nothing that JSON knows."""


@pytest.mark.parametrize(
    "fields",
    [
        {"load": 7 / 2},
        {"load": "3"},
        {"load": True},
        {"status": "asleep"},
        {"status": 'ready","'},
        {"performance": [1, 2]},
        {"performance": "fast"},
        {"performance": {"fps": Odd()}},
        {"performance": {"name": "\ud800"}},
    ],
)
async def test_a_beat_or_a_registration_with_an_odd_value_is_refused(
    fleet: Fleet, discovery: Discovery, fields: dict[str, Any]
) -> None:
    await add(discovery, "a", "b")
    with pytest.raises(InvalidInput):
        await discovery.heartbeat("a", Beat(**fields))
    with pytest.raises(InvalidInput):
        await add(discovery, "c", **fields)
    assert [i.instance_id for i in (await discovery.discover()).instances] == ["a", "b"]
    await invariants(fleet.store)


@pytest.mark.parametrize(
    "fields",
    [
        {"capacity": 10.0},
        {"capacity": None},
        {"weight": 1.5},
        {"labels": {"map": 7}},
        {"labels": ["ice"]},
        {"ports": {"game": 7777.0}},
        {"hostname": 5},
        {"ttl_seconds": "30"},
        {"system_info": [1]},
        {"zone": "\ud800"},
        {"former_life": 5},
    ],
)
async def test_a_registration_with_an_odd_value_is_refused(discovery: Discovery, fields: Any) -> None:
    with pytest.raises(InvalidInput):
        await add(discovery, "a", **fields)
    assert (await discovery.discover()).instances == []


async def test_a_beat_whose_age_is_no_whole_number_is_refused(discovery: Discovery) -> None:
    await add(discovery, "a")
    with pytest.raises(InvalidInput):
        await discovery.heartbeat("a", Beat(tick_age_ms=cast(int, 0.5)))


# -- in the store


@pytest.fixture(params=list(BAD_BEATS))
async def damaged(request: pytest.FixtureRequest, fleet: Fleet) -> Fleet:
    """Three instances; the last beat of b is nothing that anybody could read."""
    lives = {id_: await fleet.add(id_) for id_ in ("a", "b", "c")}
    bad = BAD_BEATS[request.param].replace("LIFE", str(lives["b"]))
    await fleet.damage("HSET", "beats", "b", bad, service=SERVICE)
    return fleet


async def test_a_bad_row_is_left_out_of_lists_counted_and_named_once(
    damaged: Fleet, discovery: Discovery, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert [i.instance_id for i in (await discovery.discover()).instances] == ["a", "c"]
    assert discovery.unreadable.counts == {"record": 3}
    named = [record for record in caplog.records if "unreadable" in record.message]
    assert len(named) == 1
    assert "b" in named[0].__dict__["named"]


async def test_a_bad_row_is_left_out_by_watchers_and_balancers(damaged: Fleet, discovery: Discovery) -> None:
    async with following(discovery) as heard, LoadBalancer.following(discovery, "game") as balancer:
        assert balancer.available == ["a", "c"]
        await damaged.override("b", b'{"drain":true}')  # tells the bad beat to the feed
        await damaged.remove("a")
        await heard.agrees()
        await eventually(lambda: balancer.available == ["c"], "it goes on")
    assert discovery.unreadable.counts["entry"] >= 1


async def test_a_bad_row_is_read_as_unknown_and_an_operator_can_remove_it(
    damaged: Fleet, discovery: Discovery
) -> None:
    with pytest.raises(UnknownInstance, match="cannot be read"):
        await discovery.get("b")
    await discovery.remove("b", cause="removed")
    await invariants(damaged.store)


async def test_whoever_has_a_bad_row_mends_it_by_beating(damaged: Fleet, discovery: Discovery) -> None:
    """Its whole beat takes the place of the bad one, or it is told to register again."""
    try:
        await discovery.heartbeat("b", Beat(status="ready", load=0, performance={}))
    except UnknownInstance:
        await discovery.register(RegisterInput("game", "eu", instance_id="b", capacity=100))
    assert [i.instance_id for i in (await discovery.discover()).instances] == ["a", "b", "c"]
    await invariants(damaged.store)


async def test_a_bad_row_of_somebody_silent_ends_in_the_sweep(damaged: Fleet) -> None:
    found = await damaged.pass_time(31, beating=["a", "c"])
    assert found.ended == ["b"]
    await invariants(damaged.store)


@pytest.mark.parametrize("packed", ["garbage", "", "game:eu\tx\t\t\t30000\t100", "\x00"])
async def test_a_bad_entry_of_the_index_ends_no_sweep_and_is_mended(
    fleet: Fleet, discovery: Discovery, packed: str
) -> None:
    for id_ in ("a", "b", "c"):
        await fleet.add(id_, server_id=f"50{id_}")
    await fleet.damage("HSET", "index", "b", packed)

    await fleet.pass_time(16, beating=["a"])
    with pytest.raises(UnknownInstance):
        await discovery.heartbeat("b", Beat())
    reaper = Reaper(discovery, Prober(allow_local=True))
    assert await reaper.repair() > 0

    assert (await invariants(fleet.store)).index.keys() == {"a", "c"}
    assert await reaper.repair() == 0


async def test_an_operator_can_remove_whom_the_index_has_garbage_for(
    fleet: Fleet, discovery: Discovery
) -> None:
    await fleet.add("a")
    await fleet.add("b", server_id="502")
    await fleet.damage("HSET", "index", "b", "garbage")
    await discovery.remove("b", cause="removed")
    state = await invariants(fleet.store)
    assert state.index.keys() == {"a"}
    assert state.gone["b"].startswith("removed")


async def test_a_record_that_is_no_json_ends_no_repair(fleet: Fleet, discovery: Discovery) -> None:
    await fleet.add("a")
    await fleet.damage("HSET", "records", "ghost", "no json", service=SERVICE)
    await Reaper(discovery, Prober(allow_local=True)).repair()
    assert (await read_state(fleet.store)).index.keys() == {"a"}
    assert [i.instance_id for i in (await discovery.discover()).instances] == ["a"]


async def test_an_order_that_nobody_can_read_takes_its_server_out_and_nobody_else(
    fleet: Fleet, discovery: Discovery
) -> None:
    """Whatever the operator ordered, it was not to send it more users."""
    for id_ in ("a", "b"):
        await fleet.add(id_)
    await fleet.damage("HSET", "overrides", "b", '{"drain":"perhaps"}')
    found = {i.instance_id: i.accepting for i in (await discovery.discover()).instances}
    assert found == {"a": True, "b": False}
    detail = await discovery.get("b")
    assert detail.instance is not None
    assert not detail.instance.accepting
    await discovery.override("b", None)
    assert all(i.accepting for i in (await discovery.discover()).instances)


async def test_a_feed_entry_without_its_fields_is_skipped(fleet: Fleet, discovery: Discovery) -> None:
    await fleet.add("a")
    async with following(discovery) as heard:
        last = (await fleet.feed())[-1]
        key = fleet.store.keys.feed(scopes.discovery())
        where = (f"{last.rev + 1}-0", "at", last.at + 1, "prevAt", last.at)
        await fleet.store.call("XADD", key, *where, "event", b"\xff", key=key)
        await fleet.add("b")
        await heard.agrees()
    assert discovery.unreadable.counts == {"entry": 1}


async def test_a_bad_line_of_the_history_is_left_out(fleet: Fleet, discovery: Discovery) -> None:
    await fleet.add("a")
    await fleet.damage("RPUSH", "history", "garbage", service="a")
    assert [line.event for line in (await discovery.get("a")).history] == ["added"]
