"""Several health checkers on one store: they share the fleet, agree, and outlive one another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from roost.api.discovery import HealthCheck, Instance, Probe, RegisterInput
from roost.discovery import health
from roost.discovery.assignment import assigned_checkers
from roost.discovery.health import HealthChecker
from roost.discovery.probes import REFUSED, Prober
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.testing import eventually

FLEET = 12
CHECKERS = 5


class Answers(Prober):
    """Says what the test wants, and remembers whom it asked."""

    def __init__(self, sick: set[str]) -> None:
        super().__init__(allow_local=True)
        self._sick = sick
        self.asked: set[str] = set()

    async def probe(self, instance: Instance) -> Probe | None:
        self.asked.add(instance.instance_id)
        return Probe(False, 0.1, REFUSED) if instance.instance_id in self._sick else Probe(True, 0.1)


class Ring:
    """A fleet and its checkers."""

    def __init__(self, store: Store, stack: AsyncExitStack) -> None:
        self.discovery = Discovery(store)
        self.sick: set[str] = set()
        self.checkers: dict[str, tuple[HealthChecker, Answers]] = {}
        self._stack = stack

    async def register(self) -> list[str]:
        given = RegisterInput(
            "game", "kr-1", private_ip="127.0.0.1", ports={"main": 1}, health=HealthCheck("tcp", "main")
        )
        return [(await self.discovery.register(given)).instance_id for _ in range(FLEET)]

    def start(self) -> HealthChecker:
        prober = Answers(self.sick)
        checker = HealthChecker(self.discovery, prober, ballot=self.discovery, interval_s=0.05)
        assert checker.voting is not None
        self.checkers[checker.voting.checker_id] = (checker, prober)
        checker.start()
        self._stack.push_async_callback(checker.stop)
        return checker

    async def suspects(self) -> set[str]:
        found = await self.discovery.discover()
        return {one.instance_id for one in found.instances if one.unhealthy}

    def agree(self, count: int) -> bool:
        return all(checker.live == count for checker, _ in self.checkers.values())

    def shared_out(self, ids: list[str]) -> bool:
        """Whether each instance is with those that everybody finds for it."""
        names = sorted(self.checkers)
        return all(
            {name for name, (checker, _) in self.checkers.items() if id_ in checker.rounds.assigned}
            == set(assigned_checkers(names, id_))
            for id_ in ids
        )


@pytest.fixture
async def ring(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ring]:
    monkeypatch.setattr(health, "VOTE_INTERVAL_S", 0.05)
    async with AsyncExitStack() as stack:
        yield Ring(store, stack)


async def test_the_fleet_is_shared_out_and_each_asks_its_own_only(ring: Ring) -> None:
    ids = await ring.register()
    for _ in range(CHECKERS):
        ring.start()
    await eventually(lambda: ring.agree(CHECKERS) and ring.shared_out(ids), "the shares")
    for _, prober in ring.checkers.values():
        prober.asked.clear()

    def all_asked() -> bool:
        return all(prober.asked == set(c.rounds.assigned) for c, prober in ring.checkers.values())

    await eventually(all_asked, "a round of each")
    assert sum(len(prober.asked) for _, prober in ring.checkers.values()) == 3 * FLEET


async def test_a_verdict_outlives_those_who_made_it_and_ends_when_the_server_answers(ring: Ring) -> None:
    ids = await ring.register()
    for _ in range(3):
        ring.start()
    await eventually(lambda: ring.agree(3), "each other")
    ring.sick.add(ids[0])

    async def is_found() -> bool:
        return await ring.suspects() == {ids[0]}

    await eventually(is_found, "the verdict")
    for name in sorted(ring.checkers)[:2]:
        checker, _ = ring.checkers.pop(name)
        await checker.stop()
        assert await ring.suspects() == {ids[0]}
    ring.start()
    await eventually(lambda: ring.agree(2) and ring.shared_out(ids), "the newcomer")
    assert await ring.suspects() == {ids[0]}
    ring.sick.clear()

    async def is_acquitted() -> bool:
        return await ring.suspects() == set()

    await eventually(is_acquitted, "its recovery")


async def test_votes_are_shown_of_the_unhealthy_and_none_are_kept_of_the_healthy(ring: Ring) -> None:
    ids = await ring.register()
    for _ in range(3):
        ring.start()
    await eventually(lambda: ring.agree(3), "each other")
    ring.sick.add(ids[0])

    async def all_voted() -> bool:
        return await ring.discovery.votes() == {ids[0]: 3}

    await eventually(all_voted, "three votes")
    checker, _ = next(iter(ring.checkers.values()))
    row = checker.servers(await ring.discovery.votes())[0]
    assert (row.instance_id, row.votes) == (ids[0], 3)
