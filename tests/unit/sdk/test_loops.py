"""Every background loop of the SDK outlives an exception that nobody expected, and counts it."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from roost.api.discovery import Beat, BeatReply, Instance, RegisterInput
from roost.core.clock import SystemClock
from roost.core.errors import (
    FencedInstance,
    NotAuthenticated,
    RemovedInstance,
    RequestTimeout,
    RoostError,
    ServerIdTaken,
    StoreUnavailable,
    TooManyRequests,
    Unavailable,
    UnknownInstance,
)
from roost.core.events import Mark
from roost.core.lease import Tenure
from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.discovery.service import Discovery
from roost.sdk import client as client_module
from roost.sdk import door as door_module
from roost.sdk import heart as heart_module
from roost.sdk.direct import sweeper as sweeper_module
from roost.sdk.direct.sweeper import Sweeper
from roost.sdk.door import ATTEMPTS, Door
from roost.sdk.heart import Directive, Registration
from roost.store.keys import Keys
from roost.store.store import Store
from roost.testing import FakeAdmission, FakeTransport, eventually

UNEXPECTED = KeyError("a field that is not there")


class NoWaiting(SystemClock):
    """Pauses and backoffs of loops take no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def failures(loops: Loops, name: str) -> int:
    return loops.loop(name).failures


def registration() -> Registration:
    return Registration(RegisterInput("game", "kr-1", server_id="501", capacity=10), "i-1", "7", 10.0)


# -- the id of a predecessor


async def test_a_predecessor_whose_lease_was_prolonged_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of a small fleet died together: the second keeps its id for three leases, its successor waits."""
    monkeypatch.setattr(client_module, "LONGEST_DEFAULT_TTL_S", 0.1)
    monkeypatch.setattr(client_module, "HELD_BACK_S", 5.0)
    monkeypatch.setattr(client_module, "ID_RETRY_S", 0.01)
    transport = FakeTransport()
    server: dict[str, Any] = {"type": "game", "group": "kr-1", "server_id": "502"}
    async with transport.client() as client:
        dead = await client.register(**server)
        asyncio.get_running_loop().call_later(0.3, lambda: transport.registry.instances.pop(dead.instance_id))
        async with client.registered(**server) as successor:
            assert successor.instance_id != dead.instance_id


async def test_who_lives_on_is_no_predecessor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LONGEST_DEFAULT_TTL_S", 0.1)
    monkeypatch.setattr(client_module, "HELD_BACK_S", 0.1)
    monkeypatch.setattr(client_module, "ID_RETRY_S", 0.01)
    server: dict[str, Any] = {"type": "game", "group": "kr-1", "server_id": "502"}
    async with FakeTransport().client() as client:
        await client.register(**server)
        with pytest.raises(ServerIdTaken):
            async with client.registered(**server):
                pass


async def test_who_ends_while_the_store_blinks_is_removed_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport = FakeTransport()
    async with transport.client() as client:
        async with client.registered(type="game", group="kr-1") as me:
            transport.script.refuse("remove", StoreUnavailable("one moment"), times=2)
        assert me.instance_id not in transport.registry.instances
        assert "not removed" not in caplog.text


async def test_who_ends_while_the_store_stays_away_says_so_and_goes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client_module, "LAST_S", 0.1)
    transport = FakeTransport()
    async with transport.client() as client:
        async with client.registered(type="game", group="kr-1"):
            transport.script.refuse("remove", StoreUnavailable("it is away"))
        assert "not removed" in caplog.text


# -- the heart


async def test_the_heart_beats_on_after_a_reply_that_nobody_expected() -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=20) as client:
        transport.script.lose("heartbeat", error=UNEXPECTED)
        async with client.registered(type="game", group="kr-1"):
            await eventually(lambda: transport.script.count("heartbeat") >= 3, "beats after the failure")
            assert failures(client.loops, "sdk-heartbeat") == 1
            await eventually(lambda: client.loops.loop("sdk-heartbeat").failing_since is None, "recovery")


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_beat_shows_the_proof_of_its_life_and_takes_a_new_one(
    monkeypatch: pytest.MonkeyPatch, by_hand: bool
) -> None:
    """The key that signed it may be about to be dropped."""
    transport = FakeTransport()
    shown: list[str] = []

    async def renew(instance_id: str, beat: Beat) -> BeatReply:
        shown.append(beat.proof)
        return BeatReply("OK", "by the new key" if beat.proof != "by the new key" else "")

    monkeypatch.setattr(transport.registry, "heartbeat", renew)
    async with transport.client(heartbeat_interval_ms=20) as client:
        registered = await client.register(type="game", group="kr-1")
        if by_hand:
            for _ in range(3):
                await client.heartbeat(registered.instance_id)
        else:
            client.start_auto_heartbeat(registered.instance_id)
            await eventually(lambda: len(shown) >= 3, "beats")
        assert shown[:3] == [registered.proof, "by the new key", "by the new key"]


async def test_an_instance_whose_beat_fails_does_not_keep_others_from_beating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = FakeTransport()
    heartbeat = transport.registry.heartbeat

    async def fail_for_one(instance_id: str, beat: Beat) -> BeatReply:
        if instance_id == "bad":
            raise UNEXPECTED
        return await heartbeat(instance_id, beat)

    monkeypatch.setattr(transport.registry, "heartbeat", fail_for_one)
    async with transport.client(heartbeat_interval_ms=20) as client:
        for instance_id in ("bad", "good"):
            await client.register(type="game", group="kr-1", instance_id=instance_id)
            client.start_auto_heartbeat(instance_id)
        await eventually(lambda: failures(client.loops, "sdk-heartbeat") >= 3, "failures")
        before = transport.script.count("heartbeat")
        await eventually(lambda: transport.script.count("heartbeat") > before, "the good one's beat")


async def test_the_heart_opens_its_transport_again_after_any_failure() -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=20) as client:
        registered = await client.register(type="game", group="kr-1")
        transport.script.refuse("open", UNEXPECTED, times=2)
        client.start_auto_heartbeat(registered.instance_id)
        await eventually(lambda: transport.script.count("heartbeat") > 0, "a beat")
        assert failures(client.loops, "sdk-heartbeat") == 2
    assert transport.opened == transport.closed == 2


async def test_a_heart_that_is_stopped_at_once_ends_at_once() -> None:
    transport = FakeTransport()
    async with asyncio.timeout(3.0):  # it would be 5 s if its thread were not told
        for _ in range(5):
            async with transport.client() as client:
                registered = await client.register(type="game", group="kr-1")
                client.start_auto_heartbeat(registered.instance_id)


async def test_a_hung_server_that_lost_its_lease_registers_again_when_its_main_loop_turns() -> None:
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=20) as client:
        registered = await client.register(type="game", group="kr-1", ttl_seconds=30)
        registration = client.start_auto_heartbeat(registered.instance_id)
        registration.hung_since = time.monotonic() - 16
        transport.script.refuse("heartbeat", UnknownInstance("its lease ended"), times=5)
        await eventually(lambda: transport.script.count("heartbeat") >= 4, "beats while it hangs")
        assert transport.script.count("register") == 1
        registration.hung_since = None
        transport.script.refuse("heartbeat", UnknownInstance("its lease ended"), times=1)
        await eventually(lambda: transport.script.count("register") == 2, "its return")


async def test_a_beat_that_tells_of_a_hung_main_loop_is_followed_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It renews no lease: who woke is not to wait for a whole interval until one does."""
    monkeypatch.setattr(heart_module, "RETRY_SHARE", 0.0)
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=600_000) as client:
        registered = await client.register(type="game", group="kr-1", ttl_seconds=30)
        registration = client.start_auto_heartbeat(registered.instance_id)
        registration.hung_since = time.monotonic() - 16
        registration.status = "draining"  # is told at once
        await eventually(lambda: transport.script.count("heartbeat") >= 3, "beats while it hangs")
        registration.hung_since = None


async def test_g2_a_main_loop_that_may_hang_is_looked_at_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The beat that tells of it would come up to a whole interval after half the lease."""
    monkeypatch.setattr(heart_module, "RETRY_SHARE", 0.0)
    transport = FakeTransport()
    async with transport.client(heartbeat_interval_ms=600_000) as client:
        registered = await client.register(type="game", group="kr-1", ttl_seconds=3600)
        registration = client.start_auto_heartbeat(registered.instance_id)
        registration.hung_since = time.monotonic() - 301
        registration.status = "draining"  # is told at once
        await eventually(lambda: transport.script.count("heartbeat") >= 3, "beats while it may hang")
        registration.hung_since = None


@pytest.mark.parametrize("error", [RemovedInstance("gone"), FencedInstance("later"), UnknownInstance("who")])
async def test_a_beat_that_its_own_removal_overtook_says_nothing(
    error: RoostError, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, told, under_way = FakeTransport(), list[str](), threading.Event()

    async def late(instance_id: str, beat: Beat) -> BeatReply:
        under_way.set()
        while instance_id in registered_ids:
            await asyncio.sleep(0.005)
        answered.set()
        raise error

    answered = threading.Event()
    monkeypatch.setattr(transport.registry, "heartbeat", late)
    async with transport.client(heartbeat_interval_ms=20) as client:
        registered = await client.register(type="game", group="kr-1")
        registered_ids = {registered.instance_id}
        registration = client.start_auto_heartbeat(registered.instance_id)
        registration.on_directive = told.append
        await eventually(under_way.is_set, "a beat under way")
        await client.remove(registered.instance_id)
        registered_ids.clear()
        await eventually(answered.is_set, "its answer")
        await asyncio.sleep(0)
    assert (told, registration.ended, transport.script.count("register")) == ([], None, 1)


async def test_the_tick_of_the_main_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = FakeTransport()
    ticks: list[float] = []

    def monotonic() -> float:
        ticks.append(0.0)
        if len(ticks) == 2:  # the first is the heart's making
            raise UNEXPECTED
        return 0.0

    async with transport.client() as client:
        registered = await client.register(type="game", group="kr-1")
        monkeypatch.setattr(heart_module, "TICK_S", 0.0)
        monkeypatch.setattr(heart_module.Heart, "turn", _never)
        monkeypatch.setattr(heart_module, "time", SimpleNamespace(monotonic=monotonic))
        client.start_auto_heartbeat(registered.instance_id)
        await eventually(lambda: len(ticks) > 5, "ticks after the failure")
        assert failures(client.loops, "sdk-tick") == 1


async def _never(_: object) -> None:
    await asyncio.Event().wait()


async def test_directives_and_a_registration_that_was_forgotten() -> None:
    transport, heard = FakeTransport(), list[Directive]()
    registry = transport.registry
    async with transport.client(heartbeat_interval_ms=20) as client:
        async with client.registered(type="game", group="kr-1", on_directive=heard.append) as me:
            registry.draining.add(me.instance_id)
            await eventually(lambda: heard == ["drain"], "the operator's wish")
            life = me.life
            registry.forget(me.instance_id)
            await eventually(lambda: me.life != life, "the re-registration")
            assert registry.instances[me.instance_id].life == me.life
            await registry.remove(me.instance_id, "", "", "")
            await eventually(lambda: heard == ["drain", "removed"], "the removal")
            assert me.ended == "removed"


# -- the door


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "SOON_S", 0.0)
    monkeypatch.setattr(door_module, "jittered", lambda *_: 0.001)


@pytest.mark.usefixtures("_soon")
async def test_reports_go_on_after_an_answer_that_nobody_expected() -> None:
    room, loops = FakeAdmission(), Loops(NoWaiting())
    async with Door(room, registration(), loops=loops):
        room.script.lose("report", error=UNEXPECTED)
        before = len(room.reports)
        await eventually(lambda: len(room.reports) > before + 2, "reports after the failure")
        assert failures(loops, "sdk-report") == 1


@pytest.mark.usefixtures("_soon")
async def test_a_lost_consume_is_settled_whatever_is_answered_meanwhile() -> None:
    room, loops = FakeAdmission(), Loops(NoWaiting())
    async with Door(room, registration(), loops=loops) as door:
        room.script.lose("consume", error=UNEXPECTED)
        room.script.lose("consume", ATTEMPTS)
        with pytest.raises(Exception, match="reply was lost"):
            await door.consume("ann")
        await eventually(lambda: room.released == [("ann", "failed")], "the place to be given back")
        assert failures(loops, "sdk-settle") == 1
        await eventually(lambda: room.reports[-1].counted == 1, "the consume to be counted")


@pytest.mark.usefixtures("_soon")
async def test_a_consume_that_fails_unexpectedly_is_settled_too() -> None:
    room, loops = FakeAdmission(), Loops(NoWaiting())
    async with Door(room, registration(), loops=loops) as door:
        room.script.lose("consume", error=UNEXPECTED)
        with pytest.raises(KeyError):
            await door.consume("ann")
        await eventually(lambda: room.released == [("ann", "failed")], "the place to be given back")
        assert door.guests == {}


# -- watching


@pytest.mark.parametrize("error", [UNEXPECTED, ValueError("an entry that cannot be read")])
async def test_a_watch_goes_on_with_a_snapshot_after_a_failure_that_nobody_expected(error: Exception) -> None:
    transport = FakeTransport()
    async with transport.client(loops=Loops(NoWaiting())) as client:
        changes = client.watch("game")
        assert (await anext(changes)).event == "snapshot"
        transport.registry.interrupt(error)
        transport.script.refuse("watch", error, times=1)
        assert (await anext(changes)).event == "snapshot"
        assert failures(client.loops, "sdk-watch") == 2
        await client.register(type="game", group="kr-1")
        assert (await anext(changes)).event == "added"
        await changes.aclose()


async def test_a_watch_that_was_cut_off_goes_on_after_the_last_change() -> None:
    transport = FakeTransport()
    async with transport.client(loops=Loops(NoWaiting())) as client:
        changes = client.watch("game")
        await client.register(type="game", group="kr-1", instance_id="a")
        seen = [await anext(changes)]
        transport.registry.interrupt(StoreUnavailable())
        await client.register(type="game", group="kr-1", instance_id="b")
        seen.append(await anext(changes))
        await changes.aclose()
    assert [change.event for change in seen] == ["snapshot", "added"]
    assert [call.given for call in transport.script.calls if call.verb == "watch"] == [None, Mark(1, 1)]


@pytest.mark.parametrize("error", [TooManyRequests(), Unavailable(), RequestTimeout()])
async def test_a_watch_outlives_a_refusal_of_the_moment_and_goes_on_after_the_last_change(
    error: RoostError,
) -> None:
    transport = FakeTransport()
    async with transport.client(loops=Loops(NoWaiting())) as client:
        changes = client.watch("game")
        await client.register(type="game", group="kr-1", instance_id="a")
        seen = [await anext(changes)]
        transport.registry.interrupt(StoreUnavailable())
        transport.script.refuse("watch", error, times=2)
        await client.register(type="game", group="kr-1", instance_id="b")
        seen.append(await anext(changes))
        await changes.aclose()
    assert [change.event for change in seen] == ["snapshot", "added"]


async def test_a_refusal_that_repeating_cannot_cure_ends_a_watch() -> None:
    transport = FakeTransport()
    transport.script.refuse("watch", NotAuthenticated())
    async with transport.client() as client:
        with pytest.raises(NotAuthenticated):
            await anext(client.watch("game"))


async def test_a_callback_that_raises_is_called_for_the_next_instance() -> None:
    transport, came = FakeTransport(), list[str]()

    def added(instance: Instance) -> None:
        came.append(instance.instance_id)
        if instance.instance_id == "a":
            raise UNEXPECTED

    async with transport.client(loops=Loops(NoWaiting())) as client:
        client.on_server_added(added, "game")
        for instance_id in ("a", "b", "c"):
            await client.register(type="game", group="kr-1", instance_id=instance_id)
        await eventually(lambda: came == ["a", "b", "c"], "every instance, each once")
        assert failures(client.loops, "sdk-listen") == 1


# -- the sweeper


class StandingStore:
    """A store whose lease clock never moves: nobody sweeps. It is its own leader lease, too."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.tenure: Tenure | None = None
        self.looks = 0
        self.campaigns = 0
        self.errors: list[Exception] = []

    def leader(self, *_: object, **__: object) -> StandingStore:
        return self

    async def campaign(self) -> Tenure:
        self.campaigns += 1
        self.tenure = Tenure("m", 1, 0.0, 6000)
        return self.tenure

    async def call(self, command: str, *_: object, **__: object) -> object:
        if self.errors:
            raise self.errors.pop()
        self.looks += command == "HGET"
        return [b"100", b"0"] if command == "TIME" else 1


class CountingReaper:
    steps = 0
    errors: ClassVar[list[Exception]] = []

    def __init__(self, *_: object) -> None: ...

    async def turn(self) -> None:
        if self.errors:
            raise self.errors.pop()
        CountingReaper.steps += 1


async def test_a_client_sweeps_from_its_first_look_on_and_outlives_any_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeper_module, "Reaper", CountingReaper)
    CountingReaper.steps, CountingReaper.errors = 0, [UNEXPECTED, StoreUnavailable()]
    store, loops = StandingStore(), Loops(NoWaiting())
    store.errors = [UNEXPECTED, StoreUnavailable()]
    sweeper = Sweeper(cast(Store, store), cast(Discovery, None), cast(Prober, None))
    task = asyncio.create_task(sweeper.run(loops))
    await eventually(lambda: CountingReaper.steps > 3, "sweeps after the failures")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert store.looks == 1
    assert store.campaigns >= CountingReaper.steps
    assert failures(loops, "sdk-sweep") == 2, "a store that is away is no failure of the loop"
