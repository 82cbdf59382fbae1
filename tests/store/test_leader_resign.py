"""leader_resign.lua: who resigns frees the leadership at once, and only its own."""

from __future__ import annotations

from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.leader import Held, NotLeading, Resigned
from roost.store.store import Store


async def test_after_a_resignation_another_leads_at_once_under_a_larger_epoch(any_store: Store) -> None:
    first, second = any_store.leader(scopes.world("main"), "a"), any_store.leader(scopes.world("main"), "b")
    before = await first.campaign()

    await first.resign()
    tenure = await second.campaign()

    assert first.tenure is None
    assert isinstance(before, Tenure)
    assert isinstance(tenure, Tenure)
    assert tenure.epoch > before.epoch


async def test_who_resigned_and_asks_again_gets_a_new_epoch(any_store: Store) -> None:
    lease = any_store.leader(scopes.world("main"), "a")
    before = await lease.campaign()
    await lease.resign()

    tenure = await lease.campaign()

    assert isinstance(before, Tenure)
    assert isinstance(tenure, Tenure)
    assert tenure.epoch > before.epoch


async def test_only_the_holder_under_its_epoch_can_resign(any_store: Store) -> None:
    resign = any_store.library.script("store", "leader_resign", Resigned, NotLeading)
    key = any_store.keys.leader(scopes.world("main"))
    lease, rival = any_store.leader(scopes.world("main"), "a"), any_store.leader(scopes.world("main"), "b")
    epoch = (await lease.campaign()).epoch

    assert await resign(leader=key, holder=rival.holder, epoch=str(epoch)) == NotLeading()
    assert await resign(leader=key, holder=lease.holder, epoch=str(epoch + 1)) == NotLeading()
    assert await resign(leader=key, holder=lease.holder, epoch="") == NotLeading()
    assert await rival.campaign() == Held(lease.holder, epoch)
    assert await resign(leader=key, holder=lease.holder, epoch=str(epoch)) == Resigned()


async def test_a_repeated_resignation_takes_nothing_from_the_next_leader(any_store: Store) -> None:
    resign = any_store.library.script("store", "leader_resign", Resigned, NotLeading)
    key = any_store.keys.leader(scopes.world("main"))
    first, second = any_store.leader(scopes.world("main"), "a"), any_store.leader(scopes.world("main"), "b")
    former = (await first.campaign()).epoch
    await first.resign()
    present = (await second.campaign()).epoch

    assert await resign(leader=key, holder=first.holder, epoch=str(former)) == NotLeading()
    assert await first.campaign() == Held(second.holder, present)


async def test_resigning_what_was_never_led_is_nothing(any_store: Store) -> None:
    resign = any_store.library.script("store", "leader_resign", Resigned, NotLeading)
    key = any_store.keys.leader(scopes.world("main"))

    await any_store.leader(scopes.world("main"), "a").resign()

    assert await resign(leader=key, holder="a", epoch="") == NotLeading()
    assert await resign(leader=key, holder="", epoch="") == NotLeading()
    assert await any_store.call("EXISTS", key, key=key) == 0
