"""campaign.lua, resign.lua and shards.lua: one owner of a shard at a time, whose ids nobody else has made."""

from __future__ import annotations

import random

from roost.core.errors import StoreRefused
from roost.lanes.scripts import Held, Leading, NotLeading, Resigned, Shard
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.examples import SEEDS, for_each
from tests.store.lanes.town import SECOND, T0, TTL_MS, ShardTown

MARK = T0 // 1000
HOUR = 3600 * SECOND
YEAR = 365 * 24 * HOUR


async def test_the_first_to_ask_owns_the_shard_under_the_time_of_the_store(any_town: ShardTown) -> None:
    assert await any_town.campaign("a", mark=MARK) == Leading(T0, T0, 0)


async def test_another_is_told_who_owns_it_and_where(any_town: ShardTown) -> None:
    await any_town.campaign("a")
    assert await any_town.campaign("b") == Held("a", T0, "a:9000", "server-a")


async def test_a_renewal_keeps_the_epoch_and_prolongs_the_lease(any_town: ShardTown) -> None:
    await any_town.lead("a")
    await any_town.pass_seconds(8)
    assert (await any_town.lead("a", T0)).epoch == T0
    await any_town.pass_seconds(9)
    assert isinstance(await any_town.campaign("b"), Held)


async def test_who_does_not_renew_is_followed_under_a_larger_epoch(any_town: ShardTown) -> None:
    await any_town.lead("a")
    await any_town.pass_seconds(9)
    any_town.now += SECOND
    next_one = await any_town.lead("b")
    assert next_one.epoch == T0 + 10 * SECOND
    assert await any_town.campaign("a", T0) == Held("b", next_one.epoch, "b:9000", "server-b")


async def test_a_lost_answer_is_given_again(town: ShardTown) -> None:
    """Also where its ids begin: not above what it has only asked for itself."""
    await town.lead("z", mark=MARK)
    await town.resign("z", T0, mark=MARK)
    first = await town.lead("a", mark=MARK + 10_000)
    assert first.high_water_ms == MARK
    assert await town.lead("a", mark=MARK + 10_000) == first


async def test_the_next_owner_begins_above_what_the_former_might_have_used(town: ShardTown) -> None:
    owner = await town.lead("a", mark=MARK)
    await town.lead("a", owner.epoch, mark=MARK + 5000)
    await town.pass_seconds(9)
    town.now += SECOND
    assert (await town.lead("b", mark=1)).high_water_ms == MARK + 5000


async def test_a_mark_is_never_lowered_by_asking(town: ShardTown) -> None:
    owner = await town.lead("a", mark=MARK + 5000)
    await town.lead("a", owner.epoch, mark=MARK)
    assert await town.raw("HGET", "leader", "high_water_ms") == str(MARK + 5000).encode()


async def test_who_resigns_leaves_the_mark_that_it_used(town: ShardTown) -> None:
    owner = await town.lead("a", mark=MARK + 10_000)
    assert await town.resign("a", owner.epoch, mark=MARK + 3) == Resigned()
    town.now += 1
    next_one = await town.lead("b", mark=MARK + 10_000)
    assert (next_one.epoch > owner.epoch, next_one.high_water_ms) == (True, MARK + 3)
    assert await town.resign("b", next_one.epoch, mark=0) == Resigned(), "it made no id"
    assert (await town.lead("c")).high_water_ms == MARK + 3


async def test_only_the_owner_resigns(town: ShardTown) -> None:
    owner = await town.lead("a", mark=MARK)
    assert await town.resign("b", owner.epoch) == NotLeading()
    assert await town.resign("a", owner.epoch - 1) == NotLeading()
    assert (await town.look()).holder == "a"
    assert await town.resign("a", owner.epoch, mark=MARK) == Resigned()
    assert await town.resign("a", owner.epoch) == NotLeading()


async def test_a_wiped_store_grants_above_the_log_and_above_what_the_caller_names(
    any_town: ShardTown,
) -> None:
    owner = await any_town.lead("a", mark=MARK)
    await any_town.append(owner.epoch + YEAR, 1)
    await any_town.raw("DEL", "leader")
    any_town.now -= HOUR
    granted = await any_town.lead("a", owner.epoch)
    assert granted.epoch == owner.epoch + YEAR + 1
    await any_town.raw("DEL", "leader")
    await any_town.raw("DEL", "log")
    assert (await any_town.lead("a", granted.epoch)).epoch == granted.epoch + 1


async def test_a_look_shows_the_owner_and_lets_no_time_pass(any_town: ShardTown) -> None:
    assert await any_town.look() == Shard("", 0, "", "", "", 0)
    await any_town.campaign("a", status='{"seq":"7"}')
    assert await any_town.look() == Shard("a", T0, "a:9000", "server-a", '{"seq":"7"}', TTL_MS)
    any_town.now += SECOND
    assert (await any_town.look()).left_ms == TTL_MS - 1000
    any_town.now += HOUR
    assert (await any_town.look()).left_ms == TTL_MS - 2000, "a stepped clock costs one step"
    await any_town.resign("a", T0)
    assert await any_town.look() == Shard("", T0, "", "", "", 0)


async def test_a_former_owner_is_refused_by_the_store_itself(any_town: ShardTown) -> None:
    """After the marker of the next owner, also when the log was trimmed to nothing."""
    old = await any_town.lead("a")
    await any_town.append(old.epoch, 1)
    await any_town.pass_seconds(9)
    any_town.now += SECOND
    new = await any_town.lead("b")
    await any_town.append(old.epoch, 2)
    await any_town.append(new.epoch, 3)
    for _ in range(2):
        for seq in (3, 4, 2**40):
            assert await refused(any_town, old.epoch, seq)
        assert await refused(any_town, new.epoch, 3), "and an entry is never written twice"
        assert await any_town.raw("XTRIM", "log", "MAXLEN", 0) in (3, 0)
    await any_town.append(new.epoch, 4)


async def refused(town: ShardTown, epoch: int, seq: int) -> bool:
    """Whether the store takes no such entry."""
    try:
        await town.append(epoch, seq)
    except StoreRefused as error:
        return "equal or smaller" in error.message
    return False


class Owner:
    """What a process knows of its own tenure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.used_ms = 0
        """The largest time of its ids."""
        self.may_use_ms = 0
        self.leads = False


async def check_walk(store: Store, rng: random.Random) -> None:
    """Owners crash, resign, renew and use ids, on a clock that steps, in a store that forgets its leader."""
    town = ShardTown(store)
    owners = [Owner(name) for name in "abc"]
    highest_epoch = used_ms = grants = 0
    logged: set[int] = set()
    for _ in range(120):
        owner = rng.choice(owners)
        roll = rng.random()
        if roll < 0.55:
            asked = max(town.now // 1000, owner.used_ms) + 3000
            answer = await town.campaign(owner.name, owner.epoch or "", mark=asked)
            owner.leads = isinstance(answer, Leading)
            if isinstance(answer, Leading):
                if answer.epoch != owner.epoch:
                    assert answer.epoch > highest_epoch, "an epoch is granted once, and upward"
                    assert answer.high_water_ms >= used_ms, "ids begin above all that were used"
                    highest_epoch, grants = answer.epoch, grants + 1
                    owner.used_ms = max(answer.high_water_ms, owner.used_ms)
                    await town.append(answer.epoch, grants)
                    logged.add(answer.epoch)
                owner.epoch, owner.may_use_ms = answer.epoch, max(asked, owner.may_use_ms)
        elif roll < 0.75 and owner.leads and owner.epoch == highest_epoch:
            owner.used_ms = max(owner.used_ms, rng.randint(0, owner.may_use_ms))
            used_ms = max(used_ms, owner.used_ms)
        elif roll < 0.8 and owner.leads:
            await town.resign(owner.name, owner.epoch, mark=owner.used_ms)
            owner.leads = False
        elif roll < 0.82:
            await town.raw("DEL", "leader")
            used_ms = 0  # of what it forgot, only the log's epochs are left
            for one in owners:
                one.leads = False
        elif roll < 0.85:
            town.now += rng.choice([-HOUR, HOUR, -3 * SECOND])
        elif roll < 0.88:
            at = owners.index(owner)
            owners[at] = Owner(owner.name + "'")  # a new life has a new name and knows nothing
        else:
            town.now += rng.randint(1, 3 * SECOND)
        if owner.epoch and owner.epoch < max(logged, default=0):
            assert await refused(town, owner.epoch, 10**6)
    assert grants > 3


def test_epochs_only_rise_and_ids_are_never_made_twice(server: RunningServer) -> None:
    for_each(server, SEEDS, check_walk, examples=40)
