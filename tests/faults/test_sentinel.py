"""A primary that Sentinel watches.

The invariant: whoever is the primary, each call ends with its own reply or an honest error, and calls
resume on the new primary. A write that was acknowledged before a failover may be lost with the old
primary (replication is asynchronous); one that the new primary acknowledged may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.store import Store
from roost.testing import RunningServer, SentinelGroup, eventually, run_sentinel

from .harness import clients_of, closes_after, crowd, in_thread, only_link, opened

CALLERS = 32


@pytest.fixture(scope="module")
def group() -> Iterator[SentinelGroup]:
    """Shared by the tests that leave every server alive."""
    with run_sentinel() as running:
        yield running


@pytest.fixture
def mortal_group() -> Iterator[SentinelGroup]:
    with run_sentinel() as running:
        yield running


class Ledger:
    """What each caller was told to be written last."""

    def __init__(self) -> None:
        self.written: dict[int, str] = {}

    async def write(self, store: Store, caller: int, token: str) -> None:
        """A reply is the caller's own if it reads one of its own tokens, maybe an older one."""
        key = f"k{caller}"
        await store.call("SET", key, token, idempotent=True)
        self.written[caller] = token
        reply = await store.call("GET", key, idempotent=caller % 2 == 0)
        assert (reply or f"{caller}-".encode()).startswith(f"{caller}-".encode()), f"{caller} read {reply!r}"
        assert await store.call("ECHO", token) == token.encode()

    def check(self, primary: RunningServer) -> None:
        for caller, token in self.written.items():
            assert primary.command_reply("GET", f"k{caller}") == token.encode()


async def test_calls_resume_on_the_new_primary_after_an_ordered_failover(group: SentinelGroup) -> None:
    ledger = Ledger()
    async with opened(group.url) as store:
        async with crowd(store, ledger.write, CALLERS) as callers:
            await callers.progress()
            before = group.primary()
            await in_thread(group.failover)
            await eventually(lambda: not clients_of(before, "roost"), "the old primary is left")
            await callers.progress()
        after = group.primary()
        assert after is not before
        ledger.check(after)


async def test_calls_and_bells_resume_on_the_new_primary_after_the_old_one_was_killed(
    mortal_group: SentinelGroup,
) -> None:
    group = mortal_group
    ledger, rung = Ledger(), list[bytes]()
    async with opened(group.url) as store:
        store.listen(b"bell", rung.append)
        await eventually(lambda: rung == [b""], "the bell is hung")
        async with crowd(store, ledger.write, CALLERS) as callers:
            before = group.primary()
            await callers.outlive(before.kill, lambda: group.wait_for_new_primary(before.port))
        after = group.primary()
        ledger.check(after)
        await eventually(lambda: rung == [b"", b""], "the bell is hung again")
        assert after.command_reply("SPUBLISH", "bell", "ding") == 1
        await eventually(lambda: rung[-1] == b"ding")


async def test_no_write_goes_to_a_hung_primary_that_wakes_up_after_its_replacement(
    mortal_group: SentinelGroup,
) -> None:
    group = mortal_group
    ledger = Ledger()
    async with opened(group.url) as store:
        async with crowd(store, ledger.write, CALLERS) as callers:
            before = group.primary()
            await callers.outlive(before.pause, lambda: group.wait_for_new_primary(before.port))
            before.resume()
            await eventually(lambda: not clients_of(before, "roost"), "its old connections are gone")
            await callers.progress(rounds=20)
            assert before.command_reply("ROLE")[0] == b"master", "it does not know yet that it was replaced"
            assert not clients_of(before, "roost")
        ledger.check(group.primary())
        assert only_link(store).connected


async def test_a_store_closes_at_once_whatever_its_keepers_were_about_to_do(group: SentinelGroup) -> None:
    await closes_after(group.url, lambda store: store.topology.doubt())


async def test_an_idle_client_finds_the_new_primary_of_a_hung_one(mortal_group: SentinelGroup) -> None:
    group = mortal_group
    async with opened(group.url) as store:
        assert await store.call("INCR", "n") == 1
        before = group.primary()
        before.pause()
        await in_thread(group.wait_for_new_primary, before.port)
        link = only_link(store)
        await eventually(lambda: link.stats.connects == 2, "the link follows without being asked")
        assert await store.call("INCR", "n") == 2
        before.resume()


async def test_every_line_follows_the_primary_also_the_one_for_large_replies(
    mortal_group: SentinelGroup,
) -> None:
    """A snapshot from the old primary would be at home in no history that the new one has."""
    group = mortal_group
    async with opened(group.url) as store:
        await store.call("SET", "who", "before")
        assert await store.call("GET", "who", bulk=True) == b"before"
        before = group.primary()
        assert len(clients_of(before, "roost")) == 2
        before.pause()
        await in_thread(group.wait_for_new_primary, before.port)
        await eventually(lambda: only_link(store).stats.connects == 2, "the link has followed")
        await store.call("SET", "who", "after")
        before.resume()
        assert await store.call("GET", "who", bulk=True, idempotent=True) == b"after"
        assert not clients_of(before, "roost")


async def test_a_leader_stops_with_the_connection_to_the_primary_that_granted_it(
    mortal_group: SentinelGroup,
) -> None:
    """The new primary may grant it to another, while the old leader's own clock still says that it leads."""
    group = mortal_group
    began, ended = list[int](), list[float]()
    loop = asyncio.get_running_loop()

    async def work(tenure: Tenure) -> None:
        began.append(tenure.epoch)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(loop.time())

    async with opened(group.url) as store:
        lease = store.leader(scopes.world("main"), "old", ttl_ms=60_000)
        leading = asyncio.create_task(lease.lead(work))
        await eventually(lambda: len(began) == 1, "the first tenure")
        before = group.primary()
        granted_over = store.topology.connection_for(b"x")
        assert granted_over is not None
        before.pause()
        await in_thread(group.wait_for_new_primary, before.port)
        await eventually(granted_over.lost.done, "the link leaves the old primary")
        lost_at = loop.time()
        await eventually(lambda: len(ended) == 1, "the end of the work", 2.0)
        assert ended[0] - lost_at < 0.5
        before.resume()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


async def test_a_tenure_is_over_as_soon_as_its_connection_is(group: SentinelGroup) -> None:
    async with opened(group.url) as store:
        lease = store.leader(scopes.world("other"), "one", ttl_ms=60_000)
        assert isinstance(await lease.campaign(), Tenure)
        assert lease.tenure is not None
        only_link(store).drop("a test")
        await eventually(lambda: lease.tenure is None, "the end of the tenure", 1.0)
        await eventually(lambda: only_link(store).connected, "another connection")
        assert lease.tenure is None
        assert isinstance(await lease.campaign(), Tenure)
        assert lease.tenure is not None
