"""claim.lua and settle.lua: of all processes that saw an incident, one tells it."""

from __future__ import annotations

import pytest

from roost.alerts.claims import Claimed, Held, NotYours, Settled, Told
from roost.store.keys.alerts import alert_keys
from roost.store.scripts import ScopedScript
from roost.store.store import Store

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
LEASE_MS = 20_000


class Tellers:
    """Processes that ask at `now`, which only the test moves."""

    def __init__(self, store: Store) -> None:
        keys = alert_keys(store.keys)
        self._claim: ScopedScript[Claimed | Held | Told] = ScopedScript(
            store.library.script("alerts", "claim", Claimed, Held, Told), keys
        )
        self._settle: ScopedScript[Settled | NotYours] = ScopedScript(
            store.library.script("alerts", "settle", Settled, NotYours), keys
        )
        self.now = T0

    async def claim(
        self, holder: str, action: str = "trigger", at: int = 10, life: str = "7"
    ) -> Claimed | Held | Told:
        return await self._claim(
            id="d", action=action, life=life, at=at, holder=holder, lease_ms=LEASE_MS, now=self.now
        )

    async def settle(self, holder: str, told: bool = True) -> Settled | NotYours:
        return await self._settle(id="d", holder=holder, told=int(told))


@pytest.fixture
def tellers(store: Store) -> Tellers:
    return Tellers(store)


async def test_one_has_the_claim_and_may_renew_it_and_the_others_wait(tellers: Tellers) -> None:
    assert await tellers.claim("a") == Claimed()
    assert await tellers.claim("b") == Held(LEASE_MS)
    tellers.now += 15 * SECOND
    assert await tellers.claim("a") == Claimed()
    tellers.now += 15 * SECOND
    assert await tellers.claim("b") == Held(5000)


async def test_what_was_told_is_told_for_everybody_however_late_they_hear_of_it(tellers: Tellers) -> None:
    await tellers.claim("a")
    assert await tellers.settle("a") == Settled()
    assert await tellers.claim("b") == Told()
    assert await tellers.claim("c", at=13) == Told(), "the same turn of the same life, from a snapshot"
    tellers.now += 3600 * SECOND
    assert await tellers.claim("a") == Told()


async def test_a_claimer_that_died_is_followed_by_the_next(tellers: Tellers) -> None:
    await tellers.claim("a")
    tellers.now += LEASE_MS * 1000
    assert await tellers.claim("b") == Claimed()
    assert await tellers.settle("a") == NotYours(), "it was not dead, only slow"
    assert await tellers.claim("a") == Held(LEASE_MS)
    assert await tellers.settle("b") == Settled()


async def test_the_end_of_an_incident_is_told_once_and_after_its_beginning(tellers: Tellers) -> None:
    await tellers.claim("a", at=10)
    assert await tellers.claim("b", "resolve", at=12) == Held(LEASE_MS), "the trouble is being told"
    await tellers.settle("a")
    assert await tellers.claim("b", "resolve", at=12) == Claimed()
    await tellers.settle("b")
    assert await tellers.claim("a", "resolve", at=12) == Told()
    assert await tellers.claim("c", "trigger", at=10) == Told(), "news from before the end"


async def test_the_next_trouble_is_another_incident(tellers: Tellers) -> None:
    for at, action in ((10, "trigger"), (12, "resolve"), (20, "trigger")):
        assert await tellers.claim("a", action, at) == Claimed()
        await tellers.settle("a")
    assert await tellers.claim("b", at=20) == Told()
    assert await tellers.claim("b", at=30, life="8") == Claimed(), "another life, though nobody told the end"


async def test_who_gives_up_leaves_it_to_the_next(tellers: Tellers) -> None:
    await tellers.claim("a")
    assert await tellers.settle("a", told=False) == Settled()
    assert await tellers.claim("b") == Claimed()


async def test_a_clock_that_stepped_back_does_not_hold_a_claim_for_hours(tellers: Tellers) -> None:
    await tellers.claim("a")
    tellers.now -= 3600 * SECOND
    assert await tellers.claim("b") == Claimed()


async def test_claims_go_by_themselves(store: Store, tellers: Tellers) -> None:
    await tellers.claim("a")
    key = alert_keys(store.keys)["claims"] + b"d"
    assert await store.call("TTL", key, key=key, idempotent=True) == 86_400
