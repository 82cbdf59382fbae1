"""The balancers of a process: each is begun once, and the one that nobody asked for makes room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from roost.api.discovery import Change
from roost.balancing import pool
from roost.balancing.pool import Balancers
from roost.core.errors import InvalidInput, StoreUnavailable
from roost.core.loops import Loops


class Discovery:
    """Tells everybody that there are no servers, and counts who listens."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.listening: Counter[str] = Counter()
        self.away = False

    async def watch(self, type_: str = "*", group: str = "*") -> AsyncIterator[Change]:
        self.begun[type_] += 1
        if self.away:
            raise StoreUnavailable
        self.listening[type_] += 1
        try:
            yield Change("snapshot", 1, "1", instances=[])
            await asyncio.Event().wait()
        finally:
            self.listening[type_] -= 1


@pytest.fixture
async def discovery(monkeypatch: pytest.MonkeyPatch) -> Discovery:
    monkeypatch.setattr(pool, "MAX_BALANCERS", 3)
    return Discovery()


async def test_who_asks_at_once_gets_the_same_one(discovery: Discovery) -> None:
    balancers = Balancers(discovery, Loops())
    found = await asyncio.gather(*(balancers.of("game", "*", "random") for _ in range(20)))
    assert len(set(map(id, found))) == 1
    assert discovery.begun["game"] == 1
    await balancers.close()
    assert discovery.listening["game"] == 0


async def test_one_more_ends_the_one_that_was_not_asked_for_the_longest_time(discovery: Discovery) -> None:
    loops = Loops()
    balancers = Balancers(discovery, loops)
    for type_ in ("a", "b", "c", "a", "d"):
        await balancers.of(type_, "*", "random")
    for n in range(50):
        await balancers.of(f"x{n}", "*", "random")
        await balancers.of("a", "*", "random")
    assert discovery.begun["a"] == 1, "who is in use stays"
    while discovery.listening.total() > 3:
        await asyncio.sleep(0)
    assert len(loops.all()) <= 4, "those that ended leave no name behind"
    await balancers.close()


async def test_zone_and_slow_start_make_another_one(discovery: Discovery) -> None:
    balancers = Balancers(discovery, Loops())
    plain = await balancers.of("game", "*", "random")
    assert await balancers.of("game", "*", "random", zone="seoul") is not plain
    assert await balancers.of("game", "*", "random", slow_start_s=30) is not plain
    assert await balancers.of("game", "*", "random") is plain
    await balancers.close()


async def test_one_that_could_not_begin_begins_again(discovery: Discovery) -> None:
    balancers = Balancers(discovery, Loops())
    discovery.away = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await balancers.of("game", "*", "random")
    discovery.away = False
    await balancers.of("game", "*", "random")
    await balancers.close()


@pytest.mark.parametrize(
    ("strategy", "zone", "slow_start_s"),
    [("magic", "", 0), ("random", "z" * 256, 0), ("random", "", -1), ("random", "", 3601)],
)
async def test_what_cannot_be_is_refused(
    discovery: Discovery, strategy: str, zone: str, slow_start_s: int
) -> None:
    balancers = Balancers(discovery, Loops())
    with pytest.raises(InvalidInput):
        await balancers.of("game", "*", strategy, zone=zone, slow_start_s=slow_start_s)
    assert not discovery.begun
