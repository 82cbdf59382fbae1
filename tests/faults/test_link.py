"""The link to one server.

The invariant of every test here: each call ends with its own reply or an honest error; none hangs; none
gets another's reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.core.errors import (
    OutcomeUnknown,
    StoreAccessDenied,
    StoreError,
    StoreOverloaded,
    StoreRefused,
    StoreUnavailable,
)
from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.link import LinkOptions
from roost.store.store import Store
from roost.store.url import Credentials
from roost.testing import RunningServer, eventually, free_port, run_valkey

from .harness import (
    FAST,
    HANG_S,
    PATIENT,
    VERY_PATIENT,
    clients_of,
    closes_after,
    crowd,
    in_thread,
    only_link,
    opened,
    outcomes,
    proxy_to,
    reaches,
    single_bytes,
    write_and_read,
)

SLACK_S = 1.0
"""How much later than its deadline a call may end on a busy machine."""


# -- the server goes away


async def test_calls_resume_after_the_server_was_killed_and_restarted(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store, crowd(store) as callers:
        for _ in range(3):
            await callers.outlive(valkey.kill, valkey.start)
    assert only_link(store).stats.losses >= 3


async def test_clients_killed_again_and_again_get_only_their_own_replies(valkey: RunningServer) -> None:
    async with opened(valkey.url, PATIENT) as store, crowd(store) as callers:
        link = only_link(store)
        for losses in range(20):
            await callers.progress(rounds=1)
            valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
            await reaches(lambda: link.stats.losses, losses + 1)
        await callers.progress()
    assert callers.errors["StoreUnavailable"] == 0, "an idempotent call is repeated within its time"


async def test_a_call_that_could_not_be_sent_is_sent_after_the_reconnect(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store:
        valkey.kill()
        await eventually(lambda: not only_link(store).connected)
        waiting = [store.call("INCR", "n", timeout_s=HANG_S) for _ in range(10)]
        await in_thread(valkey.start)
        assert await outcomes(waiting) == list(range(1, 11))


async def test_a_store_that_stays_away_refuses_new_calls_at_once(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store:
        valkey.kill()
        await eventually(lambda: not only_link(store).connected)

        async def is_refused_at_once() -> bool:
            refused = store.call("PING")
            await asyncio.sleep(0)
            return refused.done() and isinstance(refused.exception(), StoreUnavailable)

        await eventually(is_refused_at_once, "a call is refused at once", HANG_S)
        await eventually(lambda: only_link(store).waiting == 0)


async def test_calls_wait_while_the_server_loads_its_data() -> None:
    with run_valkey(persistent=True) as server:
        async with opened(server.url, PATIENT) as store:
            await asyncio.gather(*(store.call("SET", f"k{n}", n) for n in range(5000)))
            server.kill()
            await eventually(lambda: not only_link(store).connected)
            server.command += ["--key-load-delay", "100"]
            async with crowd(store, _read_loaded, allowed=()) as callers:
                await in_thread(server.start)
                await callers.progress()


async def _read_loaded(store: Store, caller: int, token: str) -> None:
    assert await store.call("GET", f"k{caller}", idempotent=True) == str(caller).encode()


async def test_writes_to_a_server_that_is_a_replica_for_a_while_are_carried_out_afterwards(
    valkey: RunningServer,
) -> None:
    async with opened(valkey.url, PATIENT) as store, crowd(store, write_and_read, allowed=()) as callers:
        for _ in range(2):
            await callers.progress()
            valkey.command_reply("REPLICAOF", "127.0.0.1", free_port())
            refused = asyncio.ensure_future(write_and_read(store, 99, "meanwhile"))
            await eventually(lambda: b"READONLY" in valkey.command_reply("INFO", "errorstats"))
            assert not refused.done()
            valkey.command_reply("REPLICAOF", "NO", "ONE")
            await refused
            await callers.progress()
            valkey.command_reply("CONFIG", "RESETSTAT")


async def test_a_write_to_a_server_that_stays_a_replica_ends_with_the_servers_reason(
    valkey: RunningServer,
) -> None:
    async with opened(valkey.url) as store:
        valkey.command_reply("REPLICAOF", "127.0.0.1", free_port())
        ended = await outcomes(store.call("INCR", "n") for _ in range(20))
        assert all(isinstance(end, StoreUnavailable) and "READONLY" in end.message for end in ended)
        valkey.command_reply("REPLICAOF", "NO", "ONE")
        assert await store.call("INCR", "n", timeout_s=HANG_S) == 1, "none of them was carried out"


# -- the server hangs


async def test_calls_that_timed_out_keep_their_place_for_the_reply(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store:
        link = only_link(store)
        valkey.command_reply("CLIENT", "PAUSE", 850, "ALL")
        started = asyncio.get_running_loop().time()
        late = await outcomes(store.call("INCR", "n", idempotent=n % 2 == 0) for n in range(64))
        took_s = asyncio.get_running_loop().time() - started
        assert 0.5 <= took_s < 0.5 + SLACK_S
        for n, end in enumerate(late):
            assert isinstance(end, StoreUnavailable if n % 2 == 0 else OutcomeUnknown), end

        assert link.inflight == 64
        behind = await outcomes(store.call("ECHO", n, timeout_s=HANG_S) for n in range(200))

        assert behind == [str(n).encode() for n in range(200)]
        assert link.stats.connects == 1
        assert link.inflight == 0
        assert await store.call("GET", "n") == b"64", "timed-out calls were not sent twice"


async def test_callers_before_during_and_after_a_hang_get_their_own_replies(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store, crowd(store) as callers:
        for _ in range(2):
            await callers.outlive(valkey.pause, valkey.resume)
        assert callers.slowest_s < FAST.command_timeout_s + SLACK_S


async def test_a_half_open_connection_is_given_up_and_replaced(valkey: RunningServer) -> None:
    async with (
        proxy_to(valkey.port) as proxy,
        opened(proxy.url) as store,
        crowd(store) as callers,
    ):
        for connects in (2, 3):
            await callers.progress()
            proxy.blackhole()
            await callers.trouble()
            await reaches(lambda: only_link(store).stats.connects, connects)
            await callers.progress()
        assert callers.slowest_s < FAST.command_timeout_s + SLACK_S


async def test_calls_beyond_the_bound_are_refused_at_once_and_the_others_succeed(
    valkey: RunningServer,
) -> None:
    options = LinkOptions(command_timeout_s=HANG_S, max_inflight=8, max_waiting=16)
    async with opened(valkey.url, options) as store:
        valkey.pause()
        calls = [store.call("ECHO", n) for n in range(40)]
        link = only_link(store)
        assert (link.inflight, link.waiting) == (8, 16)
        await asyncio.sleep(0)
        for call in calls[24:]:
            assert isinstance(call.exception(), StoreOverloaded)
        valkey.resume()
        assert await outcomes(calls[:24]) == [str(n).encode() for n in range(24)]
        assert (link.inflight, link.waiting, link.stats.overloads) == (0, 0, 16)


# -- the reply comes in pieces, or not at all


def _mixed_calls(store: Store) -> list[asyncio.Future[Any]]:
    return [
        store.call("ECHO", "one"),
        store.call("GET", "missing"),
        store.call("RPUSH", "list", "a", "bb", "", "\r\n$3\r\n"),
        store.call("LRANGE", "list", 0, -1),
        store.call("INCR", "list"),
        store.call("ECHO", ""),
        store.call("INCRBY", "number", -42),
        store.call("PING"),
        store.call("LRANGE", "missing", 0, -1),
        store.call("EVAL", "return {1, {2, 'deep', false}, redis.error_reply('ODD inside')}", 0),
        store.call("NO-SUCH-COMMAND"),
        store.call("ECHO", "x" * 300),
        store.call("DEL", "list", "number"),
    ]


def _check_mixed(ends: list[Any]) -> None:
    pushed, deep, unknown = ends[2], ends.pop(9), ends.pop(9)
    assert pushed == 4
    assert deep[:2] == [1, [2, b"deep", None]]
    assert str(deep[2]).startswith("ODD")
    assert isinstance(unknown, StoreRefused)
    refused = ends.pop(4)
    assert isinstance(refused, StoreRefused)
    assert refused.message.startswith("WRONGTYPE")
    elements = [b"a", b"bb", b"", b"\r\n$3\r\n"]
    assert ends == [b"one", None, 4, elements, b"", -42, b"PONG", [], b"x" * 300, 2]


async def test_replies_that_arrive_byte_by_byte_are_the_same_replies(valkey: RunningServer) -> None:
    async with proxy_to(valkey.port) as proxy:
        proxy.split = single_bytes
        async with opened(proxy.url, PATIENT) as store:
            _check_mixed(await outcomes(_mixed_calls(store)))
            async with crowd(store, callers=16, allowed=()) as callers:
                await callers.progress(rounds=2)


@pytest.fixture(scope="module")
def lasting_valkey() -> Iterator[RunningServer]:
    with run_valkey() as server:
        yield server


@settings(max_examples=25, deadline=None, database=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_replies_may_be_split_anywhere(lasting_valkey: RunningServer, sizes: list[int]) -> None:
    def split(data: bytes) -> Iterable[bytes]:
        at = 0
        for size in itertools.cycle(sizes):
            if at >= len(data):
                return
            yield data[at : at + size]
            at += size

    async def check() -> None:
        async with proxy_to(lasting_valkey.port) as proxy:
            proxy.split = split
            async with opened(proxy.url, PATIENT) as store:
                _check_mixed(await outcomes(_mixed_calls(store)))

    asyncio.run(check())


async def test_a_lost_reply_is_an_unknown_outcome_and_the_call_is_never_sent_twice(
    valkey: RunningServer,
) -> None:
    async with proxy_to(valkey.port) as proxy, opened(proxy.url, PATIENT) as store:
        proxy.hold_replies()
        lost = [store.call("INCR", "n") for _ in range(50)]
        await eventually(lambda: bool(valkey.command_reply("GET", "n") == b"50"), "the server did them all")
        proxy.cut()
        assert all(isinstance(end, OutcomeUnknown) for end in await outcomes(lost))
        assert await store.call("GET", "n") == b"50"


async def test_an_idempotent_call_whose_reply_was_lost_is_sent_again(valkey: RunningServer) -> None:
    async with proxy_to(valkey.port) as proxy, opened(proxy.url, PATIENT) as store:
        proxy.hold_replies()
        calls = [store.call("SET", f"k{n}", n, idempotent=True) for n in range(50)]
        await eventually(lambda: bool(valkey.command_reply("DBSIZE") >= 50), "the server did them all")
        proxy.cut()
        assert await outcomes(calls) == [b"OK"] * 50


async def test_cut_connections_never_count_more_than_was_asked_nor_less_than_was_acknowledged(
    valkey: RunningServer,
) -> None:
    asked, acknowledged = itertools.count(), itertools.count()

    async def count(store: Store, caller: int, token: str) -> None:
        next(asked)
        await store.call("INCR", "n")
        next(acknowledged)

    async with proxy_to(valkey.port) as proxy, opened(proxy.url) as store:
        async with crowd(store, count, allowed=(OutcomeUnknown,)) as callers:
            for _ in range(20):
                await callers.progress(rounds=1)
                proxy.hold_replies()
                await eventually(lambda: only_link(store).inflight == 64, "every caller waits for a reply")
                proxy.cut()
        counted = int(
            await store.call("GET", "n", timeout_s=HANG_S, idempotent=True)
        )  # the last cut may hit it
        assert next(acknowledged) <= counted <= next(asked)
        assert callers.errors["OutcomeUnknown"] >= 64


async def test_a_hundred_thousand_cancelled_callers_shift_no_reply_and_leave_nothing_behind(
    valkey: RunningServer,
) -> None:
    batch = 500
    async with opened(valkey.url, VERY_PATIENT) as store:
        for turn in range(100_000 // (2 * batch)):
            unsent = [store.call("ECHO", "unsent") for _ in range(batch)]
            for call in unsent:
                call.cancel()
            checked = []
            in_flight = []
            for n in range(batch):
                in_flight.append(store.call("ECHO", "in flight"))
                if n % 10 == 0:
                    checked.append(store.call("ECHO", f"{turn}-{n}"))
            first = await checked[0]
            for call in in_flight:
                call.cancel()
            replies = [first, *await outcomes(checked[1:])]
            assert replies == [f"{turn}-{n}".encode() for n in range(0, batch, 10)]
        link = only_link(store)
        await eventually(lambda: (link.inflight, link.waiting) == (0, 0), "nothing is left behind")
        assert link.stats.connects == 1
        assert b"cmdstat_echo:calls=105000," in await store.call("INFO", "commandstats"), "all were in flight"


async def test_callers_cancelled_while_the_store_is_away_are_forgotten(valkey: RunningServer) -> None:
    async with opened(valkey.url, PATIENT) as store:
        valkey.kill()
        link = only_link(store)
        await eventually(lambda: not link.connected)
        gone = [store.call("INCR", "n") for _ in range(1000)]
        stays = store.call("INCR", "n")
        for call in gone:
            call.cancel()
        await eventually(lambda: link.waiting == 1, "only the patient caller is left")
        await in_thread(valkey.start)
        assert await outcomes([stays]) == [1]


# -- closing


async def test_a_store_closes_at_once_whatever_its_keepers_were_about_to_do(valkey: RunningServer) -> None:
    await closes_after(valkey.url, lambda store: store.topology.doubt())


# -- scripts


async def test_scripts_flushed_under_load_are_loaded_again_and_no_call_fails(valkey: RunningServer) -> None:
    async with opened(valkey.url, PATIENT) as store:
        candidates = [store.leader(scopes.world(f"s{n}"), f"m{n}") for n in range(64)]

        async def campaign(store: Store, caller: int, token: str) -> None:
            assert isinstance(await candidates[caller].campaign(), Tenure)

        async with crowd(store, campaign, allowed=()) as callers:
            for _ in range(20):
                valkey.command_reply("SCRIPT", "FLUSH")
                await callers.progress(rounds=1)


# -- access


async def test_a_new_password_is_taken_up_without_losing_a_call() -> None:
    with run_valkey(password="old") as server:
        async with opened(server.url, PATIENT) as store:
            async with crowd(store, allowed=()) as callers:
                await callers.progress()
                server.command_reply("ACL", "SETUSER", "default", ">new")
                await store.reauthenticate(Credentials(password="new"))
                server.command_reply("ACL", "SETUSER", "default", "<old")
                server.password = "new"
                await callers.progress()
            server.command_reply("CLIENT", "KILL", "TYPE", "normal")
            assert await outcomes(store.call("ECHO", n, idempotent=True) for n in range(9)) == [
                str(n).encode() for n in range(9)
            ]
            assert only_link(store).stats.connects == 2


async def test_a_wrong_new_password_is_refused_and_the_old_one_stays_in_use() -> None:
    with run_valkey(password="old") as server:
        async with opened(server.url, PATIENT) as store:
            async with crowd(store, allowed=()) as callers:
                await callers.progress()
                with pytest.raises(StoreAccessDenied):
                    await store.reauthenticate(Credentials(password="wrong"))
                await callers.progress()
            server.command_reply("CLIENT", "KILL", "TYPE", "normal")
            assert await store.call("ECHO", "in", idempotent=True) == b"in"
            assert only_link(store).stats.connects == 2


async def test_a_limited_user_gets_in_and_is_denied_what_it_may_not_do(valkey: RunningServer) -> None:
    rules = ("on", ">secret", "~roost:*", "~mine:*", "+@read", "+@write", "+ping", "+echo")
    valkey.command_reply("ACL", "SETUSER", "app", *rules)
    async with opened(f"redis://app:secret@127.0.0.1:{valkey.port}") as store:
        assert await store.call("INCR", "mine:n") == 1
        denied = await outcomes([store.call("INCR", "others:n"), store.call("CONFIG", "GET", "port")])
        assert all(isinstance(end, StoreAccessDenied) for end in denied)
        assert await store.call("ECHO", "still in") == b"still in"


async def test_a_refused_bell_is_tried_again_at_a_growing_interval(valkey: RunningServer) -> None:
    valkey.command_reply("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")
    async with opened(f"redis://deaf:secret@127.0.0.1:{valkey.port}") as store:
        loop = asyncio.get_running_loop()
        started = loop.time()
        store.listen(b"bell", lambda message: None)

        def refusals() -> int:
            stats = valkey.command_reply("ACL", "LOG")
            return sum(entry[1] for entry in stats)

        await eventually(lambda: refusals() >= 6)
        assert loop.time() - started > 0.4
        assert await store.call("ECHO", "calls go on") == b"calls go on"


async def test_a_wrong_password_is_said_when_the_store_is_opened() -> None:
    with run_valkey(password="right") as server:
        for secret in (":wrong@", "nobody:right@", ""):
            with pytest.raises(StoreAccessDenied):
                async with opened(f"redis://{secret}127.0.0.1:{server.port}", wait_s=None):
                    pass


async def test_the_database_of_the_url_is_used_again_after_a_reconnect(valkey: RunningServer) -> None:
    async with opened(f"{valkey.url}/3") as third, opened(f"{valkey.unix_url}?db=3") as same:
        await third.call("SET", "k", "third")
        valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
        assert await third.call("GET", "k", idempotent=True) == b"third"
        assert await same.call("GET", "k", idempotent=True) == b"third"
    async with opened(valkey.url) as zeroth:
        assert await zeroth.call("GET", "k") is None


async def test_a_unix_socket_survives_the_same_faults(valkey: RunningServer) -> None:
    async with opened(valkey.unix_url) as store, crowd(store) as callers:
        await callers.progress()
        valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
        await callers.progress()
        valkey.kill()
        await callers.trouble()
        await in_thread(valkey.start)
        await callers.progress()


async def test_the_client_name_is_seen_in_the_client_list_before_and_after_a_reconnect(
    valkey: RunningServer,
) -> None:
    async with opened(valkey.url, client_name="gate-7") as store:
        before = clients_of(valkey, "gate-7")
        valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
        await store.call("PING", idempotent=True)
        after = clients_of(valkey, "gate-7")
        assert len(before) == len(after) == 1
        assert before[0]["id"] != after[0]["id"]


# -- large replies


async def test_large_replies_go_over_a_connection_of_their_own(valkey: RunningServer) -> None:
    large = "x" * 1_000_000
    async with opened(valkey.url) as store:
        await store.call("SET", "large", large)
        assert len(clients_of(valkey, "roost")) == 1
        reply = await store.call("GET", "large", bulk=True, idempotent=True)
        assert reply == large.encode()
        assert await store.call("ECHO", "small") == b"small"
        assert sorted(client["cmd"] for client in clients_of(valkey, "roost")) == ["echo", "get"]
        assert [line.stats.connects for line in only_link(store).lines()] == [1, 1]


async def test_large_replies_survive_killed_connections(valkey: RunningServer) -> None:
    async def read(store: Store, caller: int, token: str) -> None:
        reply = await store.call("GET", f"large{caller}", bulk=True, idempotent=True)
        assert reply == bytes([97 + caller]) * 300_000

    async with opened(valkey.url, PATIENT) as store:
        for n in range(8):
            await store.call("SET", f"large{n}", bytes([97 + n]) * 300_000)
        async with crowd(store, read, callers=8, allowed=()) as callers:
            for _ in range(10):
                await callers.progress(rounds=1)
                valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
            await callers.progress()


async def test_a_caller_that_tries_again_at_once_leaves_the_loop_turning(valkey: RunningServer) -> None:
    async with opened(valkey.url) as store:
        valkey.kill()
        await eventually(lambda: not only_link(store).connected, "the loss to be noticed")

        async def stubborn() -> None:
            while True:
                with contextlib.suppress(StoreError):
                    await store.call("PING")

        task = asyncio.create_task(stubborn())
        await asyncio.sleep(3 * FAST.command_timeout_s)  # it returns at all: that is the proof
        assert not task.done()
        task.cancel()
        async with asyncio.timeout(HANG_S):
            await asyncio.gather(task, return_exceptions=True)
