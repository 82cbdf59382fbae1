"""The reaper: asks the silent before they are counted dead, and mends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from roost.api.discovery import Beat, HealthCheck, Instance, Probe, RegisterInput, Status
from roost.discovery import probes as probes_module
from roost.discovery import reaper as reaper_module
from roost.discovery.probes import Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from roost.testing import RunningServer, eventually, free_port
from tests.store.discovery.fleet import invariants
from tests.store.replies import replies


@pytest.fixture
def discovery(store: Store) -> Discovery:
    return Discovery(store)


@pytest.fixture
async def reaper(discovery: Discovery) -> Reaper:
    reaper = Reaper(discovery, Prober(allow_local=True, timeout_s=1.0))
    await reaper.step()
    return reaper


async def register(discovery: Discovery, port: int | None, id_: str = "a") -> str:
    given = RegisterInput("game", "eu", instance_id=id_, private_ip="127.0.0.1", ttl_seconds=30.0)
    if port is not None:
        given.ports, given.health = {"main": port}, HealthCheck("tcp", "main")
    return (await discovery.register(given)).life


async def lease_time_passes(store: Store, seconds: int) -> None:
    meta = discovery_keys(store.keys)["meta"]
    await store.call("HINCRBY", meta, "clock_ms", seconds * 1000, key=meta)


async def status(discovery: Discovery, id_: str = "a") -> Status | str:
    return (await discovery.get(id_)).status


async def probes_ended(reaper: Reaper) -> None:
    await eventually(lambda: not reaper.probing, "the probes to end")


def next_probes_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much later as suspects are probed again; no answer is remembered that long."""
    loop = asyncio.get_running_loop()
    true_time = loop.time
    monkeypatch.setattr(loop, "time", lambda: true_time() + 2 * reaper_module.PROBE_INTERVAL_S)
    monkeypatch.setattr(probes_module, "CACHE_S", 0.0)


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """A port that answers."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_g2_a_suspect_whose_own_host_refuses_is_dead_at_once(
    discovery: Discovery, store: Store, reaper: Reaper
) -> None:
    await register(discovery, free_port())
    await lease_time_passes(store, 15)

    swept = await reaper.step()
    await probes_ended(reaper)

    assert (swept.suspected, swept.ended) == (["a"], [])
    detail = await discovery.get("a")
    assert (detail.status, detail.instance) == ("no-response", None)
    assert [(e.event, e.status) for e in detail.history] == [
        ("added", "ready"),
        ("changed", "suspect"),
        ("removed", "no-response"),
    ]
    assert reaper.ended == 1
    await invariants(store)


async def test_g2_a_suspect_that_answers_keeps_its_users_until_its_lease_ends(
    discovery: Discovery, store: Store, reaper: Reaper
) -> None:
    """A connection proves a socket, not a life: it is neither freed nor trusted."""
    async with listening() as port:
        await register(discovery, port)
        await lease_time_passes(store, 15)
        await reaper.step()
        await probes_ended(reaper)
        assert await status(discovery) == "suspect"

        await lease_time_passes(store, 14)
        assert (await reaper.step()).ended == []
        await lease_time_passes(store, 1)
        assert (await reaper.step()).ended == ["a"]
    assert await status(discovery) == "no-response"
    assert reaper.ended == 1


async def test_a_suspect_without_a_health_check_waits_for_its_lease(
    discovery: Discovery, store: Store, reaper: Reaper
) -> None:
    await register(discovery, None)
    await lease_time_passes(store, 20)
    await reaper.step()
    await probes_ended(reaper)
    assert await status(discovery) == "suspect"


async def test_where_special_addresses_are_not_probed_nobody_is_ended(
    discovery: Discovery, store: Store
) -> None:
    reaper = Reaper(discovery, Prober(allow_local=False))
    await reaper.step()
    await register(discovery, free_port())
    await lease_time_passes(store, 15)
    await reaper.step()
    await probes_ended(reaper)
    assert await status(discovery) == "suspect"


async def test_who_beats_while_it_is_probed_is_not_ended(
    discovery: Discovery, store: Store, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = await register(discovery, free_port())
    ask = Prober.probe

    async def beaten_meanwhile(prober: Prober, instance: Instance) -> Probe | None:
        await discovery.heartbeat("a", Beat(life=life))
        return await ask(prober, instance)

    monkeypatch.setattr(Prober, "probe", beaten_meanwhile)
    await lease_time_passes(store, 15)
    await reaper.step()
    await probes_ended(reaper)
    assert await status(discovery) == "ready"
    assert reaper.ended == 0


async def test_a_suspect_is_asked_again_after_a_while_and_not_before(
    discovery: Discovery, store: Store, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Prober.probe

    async def counted(prober: Prober, instance: Instance) -> Probe | None:
        asked.append("a")
        return await ask(prober, instance)

    monkeypatch.setattr(Prober, "probe", counted)
    async with listening() as port:
        await register(discovery, port)
        await lease_time_passes(store, 15)
        for _ in range(3):
            await reaper.step()
            await probes_ended(reaper)
        assert asked == ["a"]
    next_probes_are_due(monkeypatch)  # and now nobody listens
    await reaper.step()
    await probes_ended(reaper)
    assert asked == ["a", "a"]
    assert await status(discovery) == "no-response"


async def test_who_was_held_beyond_the_budget_is_asked_too(
    discovery: Discovery, store: Store, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget holds back what only silence says, not what a probe confirms."""
    async with listening() as port:
        for n in range(10):
            await register(discovery, port, f"i{n}")
        await lease_time_passes(store, 15)
        assert len((await reaper.step()).suspected) == 10
        await probes_ended(reaper)
    next_probes_are_due(monkeypatch)
    await lease_time_passes(store, 15)

    swept = await reaper.step()
    await probes_ended(reaper)

    assert (len(swept.ended), len(swept.held)) == (1, 9)
    assert (await invariants(store)).index == {}
    assert (reaper.ended, reaper.held) == (10, 9)


async def test_many_suspects_are_all_judged_and_none_is_remembered(
    discovery: Discovery, store: Store, reaper: Reaper
) -> None:
    for n in range(100):
        await register(discovery, free_port(), f"i{n}")
    await lease_time_passes(store, 15)
    await reaper.step()
    await probes_ended(reaper)
    assert (await invariants(store)).index == {}
    assert reaper.suspects == 0


async def test_two_reapers_tell_each_death_once(discovery: Discovery, store: Store, reaper: Reaper) -> None:
    other = Reaper(discovery, Prober(allow_local=True))
    for n in range(20):
        await register(discovery, free_port(), f"i{n}")
    await lease_time_passes(store, 15)
    await asyncio.gather(reaper.step(), other.step())
    await probes_ended(reaper)
    await probes_ended(other)
    assert reaper.ended + other.ended == 20
    assert (await invariants(store)).index == {}


async def test_healthy_data_needs_no_mending(discovery: Discovery, store: Store, reaper: Reaper) -> None:
    assert await reaper.repair() == 0
    for n in range(5):
        await register(discovery, None, f"i{n}")
    await discovery.remove("i0")
    before = await invariants(store)
    assert await reaper.repair() == 0
    assert await invariants(store) == before


async def test_damaged_data_is_mended_and_said(
    discovery: Discovery, store: Store, reaper: Reaper, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(5):
        await register(discovery, None, f"i{n}")
    await store.call("ZREM", discovery_keys(store.keys)["leases"], "i0")
    await store.call("HDEL", discovery_keys(store.keys)["index"], "i1")
    assert await reaper.repair() == 2
    assert "the index of discovery was damaged and is mended" in caplog.text
    await invariants(store)
    assert await reaper.repair() == 0


async def test_the_loop_sweeps_repairs_and_outlives_a_store_that_is_away(
    discovery: Discovery, store: Store, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper_module, "SWEEP_INTERVAL_S", 0.01)
    monkeypatch.setattr(reaper_module, "REPAIR_INTERVAL_S", 0.01)
    reaper = Reaper(discovery, Prober(allow_local=True))
    loop = asyncio.create_task(reaper.run())
    await eventually(
        lambda: replies(store, "SWEPT") >= 3 and replies(store, "REPAIRED") >= 2, "sweeps and repairs"
    )

    server.command_reply("CLIENT", "KILL", "TYPE", "normal")
    before = replies(store, "SWEPT")
    await eventually(lambda: replies(store, "SWEPT") >= before + 3, "sweeps after the loss of the connection")

    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop


async def test_g2_five_thousand_that_fall_silent_at_once_are_suspect_in_one_turn(
    discovery: Discovery, reaper: Reaper, store: Store
) -> None:
    await asyncio.gather(*(register(discovery, None, f"s{n}") for n in range(5000)))
    await lease_time_passes(store, 15)

    swept = await reaper.step()

    assert len(swept.suspected) == 5000
    assert all(one.status == "suspect" for one in (await discovery.discover()).instances)
    assert reaper.probing <= reaper_module.MAX_PROBES
    await probes_ended(reaper)
