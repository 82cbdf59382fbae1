"""Document 001's order of a move, for comparison only: mark, log out, write, unbind, publish, log in again.

What it leaves open is played in the kindest way: a lock per user instead of one for everybody, the steps of
the old server without a lock; a server that does not have the user says so at once and executes nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import redis.asyncio as redis_py

from roost.core.owner import Owner
from roost.db.database import Database
from roost.db.model import Flush
from roost.store.store import Store
from roost.testing import open_store, run_valkey
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, WireServer, refusal

TYPE = "documented"
OWNER = Owner("501", "life")
SERVICE, MESSAGE = 1, 1
PADDING = b"x" * 400
LOCK_MS = 10_000
WAIT_S = 5.0
"""For the end of a move, as document 001 has it."""
UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode


class Server:
    """An entity server that counts for the users who are logged in."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wire = WireServer(secret=None)
        self.users: dict[str, int] = {}
        self.peer: Peer

    async def start(self) -> None:
        self._wire.register(SERVICE, MESSAGE, self._message)
        address = await self._wire.start(("127.0.0.1", 0))
        self.peer = Peer(*address, secret=None, role="gate")

    async def close(self) -> None:
        await self.peer.close()
        await self._wire.close(0)

    def _message(self, call: Call) -> Answer:
        user = unpack(call.payload)
        if user not in self.users:
            return refusal(Code.NOT_OWNER, "nobody of this name is logged in here")
        self.users[user] += 1
        return Answer(pack(self.users[user]))

    async def login(self, user: str) -> None:
        row = await self._database.read(TYPE, user)
        assert row is not None
        self.users[user] = int((row.state or b"0 ").partition(b" ")[0])


class Town:
    """Two servers, and the load balancer before them, which every request asks."""

    def __init__(self, database: Database, store: Store, redis: Any) -> None:
        self._database = database
        self._store = store
        self._redis = redis
        self._tokens = itertools.count()
        self.servers = {name: Server(database) for name in ("501", "502")}
        self.logins: set[asyncio.Task[None]] = set()
        self.pauses_ms: list[float] = []

    async def start(self) -> None:
        for name, server in self.servers.items():
            await server.start()
            await self._store.call("HSET", "availableEntities", name, 1)

    async def close(self) -> None:
        for server in self.servers.values():
            await server.close()

    async def enter(self, user: str) -> None:
        await self._database.claim(TYPE, user, OWNER, 1, judged=0)
        await self._store.call("HSET", "binders:501", user, "0")
        self.servers["501"].users[user] = 0

    # -- getServerIDWithUserID

    async def server_of(self, user: str) -> str | None:
        lock, token = f"slb:lock:{user}", f"t{next(self._tokens)}"
        while not await self._store.call("SET", lock, token, "NX", "PX", LOCK_MS):
            await asyncio.sleep(0.001)
        try:
            return await self._find(user)
        finally:
            await self._store.call("EVAL", UNLOCK, 1, lock, token)

    async def _find(self, user: str) -> str | None:
        least, target = 1 << 31, b""
        for server in await self._store.call("HKEYS", "availableEntities"):
            binders = b"binders:" + server
            size = await self._store.call("HLEN", binders)
            if await self._store.call("HGET", "availableEntities", server) == b"1" and size < least:
                least, target = size, server
            if not await self._store.call("HEXISTS", binders, user):
                continue
            if await self._store.call("HGET", binders, user) == b"1" and not await self._wait(user):
                return None
            return str(server.decode())  # the old server, also after the wait: so it stands there
        await self._store.call("HSET", b"binders:" + target, user, "0")
        return str(target.decode())

    async def _wait(self, user: str) -> bool:
        async with self._redis.pubsub() as channel:
            await channel.subscribe(f"migrate:{user}")
            try:
                async with asyncio.timeout(WAIT_S):
                    async for message in channel.listen():
                        if message["type"] == "message":
                            return True
            except TimeoutError:
                pass
        return False

    # -- onAd2EnNoticeHotfix

    async def close_source(self) -> None:
        await self._store.call("HSET", "availableEntities", "501", 0)

    async def move(self, user: str) -> None:
        started = time.perf_counter()
        await self._store.call("HSET", "binders:501", user, "1")
        count = self.servers["501"].users.pop(user)
        await self._database.flush(Flush(TYPE, user, 1, 1, b"%d " % count + PADDING))
        await self._store.call("HDEL", "binders:501", user)
        task = asyncio.create_task(self._log_in_again(user, started))
        self.logins.add(task)
        await self._store.call("PUBLISH", f"migrate:{user}", "data migrate finish")

    async def _log_in_again(self, user: str, started: float) -> None:
        """The lobby heard of it, and asks the load balancer like anybody."""
        server = await self.server_of(user)
        assert server is not None
        await self.servers[server].login(user)
        self.pauses_ms.append((time.perf_counter() - started) * 1000)


class Client:
    def __init__(self, town: Town, user: str) -> None:
        self._town = town
        self._user = user
        self.found: Counter[str] = Counter()
        self.is_over = False

    async def play(self, pause_s: float) -> None:
        while not self.is_over:
            self.found[await self._request()] += 1
            await asyncio.sleep(pause_s)

    async def _request(self) -> str:
        self.found["sent"] += 1
        server = await self._town.server_of(self._user)
        if server is None:
            return "waited 5 s in vain"
        answer = await self._town.servers[server].peer.call(
            SERVICE, MESSAGE, pack(self._user), budget_ms=5000
        )
        return "answered" if answer.code is Code.OK else "served by nobody"

    def settle(self) -> None:
        """What was acknowledged and is not in the user's state, or is there twice."""
        counts = [
            server.users[self._user] for server in self._town.servers.values() if self._user in server.users
        ]
        self.found["two owners"] += len(counts) > 1
        missing = self.found["answered"] - max(counts)
        self.found["forgotten" if missing > 0 else "doubled"] += abs(missing)


@asynccontextmanager
async def town_on(database: Database) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(run_valkey())
        store = await stack.enter_async_context(open_store(server.url))
        redis = await stack.enter_async_context(redis_py.Redis(host="127.0.0.1", port=server.port))
        town = Town(database, store, redis)
        stack.push_async_callback(town.close)
        await town.start()
        yield town
