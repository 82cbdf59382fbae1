"""How fast is a user's home found and made, beside the documented lock and scan of every server's map?"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import uvloop

from callers import Once, rate
from report import Case, need, publish, result_file
from roost.api.discovery import Change
from roost.binding.scripts import Bound, Placed
from roost.binding.service import Bindings
from roost.binding.settings import BindingSettings
from roost.core.owner import Owner
from roost.servers.gate.routes import Route, Routes
from roost.store.store import Store
from roost.testing import RunningServer, open_store, run_valkey
from roost.testing.bindings import BindingLeader

try:
    import redis.asyncio as redis_py
except ImportError:
    need("redis")

ROUNDS = 5
ROUND_S = 0.5
WARM_UP_S = 0.1
CALLERS = 64
USERS = 2000
LOOKS = 200
SERVERS = (2, 20, 200)
PROMISED_AT_20 = 15.0
LOCK_MS = 5000
UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

METHOD = (
    f"A throwaway valkey-server on loopback TCP for each number of servers, one client process under uvloop, "
    f"{CALLERS} callers that each ask for one of {USERS} bound users as soon as the last answer is there; "
    f"contenders take turns within each of {ROUNDS} rounds of {ROUND_S:g} s, the median counts. `cached` is "
    f"a look into the gate's routes, `uncached` one HMGET of the user's record, `resolve` the script on a "
    f"bound user, `first placement` the script on a user whom nobody holds. `documented` is document 001's "
    f"getServerIDWithUserID, call by call: SET NX PX, the ids of availableEntities, for each server the size "
    f"of its map, whether it takes users, whether it has the user (it stops where it has), the unlock "
    f"by a script. Its lock is per user; document 001 has one lock for the whole service type, which is the "
    f"contender `as written` (it tries again after a millisecond). Both are on our link; `on redis-py` is "
    f"`documented` through BlockingConnectionPool({CALLERS}) with the hiredis parser."
)

Call = Callable[..., Awaitable[Any]]
"""One command and its reply, on whichever client."""


class Documented:
    """Document 001's way, on any client."""

    def __init__(self, call: Call, *, locks_all: bool = False) -> None:
        self._call = call
        self._locks_all = locks_all
        self._tokens = itertools.count()

    async def server_of(self, user: str) -> str:
        lock = "slb:lock" if self._locks_all else f"slb:lock:{user}"
        token = f"t{next(self._tokens)}"
        while not await self._call("SET", lock, token, "NX", "PX", LOCK_MS):
            await asyncio.sleep(0.001)
        try:
            return await self._find(user)
        finally:
            await self._call("EVAL", UNLOCK, 1, lock, token)

    async def _find(self, user: str) -> str:
        least, target = 1 << 31, b""
        for server in await self._call("HKEYS", "availableEntities"):
            binders = b"binders:" + server
            size = await self._call("HLEN", binders)
            if await self._call("HGET", "availableEntities", server) == b"1" and size < least:
                least, target = size, server
            if not await self._call("HEXISTS", binders, user):
                continue
            await self._call("HGET", binders, user)
            return str(server.decode())
        await self._call("HSET", b"binders:" + target, user, "0")
        return str(target.decode())


class Nobody:
    async def watch(self, type: str, group: str, /) -> Any:  # noqa: A002
        return
        yield Change


async def our_fleet(store: Store, count: int) -> Bindings:
    bindings = Bindings(store, BindingSettings(lease_ms=600_000), Nobody())
    leader = await BindingLeader.of(store, bindings)
    for number in range(count):
        await leader.shows(f"{number}", "7")
        await bindings.beat("entity", Owner(f"{number}", "7"), capacity=0)
    return bindings


async def their_fleet(store: Store, count: int) -> None:
    for number in range(count):
        await store.call("HSET", "availableEntities", number, 1)


def each(act: Callable[[str], Awaitable[Any]], prefix: str = "user") -> Once:
    """One user after the other."""
    numbers = itertools.count()
    return lambda: act(f"{prefix}{next(numbers) % USERS:06d}")


def each_new(act: Callable[[str], Awaitable[Any]], prefix: str) -> Once:
    numbers = itertools.count()
    return lambda: act(f"{prefix}{next(numbers):08d}")


async def measure(case: Case, contenders: dict[str, Once]) -> Case:
    for once in contenders.values():
        await rate(once, CALLERS, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
        for name, once in contenders.items():
            case.add(name, await rate(once, CALLERS, ROUND_S))
    return case


async def cached(bindings: Bindings) -> Case:
    """What a gate does in steady state: no call of the store, so nothing to wait for."""
    users, routes = [f"user{number:06d}" for number in range(USERS)], Routes()
    for user in users:
        found = await bindings.resolve("entity", user)
        assert isinstance(found, (Bound, Placed))
        routes.keep("entity", user, Route(*found.owner, found.epoch))
    case = Case("cached (the gate's routes)")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for user in users * LOOKS:
            routes.get("entity", user)
        case.add("ours", USERS * LOOKS / (time.perf_counter() - started))
    return case


async def over(servers: int, server: RunningServer, stack: AsyncExitStack) -> list[Case]:
    store = await stack.enter_async_context(open_store(server.url))
    bindings = await our_fleet(store, servers)
    await their_fleet(store, servers)
    documented = Documented(store.call)
    for number in range(USERS):
        await bindings.resolve("entity", f"user{number:06d}")
        await store.call("HSET", f"binders:{number % servers}", f"user{number:06d}", "0")
    contenders = {
        "ours": each(lambda user: bindings.read("entity", user)),
        "documented": each(documented.server_of),
    }
    if servers == 20:
        contenders["as written"] = each(Documented(store.call, locks_all=True).server_of)
    promised = {"documented": PROMISED_AT_20} if servers == 20 else {}
    cases = [await measure(Case(f"uncached, {servers} servers, 64 callers", promised), contenders)]
    if servers == 20:
        cases += await at_twenty(store, bindings, documented, server, stack)
    return cases


async def at_twenty(
    store: Store, bindings: Bindings, documented: Documented, server: RunningServer, stack: AsyncExitStack
) -> list[Case]:
    pool = redis_py.BlockingConnectionPool(host="127.0.0.1", port=server.port, max_connections=CALLERS)
    redis = await stack.enter_async_context(redis_py.Redis(connection_pool=pool))
    stack.push_async_callback(pool.disconnect)
    on_redis = Documented(redis.execute_command)
    read = each(lambda user: bindings.read("entity", user))
    resolve = each(lambda user: bindings.resolve("entity", user))
    return [
        await cached(bindings),
        await measure(
            Case("uncached, 20 servers, beside redis-py"),
            {"ours": read, "on redis-py": each(on_redis.server_of)},
        ),
        await measure(
            Case("resolve (bound), 20 servers"), {"ours": resolve, "documented": each(documented.server_of)}
        ),
        await measure(Case("first placement, 20 servers"), placements(bindings, documented)),
    ]


def placements(bindings: Bindings, documented: Documented) -> dict[str, Once]:
    return {
        "ours": each_new(lambda user: bindings.resolve("entity", user), "a"),
        "documented": each_new(documented.server_of, "b"),
    }


async def at_a_thousand(server: RunningServer) -> Case:
    async with open_store(server.url) as store:
        bindings = await our_fleet(store, 1000)
        await their_fleet(store, 1000)
        return await measure(
            Case("first placement, 1,000 servers"), placements(bindings, Documented(store.call))
        )


async def main() -> list[Case]:
    cases: list[Case] = []
    for servers in SERVERS:
        with run_valkey() as server:
            async with AsyncExitStack() as stack:
                cases += await over(servers, server, stack)
    with run_valkey() as server:
        cases.append(await at_a_thousand(server))
    return cases


if __name__ == "__main__":
    path = result_file()
    found = uvloop.run(main())
    sys.exit(publish("route", "answers per second", METHOD, found, path))
