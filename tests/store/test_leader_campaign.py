"""leader_campaign.lua: one leader at a time, each under a larger epoch than all before."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest

from roost.core.errors import InvalidInput, StoreError
from roost.core.lease import MAX_STEP_MS, Tenure
from roost.store import scopes
from roost.store.leader import Held, LeaderLease, Leading
from roost.store.scripts import Script
from roost.store.store import Store
from tests.store.stepped import SteppedWorld

TTL_MS = 10_000
T0 = 1_700_000_000_000_000
SECOND = 1_000_000

Campaign = Callable[..., Awaitable[Leading | Held]]


@pytest.fixture
def campaign(any_store: Store) -> Campaign:
    script: Script[Leading | Held] = any_store.library.script("store", "leader_campaign", Leading, Held)
    key = any_store.keys.leader(scopes.world("main"))

    async def campaign(
        holder: str, epoch: int | str = "", *, now: int, ttl_ms: int = TTL_MS
    ) -> Leading | Held:
        return await script(
            leader=key, holder=holder, epoch=str(epoch), ttl_ms=ttl_ms, max_step_ms=MAX_STEP_MS, now=now
        )

    return campaign


async def pass_time(campaign: Campaign, start: int, seconds: int, holder: str = "looker") -> Leading | Held:
    """Look once a second, as sweepers do; returns the last answer."""
    answer: Leading | Held = Held("", 0)
    for second in range(1, seconds + 1):
        answer = await campaign(holder, now=start + second * SECOND)
    return answer


async def test_the_first_to_ask_leads_under_the_time_of_the_store(campaign: Campaign) -> None:
    assert await campaign("a", now=T0) == Leading(T0)


async def test_another_is_told_who_leads(campaign: Campaign) -> None:
    await campaign("a", now=T0)
    assert await campaign("b", now=T0) == Held("a", T0)


async def test_a_renewal_keeps_the_epoch_and_prolongs_the_lease(campaign: Campaign) -> None:
    await campaign("a", now=T0)
    await pass_time(campaign, T0, 8)

    assert await campaign("a", T0, now=T0 + 8 * SECOND) == Leading(T0)

    assert await pass_time(campaign, T0 + 8 * SECOND, 9) == Held("a", T0)


async def test_a_leader_that_does_not_renew_is_followed_under_a_larger_epoch(campaign: Campaign) -> None:
    await campaign("a", now=T0)

    assert await pass_time(campaign, T0, 9, "b") == Held("a", T0)
    assert await campaign("b", now=T0 + 10 * SECOND) == Leading(T0 + 10 * SECOND)
    assert await campaign("a", T0, now=T0 + 10 * SECOND) == Held("b", T0 + 10 * SECOND)


async def test_a_lease_that_is_over_and_that_nobody_took_is_still_the_holders(campaign: Campaign) -> None:
    await campaign("a", now=T0)
    await campaign("a", T0, now=T0)
    for second in range(
        2, 21, 2
    ):  # its own late renewals are the only looks: the clock runs, nobody takes it
        assert await campaign("a", T0, now=T0 + second * SECOND) == Leading(T0)


async def test_over_and_renewed_late_it_keeps_its_epoch(campaign: Campaign, any_store: Store) -> None:
    await campaign("a", now=T0, ttl_ms=3000)
    key = any_store.keys.leader(scopes.world("main"))
    await any_store.call("HSET", key, "clock_ms", 60_000, key=key)

    assert await campaign("a", T0, now=T0 + SECOND) == Leading(T0)
    assert await campaign("b", now=T0 + SECOND) == Held("a", T0)


async def test_who_forgot_its_epoch_is_told_it_again(campaign: Campaign) -> None:
    """A reply was lost: asking again gives the same leadership, not a second one."""
    await campaign("a", now=T0)
    assert await campaign("a", now=T0 + SECOND) == Leading(T0)


async def test_a_holder_that_forgot_its_epoch_and_was_followed_is_told_so(
    campaign: Campaign,
) -> None:
    await campaign("a", now=T0, ttl_ms=3000)
    await campaign("a", T0, now=T0, ttl_ms=3000)
    assert await campaign("x", now=T0 + 2 * SECOND, ttl_ms=3000) == Held("a", T0)
    assert await campaign("x", now=T0 + 4 * SECOND, ttl_ms=3000) == Leading(T0 + 4 * SECOND)
    assert await campaign("a", now=T0 + 4 * SECOND) == Held("x", T0 + 4 * SECOND)


async def test_a_shorter_renewal_never_shortens_the_lease(campaign: Campaign) -> None:
    await campaign("a", now=T0, ttl_ms=60_000)
    await campaign("a", T0, now=T0, ttl_ms=3000)

    assert await pass_time(campaign, T0, 30) == Held("a", T0)


async def test_a_clock_that_jumps_an_hour_ahead_costs_one_step_only(campaign: Campaign) -> None:
    hour = 3600 * SECOND
    await campaign("a", now=T0)

    assert await campaign("b", now=T0 + hour) == Held("a", T0)
    assert await pass_time(campaign, T0 + hour, 7, "b") == Held("a", T0)
    assert await campaign("b", now=T0 + hour + 8 * SECOND) == Leading(T0 + hour + 8 * SECOND)


async def test_a_clock_that_jumps_an_hour_back_costs_nothing(campaign: Campaign) -> None:
    hour = 3600 * SECOND
    await campaign("a", now=T0)
    await pass_time(campaign, T0, 4, "b")

    assert await campaign("b", now=T0 - hour) == Held("a", T0)
    assert await pass_time(campaign, T0 - hour, 5, "b") == Held("a", T0)
    assert await campaign("b", now=T0 - hour + 6 * SECOND) == Leading(T0 + 1)


async def forget_all(store: Store) -> None:
    key = store.keys.leader(scopes.world("main"))
    await store.call("DEL", key, key=key)


async def test_a_wiped_store_grants_above_the_epoch_that_the_caller_names(
    campaign: Campaign, any_store: Store
) -> None:
    """Its clock went back too: only what the caller names is left of the former grant."""
    await campaign("a", now=T0)
    await forget_all(any_store)

    assert await campaign("a", T0, now=T0 - 3600 * SECOND) == Leading(T0 + 1)


async def test_a_clock_a_year_ahead_and_back_grants_upward_all_the_same(campaign: Campaign) -> None:
    year = 365 * 24 * 3600 * SECOND
    await campaign("a", now=T0 + year)
    await pass_time(campaign, T0 + year, 9)

    await campaign("b", now=T0 + SECOND)

    assert await campaign("b", now=T0 + 2 * SECOND) == Leading(T0 + year + 1)


async def test_a_replica_that_lost_the_last_grant_gives_its_holder_a_new_one(
    campaign: Campaign, any_store: Store
) -> None:
    """The replica still knows the holder's former grant, which has not ended by its clock."""
    await campaign("a", now=T0)
    lost = T0 + 60 * SECOND

    assert await campaign("a", lost, now=T0 + SECOND) == Leading(lost + 1)


async def test_a_replica_that_names_a_former_leader_keeps_the_rest_waiting(campaign: Campaign) -> None:
    await campaign("b", now=T0)

    assert await campaign("a", T0 + 60 * SECOND, now=T0 + SECOND) == Held("b", T0)


async def test_scopes_have_leaders_of_their_own(any_store: Store) -> None:
    leases = [any_store.leader(scopes.world(name), "m") for name in ("one", "two", "three")]
    for lease in leases:
        assert isinstance(await lease.campaign(), Tenure)


async def test_a_candidate_learns_its_tenure_and_its_rival_who_leads(any_store: Store) -> None:
    first, second = any_store.leader(scopes.world("main"), "m"), any_store.leader(scopes.world("main"), "m")

    tenure = await first.campaign()

    assert isinstance(tenure, Tenure)
    assert first.tenure == tenure
    assert await second.campaign() == Held(first.holder, tenure.epoch)
    assert second.tenure is None


def test_two_candidates_of_one_name_are_two(store: Store) -> None:
    holders = {store.leader(scopes.world("main"), "m").holder for _ in range(100)}
    assert len(holders) == 100


def test_a_lease_too_short_to_be_safe_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="too short"):
        store.leader(scopes.world("main"), "m", ttl_ms=2999)


@pytest.mark.parametrize("seed", range(25))
async def test_there_is_never_more_than_one_leader(store: Store, seed: int) -> None:
    """Random delays, lost replies, an absent store, and steps of the server's clock.

    NB: one step forward per lease life. Each further one within it takes up to `MAX_STEP_MS` more from
    the holder's margin; then only the epoch stands between two leaders.
    """
    rng = random.Random(seed)
    world = SteppedWorld(store)
    leases = [world.lease(name, ttl_ms=rng.choice([3000, 5000])) for name in "abc"]
    busy: set[LeaderLease] = set()
    epochs: dict[int, str] = {}
    last_step = world.clock.monotonic()
    depth = 0

    def check() -> None:
        holding = [lease.holder for lease in leases if lease.tenure is not None]
        assert len(holding) <= 1, f"two leaders at once: {holding}"
        for lease in leases:
            if lease.tenure is not None:
                assert epochs.setdefault(lease.tenure.epoch, lease.holder) == lease.holder
                assert lease.tenure.epoch == max(epochs), "an older epoch leads again"

    async def something() -> None:
        nonlocal last_step, depth
        check()
        await world.clock.advance(rng.choice([0.0, 0.01, 0.3, 1.0, 2.5]) * rng.random())
        check()
        now = world.clock.monotonic()
        roll = rng.random()
        if roll < 0.05 and now - last_step > 5.0:
            world.offset_s += rng.choice([0.5, 1.9, 3600.0])
            last_step = now
        elif roll < 0.1:
            world.offset_s -= rng.choice([0.5, 3.0, 3600.0])
        elif roll < 0.15:
            world.away = not world.away
        elif depth < 2:
            lease = rng.choice(leases)
            if lease not in busy:
                depth += 1
                busy.add(lease)
                try:
                    await (lease.resign() if rng.random() < 0.03 else lease.campaign())
                except StoreError:
                    pass
                finally:
                    busy.discard(lease)
                    depth -= 1
        check()

    world.on_the_way = something
    world.loses_reply = lambda: rng.random() < 0.15
    for _ in range(800):
        await something()
    assert len(epochs) >= 5, "the walk saw too few changes of leader to prove anything"
