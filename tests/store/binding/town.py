"""A partition's scripts on a real server, with the clock in the test's hand, and what must always hold."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from roost.binding.model import FIELDS, Record
from roost.binding.scripts import (
    Beaten,
    Board,
    Bound,
    Buried,
    Changed,
    Committed,
    Dead,
    Deposed,
    Ended,
    Frozen,
    Gone,
    NewsLost,
    NoRoom,
    NotOwner,
    PartitionScripts,
    Placed,
    Reasserted,
    Released,
    Renewed,
    Repaired,
    Replaced,
    Resolved,
    Stale,
    Synced,
    Ticked,
    Unknown,
)
from roost.core.events import Entry
from roost.core.lease import MAX_STEP_MS
from roost.core.owner import Owner
from roost.store import scopes
from roost.store.keys import Key
from roost.store.keys.binding import partition_keys
from roost.store.store import Store
from tests.store.reading import fields_of, keys_below, whole_feed

Read = TypeVar("Read")

T0 = 1_700_000_000_000_000
MS = 1_000
SECOND = 1_000_000
LEASE_MS = 6000
HOLDER = "m"
TYPE = "entity"
S1 = Owner("s1", "7")
FULL, CLOSED = 10**12, 2 * 10**12


class Town:
    """Calls the scripts of one partition at `now`, which only the test moves."""

    def __init__(self, store: Store, number: int = 0, *, slow_ms: int = 0) -> None:
        self.store = store
        self.scope = scopes.partition(number)
        self.scripts = PartitionScripts(store.library, store.keys, self.scope)
        self.now = T0
        self.epoch = 1
        self.slow_ms = slow_ms
        self.draw = 0
        self.news: dict[str, str] = {}
        self._syncs = 0

    # -- who holds a user

    async def read(self, user: str = "ann", type_: str = TYPE) -> Record | None:
        key = self.user_key(user, type_)
        return Record.read(await self.store.call("HMGET", key, *FIELDS, key=key))

    async def resolve(
        self, user: str = "ann", *, seen: int = 0, version: str = "", place: bool = True, type_: str = TYPE
    ) -> Resolved:
        return await self.scripts.resolve(
            type=type_,
            user=user,
            above=seen,
            version=version,
            place=int(place),
            draw=self.draw,
            slow_ms=self.slow_ms,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    async def placed(self, user: str = "ann", **more: Any) -> Placed:
        answer = await self.resolve(user, **more)
        assert isinstance(answer, Placed), answer
        return answer

    async def bound(self, user: str = "ann", **more: Any) -> Bound:
        answer = await self.resolve(user, **more)
        assert isinstance(answer, Bound), answer
        return answer

    async def bind(
        self, user: str = "ann", owner: Owner = S1, *, seen: int = 0, version: str = "", type_: str = TYPE
    ) -> Resolved:
        return await self.scripts.bind(
            type=type_,
            user=user,
            server=owner.server_id,
            life=owner.life,
            above=seen,
            version=version,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    # -- owners

    async def beat(
        self,
        server: str = "s1",
        life: int = 7,
        *,
        cap: int = 0,
        version: str = "1",
        active: Sequence[str] = (),
        type_: str = TYPE,
    ) -> Beaten | Unknown | Ended:
        return await self.scripts.beat(
            type=type_,
            server=server,
            life=str(life),
            capacity=cap,
            version=version,
            ttl_ms=LEASE_MS,
            max_step_ms=MAX_STEP_MS,
            active=active,
            now=self.now,
        )

    async def release(
        self, user: str, owner: Owner, epoch: int, why: str = "released", type_: str = TYPE
    ) -> Released | NotOwner:
        return await self.scripts.release(
            type=type_,
            user=user,
            server=owner.server_id,
            life=owner.life,
            epoch=epoch,
            why=why,
            now=self.now,
        )

    async def renew(
        self, user: str, owner: Owner, above: int = 0, why: str = "renewed", type_: str = TYPE
    ) -> Renewed | NotOwner:
        return await self.scripts.renew(
            type=type_,
            user=user,
            server=owner.server_id,
            life=owner.life,
            above=above,
            why=why,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    async def freeze(
        self,
        user: str,
        owner: Owner,
        epoch: int,
        target: Owner,
        *,
        move: str = "m1",
        ttl_ms: int = 3000,
        type_: str = TYPE,
    ) -> Frozen | NotOwner | NoRoom:
        asked = (user, epoch, move)
        return (await self.freezes(owner, target, asked, ttl_ms=ttl_ms, type_=type_))[0]

    async def freezes(
        self,
        owner: Owner,
        target: Owner,
        *asked: tuple[str, int, str],
        ttl_ms: int = 3000,
        type_: str = TYPE,
    ) -> list[Frozen | NotOwner | NoRoom]:
        answer = await self.scripts.freeze(
            type=type_,
            server=owner.server_id,
            life=owner.life,
            target_server=target.server_id,
            target_life=target.life,
            ttl_ms=ttl_ms,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
            asked=[part for one in asked for part in one],
        )
        return answer.each()

    async def frozen(self, user: str, epoch: int, source: Owner, target: Owner, **more: Any) -> int:
        answer = await self.freeze(user, source, epoch, target, **more)
        assert isinstance(answer, Frozen), answer
        return answer.epoch

    async def commit(
        self, user: str, target: Owner, epoch: int, *, move: str = "m1", type_: str = TYPE
    ) -> Committed | Gone:
        return (await self.commits(target, (user, move, epoch), type_=type_))[0]

    async def commits(
        self, target: Owner, *asked: tuple[str, str, int], type_: str = TYPE
    ) -> list[Committed | Gone]:
        answer = await self.scripts.commit(
            type=type_,
            server=target.server_id,
            life=target.life,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
            asked=[part for one in asked for part in one],
        )
        return answer.each()

    async def reassert(self, owner: Owner, *held: tuple[str, int], type_: str = TYPE) -> list[Record | None]:
        answer: Reasserted = await self.scripts.reassert(
            type=type_,
            server=owner.server_id,
            life=owner.life,
            max_step_ms=MAX_STEP_MS,
            held=[str(part) for one in held for part in one],
            now=self.now,
        )
        return answer.records()

    async def repair(
        self, user: str, wrong: Owner, epoch: int, right: Owner, above: int = 0, type_: str = TYPE
    ) -> Repaired | Dead | Changed:
        return await self.scripts.repair(
            type=type_,
            user=user,
            wrong_server=wrong.server_id,
            wrong_life=wrong.life,
            epoch=epoch,
            right_server=right.server_id,
            right_life=right.life,
            above=above,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    # -- the leader

    async def lead(self, holder: str = HOLDER, epoch: int | None = None) -> None:
        """The store has granted this leadership."""
        key, epoch = self.key("leader"), self.epoch if epoch is None else epoch
        await self.store.call("HSET", key, "holder", holder, "epoch", epoch, "until_ms", 0, key=key)

    async def sync(
        self,
        *rows: tuple[str, int, str],
        full: bool = False,
        number: int | None = None,
        epoch: int | None = None,
        holder: str = HOLDER,
        type_: str = TYPE,
    ) -> Synced | Stale | Deposed:
        """The leader's news: (server id, life, `1` `0` or `-`)."""
        self._syncs += 1
        number, epoch = self._syncs if number is None else number, self.epoch if epoch is None else epoch
        answer = await self.scripts.sync(
            holder=holder,
            epoch=str(epoch),
            type=type_,
            number=number,
            full=int(full),
            max_step_ms=MAX_STEP_MS,
            rows=[str(part) for row in rows for part in row],
            now=self.now,
        )
        if isinstance(answer, Synced):
            self.news[type_] = f"{epoch}:{number}"
        return answer

    async def opens(
        self,
        server: str = "s1",
        life: int = 7,
        *,
        cap: int = 0,
        version: str = "1",
        state: str = "1",
        type_: str = TYPE,
    ) -> Owner:
        """Discovery shows this life, the leader has written it, and it has beaten."""
        await self.lead()
        answer = await self.sync((server, life, state), type_=type_)
        assert isinstance(answer, Synced), answer
        await self.beat(server, life, cap=cap, version=version, type_=type_)
        return Owner(server, str(life))

    async def bury(self, server: str = "s1", life: int = 7, type_: str = TYPE) -> Buried:
        return await self.scripts.bury(
            type=type_, server=server, life=str(life), max_step_ms=MAX_STEP_MS, now=self.now
        )

    async def tick(
        self,
        *,
        idle_ms: int = 0,
        count: int = 100,
        holder: str = HOLDER,
        epoch: int | None = None,
        news: str | None = None,
        type_: str = TYPE,
    ) -> Ticked | NewsLost | Deposed:
        if news is None and type_ not in self.news:
            await self.lead()
            await self.sync(type_=type_)
        return await self.scripts.tick(
            holder=holder,
            epoch=str(self.epoch if epoch is None else epoch),
            type=type_,
            news=self.news[type_] if news is None else news,
            idle_ms=idle_ms,
            count=count,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    async def replace(
        self,
        server: str = "s1",
        life: int = 7,
        *,
        count: int = 100,
        holder: str = HOLDER,
        version: str = "",
        type_: str = TYPE,
    ) -> Replaced | Deposed:
        return await self.scripts.replace(
            holder=holder,
            epoch=str(self.epoch),
            type=type_,
            server=server,
            life=str(life),
            version=version,
            count=count,
            draw=self.draw,
            slow_ms=self.slow_ms,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    async def pass_ms(self, ms: int, *, beating: Sequence[tuple[str, int]] = (), **more: Any) -> None:
        """Lease time goes on by exactly `ms`, look by look, while some servers beat."""
        while ms > 0:
            step = min(ms, 1000)
            self.now += step * MS
            ms -= step
            for server, life in beating:
                await self.beat(server, life, **more)
            assert isinstance(await self.tick(), Ticked)

    # -- the journal

    async def append(
        self, *entries: tuple[str, int, int, bytes] | tuple[str, int, int, bytes, int], type_: str = TYPE
    ) -> list[str]:
        flat: list[Any] = []
        for entry in entries:
            user, epoch, sequence, payload, *after = entry
            flat += (user, epoch, sequence, after[0] if after else 0, payload)
        return (await self.scripts.append(type=type_, entries=flat)).answers

    # -- the test's own hands

    async def marks(
        self, user: str, target: Owner, *, left_ms: int, next_epoch: int, type_: str = TYPE
    ) -> None:
        """A mark of a move with a promise of the test's own, on whomever, and a seat at the target."""
        clock = int((await self.numbers()).get("clock_ms", "0"))
        key, binders = self.user_key(user, type_), self.binders_key(target, type_)
        mark = ("d", target.server_id, "dl", target.life, "ne", next_epoch, "m", "m1", "dt", clock + left_ms)
        await self.store.call("HSET", key, "st", "M", *mark, key=key)
        await self.store.call("ZADD", binders, 0, user, key=binders)
        ranking = self.key("ranking") + type_.encode()
        await self.store.call("ZINCRBY", ranking, 1, target.server_id, key=ranking)

    async def numbers(self) -> dict[str, str]:
        return await fields_of(self.store, self.key("partition"))

    async def binders(self, owner: Owner, type_: str = TYPE) -> list[str]:
        key = self.binders_key(owner, type_)
        return [user.decode() for user in await self.store.call("ZRANGE", key, 0, -1, key=key)]

    async def board(self, type_: str = TYPE) -> Board:
        return await self.scripts.board(type=type_)

    async def feed(self) -> list[Entry]:
        return await whole_feed(self.store, self.scope)

    async def told(self) -> list[tuple[str, str, str]]:
        """(user, server id, why) of every change of hands."""
        return [
            (entry.fields["user"], entry.fields["serverId"], entry.fields["why"])
            for entry in await self.feed()
        ]

    async def copy(self) -> dict[bytes, bytes]:
        """Every key of the partition, as a replica may have it: what a failover goes back to."""
        found = await self.store.call(
            "KEYS", b"*{" + self.scope.tag.encode() + b"}*", key=self.key("partition")
        )
        return {key: await self.store.call("DUMP", key, key=key) for key in found}

    async def fails_over_to(self, copied: dict[bytes, bytes]) -> None:
        """The store is what it was when the copy was made: every later write is lost."""
        await self.wiped()
        for key, dumped in copied.items():
            await self.store.call("RESTORE", key, 0, dumped, key=key)

    async def wiped(self) -> None:
        """Everything is lost."""
        for key in await self.copy():
            await self.store.call("DEL", key, key=key)

    def user_key(self, user: str, type_: str = TYPE) -> bytes:
        return self.key("users") + f"{type_}:{user}".encode()

    def binders_key(self, owner: Owner, type_: str = TYPE) -> bytes:
        return self.key("binders") + f"{type_}:{owner.server_id}:{owner.life}".encode()

    def key(self, part: str) -> Key:
        return partition_keys(self.store.keys, self.scope)[part]


@dataclass(frozen=True, slots=True)
class State:
    """Every key of a partition, read."""

    users: dict[str, dict[str, str]]
    """`type:user` → record."""
    binders: dict[str, set[str]]
    """`type:server:life` → users."""
    ranking: dict[str, dict[str, int]]
    servers: dict[str, list[str]]
    clock: int


async def read_state(town: Town) -> State:
    store = town.store

    async def each(part: str, read: Callable[[bytes], Awaitable[Read]]) -> dict[str, Read]:
        below = await keys_below(store, town.key(part))
        return dict(zip(below, await asyncio.gather(*map(read, below.values())), strict=True))

    async def binders_of(key: bytes) -> set[str]:
        return {user.decode() for user in await store.call("ZRANGE", key, 0, -1, key=key)}

    async def ranking_of(key: bytes) -> dict[str, int]:
        flat = await store.call("ZRANGE", key, 0, -1, "WITHSCORES", key=key)
        return {flat[at].decode(): int(float(flat[at + 1])) for at in range(0, len(flat), 2)}

    users, binders, ranking, packed, numbers = await asyncio.gather(
        each("users", lambda key: fields_of(store, key)),
        each("binders", binders_of),
        each("ranking", ranking_of),
        fields_of(store, town.key("servers")),
        town.numbers(),
    )
    rows = {name: row.split("\t") for name, row in packed.items()}
    return State(users, binders, ranking, rows, int(numbers.get("clock_ms", "0")))


async def invariants(town: Town) -> State:
    """What holds in every state that scripts have made; returns the state."""
    state = await read_state(town)
    seats: Counter[tuple[str, str]] = Counter()
    for name, record in state.users.items():
        type_, _, user = name.partition(":")
        assert record["st"] in ("A", "M", "R"), name
        assert (record["st"] == "R") == (record["s"] == ""), name
        assert int(record["e"]) > int(record["p"]) or (record["st"] == "R" and record["e"] == record["p"]), (
            name
        )
        if record["s"]:
            seats[f"{type_}:{record['s']}:{record['l']}", user] += 1
        if record.get("d") and (record["d"], record["dl"]) != (record["s"], record["l"]):
            seats[f"{type_}:{record['d']}:{record['dl']}", user] += 1
    counted = {(life, user) for life, users in state.binders.items() for user in users}
    assert counted == set(seats), "load = bindings + seats"
    for field, row in state.servers.items():
        type_, _, server = field.partition(":")
        users = len(state.binders.get(f"{field}:{row[0]}", ()))
        rank = state.ranking[type_][server]
        assert rank % FULL == users, f"{field} is ranked by {rank}, and has {users}"
    return state
