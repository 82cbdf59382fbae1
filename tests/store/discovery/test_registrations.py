"""Registrations that come together are one call of the store; each is answered as if it came alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import strategies as st

from roost.api.discovery import Record, Registered, RegisterInput
from roost.core.errors import FencedInstance, InvalidInput, RemovedInstance, ServerIdTaken, StoreRefused
from roost.discovery import rules
from roost.discovery.model import encode
from roost.discovery.scripts import GivenRegistration, RegisterAnswer, register_answer
from roost.discovery.service import MAX_REGISTRATIONS, Discovery
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.discovery.fleet import T0, Fleet, invariants, read_state
from tests.store.discovery.test_accepting import add
from tests.store.examples import for_each


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


def calls(store: Store) -> int:
    return store.library.scripts[("discovery", "register")].stats.words["ANSWERED"]


def starting(instance_id: str = "", **fields: Any) -> RegisterInput:
    return RegisterInput(**{"type": "game", "group": "eu", "instance_id": instance_id, **fields})


async def register_all(discovery: Discovery, *given: RegisterInput) -> list[Any]:
    return await asyncio.gather(*map(discovery.register, given), return_exceptions=True)


async def test_what_comes_together_is_one_call(discovery: Discovery, store: Store) -> None:
    told = await register_all(discovery, *(starting() for _ in range(2 * MAX_REGISTRATIONS + 1)))
    assert calls(store) == 3, "no more than the limit in each"
    lives = [int(one.life) for one in told]
    assert lives == sorted(set(lives)), "each has a life of its own, in their order"
    assert len((await invariants(store)).feed) == len(told)


async def test_one_that_comes_alone_waits_for_nobody(discovery: Discovery, store: Store) -> None:
    await discovery.register(starting("a"))
    await discovery.register(starting("b"))
    assert calls(store) == 2


async def test_each_of_a_batch_has_its_own_answer(discovery: Discovery, store: Store) -> None:
    await add(discovery, "holder", server_id="501")
    await add(discovery, "removed", "newer")
    await discovery.remove("removed", cause="removed")
    before = calls(store)
    told = await register_all(
        discovery,
        starting("well"),
        starting("other", server_id="501"),
        starting("removed", former_life="9" * 15),
        starting("newer", former_life="1"),
        starting("bad", capacity=-1),
        starting("first", server_id="502"),
        starting("second", server_id="502"),
    )
    assert [type(one) for one in told] == [
        *(Registered, ServerIdTaken, RemovedInstance, FencedInstance),
        *(InvalidInput, Registered, ServerIdTaken),
    ]
    assert "held by first" in str(told[6]), "of two in one batch the earlier has the id"
    assert calls(store) == before + 1
    await invariants(store)


async def test_one_that_the_store_refuses_does_not_sink_its_batch(fleet: Fleet, discovery: Discovery) -> None:
    await add(discovery, "old", group="broken")
    await fleet.damage("SET", "beats", "no hash", service="game:broken")
    told = await register_all(discovery, starting("a"), starting("bad", group="broken"), starting("b"))
    assert isinstance(told[1], StoreRefused)
    found = {i.instance_id: i.life for i in (await discovery.discover("game", "eu")).instances}
    assert found == {"a": told[0].life, "b": told[2].life}, "sent again, each has the life that it was told"


async def test_who_gave_up_waiting_harms_nobody(discovery: Discovery) -> None:
    impatient = asyncio.create_task(discovery.register(starting("a")))
    patient = asyncio.create_task(discovery.register(starting("b")))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).instance_id == "b"


@pytest.mark.parametrize("packed", ["", "REGISTERED", "TAKEN\ta", "REGISTERED\tx", "WHAT\t1"])
def test_an_answer_that_is_none_is_refused(packed: str) -> None:
    with pytest.raises(ValueError, match=r"answered|invalid literal"):
        register_answer(packed)


# -- a batch is the same as one by one

_attempts = st.builds(
    lambda id_, type_, group, server_id, load, nonce, former: GivenRegistration(
        id_,
        rules.service_of(type_, group),
        rules.name_of(type_, server_id),
        encode(Record(type_, group, server_id, capacity=40)),
        "ready",
        load,
        40,
        b"{}",
        10_000,
        nonce,
        former,
    ),
    st.sampled_from(["a", "b", "c", "501"]),
    st.sampled_from(["game", "gate"]),
    st.sampled_from(["eu", "us"]),
    st.sampled_from(["", "", "501", "a"]),
    st.integers(0, 60),
    st.sampled_from(["n1", "n2", "n3", "n4", "n5"]),
    st.sampled_from(["", "", "", "1", str(T0), str(T0 + 3), str(T0 + 100)]),
)


async def _history(fleet: Fleet, attempts: list[GivenRegistration]) -> None:
    """Somebody silent, somebody removed and somebody forgotten, before the attempts come."""
    await fleet.sweep()
    await fleet.register_all(*attempts)
    await fleet.beat("a", tick_age_ms=3_600_000)
    await fleet.remove("b", cause="removed")
    await fleet.remove("c")


def test_a_batch_does_what_the_same_calls_do_one_by_one(server: RunningServer) -> None:
    """All answers, all that is kept and all that is told; also when the whole batch comes again."""

    async def run(
        store: Store, before: list[GivenRegistration], batches: list[list[GivenRegistration]]
    ) -> Any:
        fleet = Fleet(store)
        await _history(fleet, before)
        answers: list[RegisterAnswer] = []
        for batch in batches:
            answers += await fleet.register_all(*batch)
        await invariants(store)
        return answers, await read_state(store)

    async def check(
        store: Store, drawn: tuple[list[GivenRegistration], list[GivenRegistration], bool]
    ) -> None:
        before, attempts, again = drawn
        together = await run(store, before, [attempts] * (1 + again))
        server.flush()
        alone = await run(store, before, [[one] for one in attempts * (1 + again)])
        assert together == alone

    drawn = st.tuples(
        st.lists(_attempts, min_size=1, max_size=6), st.lists(_attempts, min_size=1), st.booleans()
    )
    for_each(server, drawn, check, examples=150)
