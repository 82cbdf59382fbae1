"""Whatever happens: who follows the changes knows what a list says, and a balancer chooses among those,
also where a health checker speaks to it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from roost.api.discovery import Change, Override
from roost.balancing import following
from roost.balancing.balancer import LoadBalancer
from roost.balancing.strategies.round_robin import RoundRobin
from roost.discovery.health import HealthChecker
from roost.discovery.model import encode
from roost.discovery.probes import Prober
from roost.discovery.service import Discovery
from roost.testing import RunningServer
from tests.store.discovery.fleet import SECOND, Fleet, invariants
from tests.store.discovery.test_accepting import Follower
from tests.store.examples import StoreMachine, run_machine

IDS = st.sampled_from(["a", "b", "c", "d", "e"])
MANY = st.sets(IDS, min_size=1)
WORDS = st.sampled_from(["initializing", "ready", "ready", "ready", "draining"])
OVERRIDES = st.sampled_from(
    [None, Override(drain=True), Override(out_of_service=True), Override(weight=0), Override(weight=7)]
)


class Balanced(Follower):
    """A follower that is a balancer too."""

    def __init__(self, discovery: Discovery) -> None:
        self.balancer = LoadBalancer(RoundRobin())
        super().__init__(discovery, "game", "*")

    def hear(self, change: Change) -> None:
        super().hear(change)
        following.apply(self.balancer, change)

    async def agrees(self) -> None:
        await super().agrees()
        named = [i.server_id or i.instance_id for i in self.known.values() if i.accepting]
        assert self.balancer.available == sorted(named)


class Checked(Balanced):
    """To its balancer a health checker speaks that itself finds nothing wrong."""

    def __init__(self, discovery: Discovery, *, checker_hears_first: bool) -> None:
        super().__init__(discovery)
        self._checker = HealthChecker(discovery, Prober(allow_local=True), "game", balancer=self.balancer)
        self._checker_hears_first = checker_hears_first

    def hear(self, change: Change) -> None:
        hears = (self._checker.hear, super().hear)
        for hear in hears if self._checker_hears_first else hears[::-1]:
            hear(change)


class Followed(StoreMachine):
    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        self.fleet = Fleet(self.store)
        self.discovery = Discovery(self.store)
        self.do(self.fleet.sweep())
        self.followers = self.do(self._follow())

    async def _follow(self) -> list[Follower]:
        wanted = [("*", "*"), ("game", "eu"), ("*", "*", ["map=ice"])]
        return [
            Balanced(self.discovery),
            *(Follower(self.discovery, *one) for one in wanted),
            Checked(self.discovery, checker_hears_first=True),
            Checked(self.discovery, checker_hears_first=False),
        ]

    @rule(
        ids=MANY,
        group=st.sampled_from(["eu", "eu", "eu", "us"]),
        named=st.booleans(),
        status=WORDS,
        load=st.sampled_from([0, 39, 40]),
        ice=st.booleans(),
    )
    def register(self, ids: set[str], group: str, named: bool, status: str, load: int, ice: bool) -> None:
        for id_ in sorted(ids):
            more = {"labels": {"map": "ice" if ice else "fire"}, "server_id": f"50{id_}" if named else ""}
            self.do(self.fleet.add(id_, group=group, status=status, load=load, capacity=40, **more))

    @rule(ids=MANY, status=WORDS, load=st.sampled_from(["", 0, 39, 40]))
    def beat(self, ids: set[str], status: str, load: int | str) -> None:
        for id_ in sorted(ids):
            self.do(self.fleet.beat(id_, status=status, load=load))

    @rule(ids=MANY)
    def hang(self, ids: set[str]) -> None:
        for id_ in sorted(ids):
            self.do(self.fleet.beat(id_, tick_age_ms=3_600_000))

    @rule(seconds=st.sampled_from([1, 15, 31]))
    def fall_silent(self, seconds: int) -> None:
        for _ in range(seconds):
            self.fleet.now += SECOND
            self.do(self.fleet.sweep())

    @rule(ids=st.sets(IDS))
    def find_unhealthy(self, ids: set[str]) -> None:
        index = self.do(invariants(self.store)).index
        self.do(self.fleet.vote("x", *((id_, index[id_].life) for id_ in sorted(ids) if id_ in index)))

    @rule(id_=IDS, override=OVERRIDES)
    def override(self, id_: str, override: Override | None) -> None:
        self.do(self.fleet.override(id_, encode(override) if override is not None else b""))

    @rule(ids=MANY)
    def remove(self, ids: set[str]) -> None:
        for id_ in sorted(ids):
            self.do(self.fleet.remove(id_))

    @rule(which=st.integers(1, 3))
    def hang_up_and_go_on(self, which: int) -> None:
        self.do(self.followers[which].go_on())

    @invariant()
    def everybody_knows_what_a_list_says(self) -> None:
        self.do(invariants(self.store))
        for follower in self.followers:
            self.do(follower.agrees())

    def teardown(self) -> None:
        for follower in self.followers:
            self.do(follower.stop())
        super().teardown()


def test_who_follows_knows_what_a_list_says(server: RunningServer) -> None:
    run_machine(Followed, server, examples=25)
