"""Which shards an order server should own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import pytest

from roost.core.errors import StoreUnavailable
from roost.lanes.assignment import assign
from roost.lanes.ids import SHARDS
from roost.servers.orders.members import ABSENT_S, GRACE_S, LOOK_S, Members
from roost.servers.orders.settings import parse_shards

LEASE_S = 6
DISCOVERY_S = 30
LONG_S = 10 * int(ABSENT_S)


class Fleet:
    """What discovery shows, and the time."""

    def __init__(self, *servers: str) -> None:
        self.servers: Collection[str] = servers
        self.fixed: dict[str, Collection[int]] = {}
        self.now = 0.0
        self.asked = 0
        self.is_away = False

    async def list(self) -> Mapping[str, Collection[int]]:
        self.asked += 1
        if self.is_away:
            raise StoreUnavailable("the store is away")
        return {server: self.fixed.get(server, {}) for server in self.servers}

    def members(self, me: str = "a") -> Members:
        return Members(me, self.list, lambda: self.now)


async def test_servers_share_all_shards_evenly_and_each_has_one() -> None:
    fleet = Fleet("a", "b", "c")
    shares = [set(await fleet.members(me).share({}, {})) for me in ("a", "b", "c")]

    assert set().union(*shares) == set(range(SHARDS))
    assert sum(map(len, shares)) == SHARDS
    assert max(map(len, shares)) == 6


async def test_a_server_that_is_alone_has_everything_and_needs_no_discovery() -> None:
    fleet = Fleet()
    assert sorted(await fleet.members().share({}, {})) == list(range(SHARDS))


async def test_discovery_is_asked_now_and_then_and_nobody_there_changes_nothing() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    half = await members.share({}, {})
    fleet.servers = ()
    assert await members.share({}, {}) == half
    fleet.now += LOOK_S
    assert await members.share({}, {}) == half
    assert fleet.asked == 2


async def test_a_list_that_cannot_be_read_changes_nothing_and_counts_as_a_look() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    half = await members.share({}, {})

    fleet.is_away = True
    fleet.now += LOOK_S
    assert await members.share({}, {}) == half
    assert await members.share({}, {}) == half

    assert fleet.asked == 2


async def test_a_server_whose_shard_is_nobodys_for_too_long_is_left_out_until_it_owns_one_again() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    of_b = next(number for number, server in assign(["a", "b"]).items() if server == "b")
    half = await members.share({of_b: GRACE_S}, {})
    assert len(half) == 8

    fleet.now += 1
    assert len(await members.share({of_b: GRACE_S + 0.1}, {})) == SHARDS
    fleet.now += 1
    assert len(await members.share({}, {})) == SHARDS, "it is still gone"
    fleet.now += 1
    assert sorted(await members.share({}, {of_b: "b"})) == sorted(half)


async def test_one_that_was_left_out_gets_another_chance() -> None:
    fleet = Fleet("a", "b")
    members = fleet.members()
    of_b = next(number for number, server in assign(["a", "b"]).items() if server == "b")
    assert len(await members.share({of_b: 99.0}, {})) == SHARDS

    fleet.now += ABSENT_S
    assert len(await members.share({}, {})) == 8


async def test_shards_of_my_own_that_are_free_say_nothing_of_others() -> None:
    fleet = Fleet("a", "b")
    of_a = {number: 99.0 for number, server in assign(["a", "b"]).items() if server == "a"}
    assert sorted(await fleet.members().share(of_a, {})) == sorted(of_a)


async def test_shards_that_a_server_is_fixed_to_are_its_own_and_the_others_share_the_rest() -> None:
    fleet = Fleet("a", "b", "c", "d")
    fleet.fixed = {"c": range(4), "d": (3, 4)}
    shares = [set(await fleet.members(me).share({}, {})) for me in ("a", "b")]

    assert shares[0] | shares[1] == set(range(5, SHARDS))
    assert sorted(map(len, shares)) == [5, 6]


class Server:
    """An order server as its ownership steps it: leases are asked for, renewed and given up."""

    def __init__(self, fleet: Trading, name: str, shards: str, unable: Collection[int]) -> None:
        self.fixed = parse_shards(shards)
        self._fleet, self._name = fleet, name
        self._members = fleet.members(name)
        self._free_since: dict[int, float] = {}
        self._owners: dict[int, str] = {}
        self._unable = unable

    async def step(self) -> None:
        now, leases = self._fleet.now, self._fleet.leases
        free_s = {number: now - since for number, since in self._free_since.items()}
        wanted = self.fixed or await self._members.share(free_s, self._owners)
        for number in range(SHARDS):
            owner = leases.get(number)
            if number in wanted and number not in self._unable:
                self._free_since.pop(number, None)
                leases.setdefault(number, self._name)
            elif owner == self._name:
                del leases[number]
            elif owner is None:
                self._free_since.setdefault(number, now)
            else:
                self._free_since.pop(number, None)
            if (holder := leases.get(number, self._name)) != self._name:
                self._owners[number] = holder
            else:
                self._owners.pop(number, None)


class Trading(Fleet):
    """Order servers, discovery and the leases of shards, second by second."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[int, str] = {}
        self.living: dict[str, Server] = {}

    def start(
        self, name: str, shards: str = "auto", *, unable: Collection[int] = (), label: bool = True
    ) -> None:
        """`unable`: shards that it fails to take over. `label`: whether discovery knows its list."""
        server = self.living[name] = Server(self, name, shards, unable)
        self.servers = [*self.servers, name]
        if label:
            self.fixed[name] = server.fixed

    async def pass_s(self, seconds: int) -> list[dict[int, str]]:
        """The leases after each second."""
        seen: list[dict[int, str]] = []
        for _ in range(seconds):
            self.now += 1
            for server in list(self.living.values()):
                await server.step()
            seen.append(dict(self.leases))
        return seen

    async def dies(self, name: str) -> None:
        """Its leases end, and much later its entry in discovery."""
        del self.living[name]
        await self.pass_s(LEASE_S)
        self.leases = {number: owner for number, owner in self.leases.items() if owner != name}
        await self.pass_s(DISCOVERY_S)
        self.servers = [server for server in self.servers if server != name]
        await self.pass_s(int(LOOK_S))

    async def settled(self) -> dict[str, list[int]]:
        """Who owns what in the end, for ever."""
        await self.pass_s(20)
        seen = await self.pass_s(LONG_S)
        assert changes(seen) == 0, "shards change hands for ever"
        shares: dict[str, list[int]] = {}
        for number, owner in sorted(seen[-1].items()):
            shares.setdefault(owner, []).append(number)
        return shares


def changes(seen: list[dict[int, str]]) -> int:
    return sum(before != after for before, after in pairwise(seen))


FIRST_FOUR, REST = list(range(4)), list(range(4, SHARDS))


@pytest.mark.parametrize("order", [("901", "902"), ("902", "901")])
async def test_a_fixed_list_beside_auto_comes_to_rest(order: tuple[str, str]) -> None:
    trading = Trading()
    for name in order:
        trading.start(name, "0-3" if name == "901" else "auto")
        await trading.pass_s(30)
    assert await trading.settled() == {"901": FIRST_FOUR, "902": REST}


async def test_a_fixed_list_beside_two_on_auto_comes_to_rest_also_when_one_dies_and_comes_back() -> None:
    trading = Trading()
    trading.start("902")
    trading.start("903")
    trading.start("901", "0-3")
    shares = await trading.settled()
    assert shares["901"] == FIRST_FOUR
    assert len(shares["902"]) == len(shares["903"]) == 6

    await trading.dies("903")
    assert await trading.settled() == {"901": FIRST_FOUR, "902": REST}

    trading.start("903")
    assert await trading.settled() == shares

    await trading.dies("901")
    rest = await trading.settled()
    assert len(rest["902"]) == len(rest["903"]) == 8

    trading.start("901", "0-3")
    assert await trading.settled() == shares


async def test_shards_of_a_dead_server_are_owned_before_discovery_misses_it() -> None:
    trading = Trading()
    for name, shards in (("901", "0-3"), ("902", "auto"), ("903", "auto")):
        trading.start(name, shards)
    await trading.settled()

    for name in ("901", "903"):
        del trading.living[name]
        trading.leases = {number: owner for number, owner in trading.leases.items() if owner != name}
        await trading.pass_s(int(GRACE_S) + 3)
        assert len(trading.leases) == SHARDS


@pytest.mark.parametrize("order", [("901", "902", "903"), ("903", "902", "901")])
async def test_a_list_that_discovery_does_not_know_comes_to_rest_too(order: tuple[str, ...]) -> None:
    """A server of a version before it told: its own are perhaps not all of the list, but nothing flaps."""
    trading = Trading()
    for name in order:
        trading.start(name, "0-3" if name == "901" else "auto", label=False)
        await trading.pass_s(30)
    shares = await trading.settled()
    assert set(shares["901"]) <= set(FIRST_FOUR)
    assert sorted(number for share in shares.values() for number in share) == list(range(SHARDS))


async def test_a_shard_that_its_server_fails_at_goes_to_another_and_stays_there() -> None:
    trading = Trading()
    of_901 = [number for number, name in assign(["901", "902", "903"]).items() if name == "901"]
    trading.start("901", unable=of_901[:2])
    trading.start("902")
    trading.start("903")

    shares = await trading.settled()

    assert shares["901"] == of_901[2:]
    assert sorted(number for share in shares.values() for number in share) == list(range(SHARDS))
    await trading.dies("901")
    trading.start("901")
    assert len((await trading.settled())["901"]) == len(of_901), "it gets them once it is started again"


async def test_one_that_takes_nothing_gets_its_chances_ever_more_rarely() -> None:
    trading = Trading()
    trading.start("901", unable=range(SHARDS))
    trading.start("902")
    await trading.pass_s(30)

    seen = await trading.pass_s(20 * int(ABSENT_S))
    assert changes(seen) == 2 * 4, "after 1, 3, 7 and 15 minutes shards are given up, and taken back"
