"""Which shards an order server should own."""

from __future__ import annotations

from collections.abc import Collection

from roost.core.errors import StoreUnavailable
from roost.lanes.assignment import assign
from roost.lanes.ids import SHARDS
from roost.servers.orders.members import ABSENT_S, GRACE_S, LOOK_S, Members


class Fleet:
    """What discovery shows, and the time."""

    def __init__(self, *servers: str) -> None:
        self.servers: Collection[str] = servers
        self.now = 0.0
        self.asked = 0
        self.is_away = False

    async def list(self) -> Collection[str]:
        self.asked += 1
        if self.is_away:
            raise StoreUnavailable("the store is away")
        return self.servers

    def members(self, me: str = "a") -> Members:
        return Members(me, self.list, lambda: self.now)


async def test_servers_share_all_shards_evenly_and_each_has_one() -> None:
    fleet = Fleet("a", "b", "c")
    shares = [set(await fleet.members(me).share({}, ())) for me in ("a", "b", "c")]

    assert set().union(*shares) == set(range(SHARDS))
    assert sum(map(len, shares)) == SHARDS
    assert max(map(len, shares)) == 6


async def test_a_server_that_is_alone_has_everything_and_needs_no_discovery() -> None:
    fleet = Fleet()
    assert sorted(await fleet.members().share({}, ())) == list(range(SHARDS))


async def test_discovery_is_asked_now_and_then_and_nobody_there_changes_nothing() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    half = await members.share({}, ())
    fleet.servers = ()
    assert await members.share({}, ()) == half
    fleet.now += LOOK_S
    assert await members.share({}, ()) == half
    assert fleet.asked == 2


async def test_a_list_that_cannot_be_read_changes_nothing_and_counts_as_a_look() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    half = await members.share({}, ())

    fleet.is_away = True
    fleet.now += LOOK_S
    assert await members.share({}, ()) == half
    assert await members.share({}, ()) == half

    assert fleet.asked == 2


async def test_a_server_whose_shard_is_nobodys_for_too_long_is_left_out_until_it_owns_one_again() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    of_b = next(number for number, server in assign(["a", "b"]).items() if server == "b")
    half = await members.share({of_b: GRACE_S}, ())
    assert len(half) == 8

    fleet.now += 1
    assert len(await members.share({of_b: GRACE_S + 0.1}, ())) == SHARDS
    fleet.now += 1
    assert len(await members.share({}, ())) == SHARDS, "it is still gone"
    fleet.now += 1
    assert sorted(await members.share({}, {"b"})) == sorted(half)


async def test_one_that_was_left_out_gets_another_chance() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    of_b = next(number for number, server in assign(["a", "b"]).items() if server == "b")
    assert len(await members.share({of_b: 99.0}, ())) == SHARDS

    fleet.now += ABSENT_S
    assert len(await members.share({}, ())) == 8


async def test_shards_of_my_own_that_are_free_say_nothing_of_others() -> None:
    fleet = Fleet("a", "b")
    of_a = {number: 99.0 for number, server in assign(["a", "b"]).items() if server == "a"}
    assert sorted(await fleet.members().share(of_a, ())) == sorted(of_a)
