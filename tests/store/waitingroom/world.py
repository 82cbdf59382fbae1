"""A world's scripts on a real server, with the clock in the test's hand, and what must always hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roost.core.events import Entry
from roost.core.lease import MAX_STEP_MS
from roost.store import scopes
from roost.store.keys import Key
from roost.store.keys.waitingroom import world_keys
from roost.store.store import Store
from roost.waitingroom.scripts import (
    Admitted,
    Board,
    Conflict,
    Consumed,
    Deposed,
    Dropped,
    Entered,
    Fenced,
    Found,
    Governed,
    Inside,
    Left,
    NewsLost,
    NoPlace,
    NotInside,
    Offered,
    Pending,
    Released,
    Reported,
    Stale,
    Synced,
    Ticked,
    Touched,
    Waiting,
    WorldScripts,
    found_of,
)
from tests.store.reading import fields_of, keys_below, pairs, whole_feed

T0 = 1_700_000_000_000_000
MS = 1_000
SECOND = 1_000_000
TICKET_MS = 60_000
LATE_MS = 8_000
GONE_MS = 300_000
GRACE_MS = 120_000
REBUILD_MS = 120_000
RECEIPT_MS = 3_600_000
HOLDER = "m"
LIFE = 7
BASE_AND_VIP: Mapping[str, int] = {":vip": 1, "": 3}


class World:
    """Calls the scripts of one world at `now`, which only the test moves."""

    def __init__(
        self, store: Store, name: str = "main", weights: Mapping[str, int] | None = None, **policy: int
    ) -> None:
        self.store = store
        self.scope = scopes.world(name)
        self.scripts = WorldScripts(store.library, store.keys, self.scope)
        self.weights = dict(weights or {"": 1})
        self.now = T0
        self.epoch = 1
        self.ticket_ms = policy.get("ticket_ms", TICKET_MS)
        self.forfeit = policy.get("forfeit", 0)
        self.period_ms = policy.get("period_ms", 0)
        self.news = ""
        self._tids = 0
        self._reports = 0
        self._syncs = 0
        self.last_sync = 0
        self._lives: dict[str, int] = {}

    # -- people

    async def enter(
        self,
        user: str = "ann",
        *,
        line: str = "",
        tid: str = "",
        receipt: tuple[int, int] | None = None,
        receipt_age_ms: int = 0,
        most_waiting: int = 1_000_000,
        nickname: str = "",
        region: str = "",
        party: str = "",
        size: int = 1,
        trace: str = "",
    ) -> Entered:
        """`receipt` is (seq, birth of the world that gave it)."""
        seq, born = receipt or ("", "")
        return await self.scripts.enter(
            user=user,
            nickname=nickname,
            region=region,
            line=line,
            tid=tid or self.new_tid(),
            ticket_ms=self.ticket_ms,
            most_waiting=most_waiting,
            receipt_seq=seq,
            receipt_born=born,
            receipt_age=receipt_age_ms,
            rebuild_ms=REBUILD_MS,
            receipt_ms=RECEIPT_MS,
            forfeit=self.forfeit,
            party=party,
            size=size,
            trace=trace,
            period_ms=self.period_ms,
            burst=10,
            lines=list(self.weights),
            now=self.now,
        )

    async def waits(self, user: str = "ann", **more: Any) -> Waiting:
        """Enter, and get a place in the line."""
        answer = await self.enter(user, **more)
        assert isinstance(answer, Waiting), answer
        return answer

    async def gets_ticket(self, user: str = "ann", **more: Any) -> Offered:
        """Enter, and get a ticket at once."""
        answer = await self.enter(user, **more)
        assert isinstance(answer, Offered), answer
        return answer

    async def crowd(self, count: int, prefix: str = "u", **more: Any) -> list[str]:
        """So many people in the line, in the order of their names."""
        users = [f"{prefix}{number:05}" for number in range(count)]
        for first in range(0, count, 500):
            await asyncio.gather(*(self.waits(user, **more) for user in users[first : first + 500]))
        return users

    async def status(self, user: str = "ann") -> Found:
        told = await self.scripts.status(
            forfeit=self.forfeit, period_ms=self.period_ms, burst=10, now=self.now, users=[user]
        )
        return found_of(told.found[0])

    async def rank(self, user: str = "ann") -> int:
        found = await self.status(user)
        assert isinstance(found, Waiting), found
        return found.rank

    async def touch(self, *users: str, poll_ms: int = 2000, seq: int | None = None) -> Touched:
        """They show a receipt of the place `seq`; without it, of the one that they have."""
        people = await asyncio.gather(*(self.person(user) for user in users if seq is None))
        seqs = [person.get("seq", "0") for person in people] or [str(seq)] * len(users)
        marks = [
            part for user, place in zip(users, seqs, strict=True) for part in (user, place, str(poll_ms))
        ]
        return await self.scripts.touch(ticket_key="", now=self.now, marks=marks)

    async def leave(
        self, user: str = "ann", cause: str = "left", seq: int | str = ""
    ) -> Left | NoPlace | Inside:
        return await self.scripts.leave(user=user, seq=str(seq), cause=cause, now=self.now)

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
        count: int = 500,
    ) -> Synced | Stale | Deposed:
        """The leader's news: (server id, life, `1` `0` or `-`)."""
        self._syncs += 1
        number, epoch = self._syncs if number is None else number, self.epoch if epoch is None else epoch
        answer = await self.scripts.sync(
            holder=holder,
            epoch=str(epoch),
            number=number,
            full=int(full),
            count=count,
            rows=[str(part) for row in rows for part in row],
            now=self.now,
        )
        self.last_sync = number
        if isinstance(answer, Synced):
            self.news = f"{epoch}:{number}"
        return answer

    async def shows(self, server: str = "s1", life: int = LIFE, state: str = "1") -> Synced:
        """Discovery shows this life of the server, and the leader has written it."""
        await self.lead()
        self._lives[server] = life
        answer = await self.sync((server, life, state))
        assert isinstance(answer, Synced), answer
        return answer

    async def admit(
        self,
        issue: int = 100,
        *,
        epoch: int | None = None,
        holder: str = HOLDER,
        is_heard: bool = True,
        late_ms: int = LATE_MS,
        expire_limit: int = 256,
        scan_limit: int = 1000,
    ) -> Ticked | NewsLost | Deposed:
        """A tick of the leader, whose first writes that there is no server; `is_heard`: a gateway signed."""
        if epoch is None and holder == HOLDER:
            await self.lead()
        if is_heard:
            await self.touch()
        if not self.news:
            await self.sync()
        return await self.scripts.admit(
            holder=holder,
            epoch=str(self.epoch if epoch is None else epoch),
            news=self.news,
            max_step_ms=MAX_STEP_MS,
            ticket_ms=self.ticket_ms,
            late_ms=late_ms,
            gone_ms=GONE_MS,
            forfeit=self.forfeit,
            expire_limit=expire_limit,
            scan_limit=scan_limit,
            lines=" ".join(f"{line}={weight}" for line, weight in self.weights.items()),
            tids=[self.new_tid() for _ in range(issue)],
            now=self.now,
        )

    async def tick(self, issue: int = 100, **more: Any) -> Ticked:
        answer = await self.admit(issue, **more)
        assert isinstance(answer, Ticked), answer
        return answer

    async def pass_ms(
        self, ms: int, *, issue: int = 0, polling: Iterable[str] = (), step_ms: int = 1000, **more: Any
    ) -> list[Ticked]:
        """Lease time goes on by exactly `ms`, tick by tick, while some go on asking."""
        ticked = []
        while ms > 0:
            step = min(ms, step_ms)
            self.now += step * MS
            ms -= step
            await asyncio.gather(*(self.status(user) for user in polling))
            ticked.append(await self.tick(issue, **more))
        return ticked

    # -- game servers

    async def report(
        self,
        server: str = "s1",
        *,
        cap: int = 10,
        n: int = 0,
        k: int = 0,
        life: int = LIFE,
        number: int | None = None,
        url: str = "wss://s1",
        shown: bool = True,
    ) -> Reported | Pending | Stale | Fenced:
        """`shown`: discovery has shown this life to the leader, if it is the server's latest."""
        if shown and life > self._lives.get(server, -1):
            await self.shows(server, life)
        self._reports += 1
        number = self._reports if number is None else number
        return await self.scripts.report(
            server=server,
            life=life,
            number=number,
            capacity=cap,
            reported=n,
            counted=k,
            url=url,
            now=self.now,
        )

    async def consume(
        self, user: str, tid: str, server: str = "s1", *, life: int = LIFE, conn: str = "c1"
    ) -> Consumed:
        return await self.scripts.consume(user=user, tid=tid, server=server, life=life, conn=conn)

    async def goes_in(self, user: str, server: str = "s1", *, life: int = LIFE, conn: str = "c1") -> Admitted:
        """Use the ticket that they hold."""
        held = await self.status(user)
        assert isinstance(held, Offered), held
        answer = await self.consume(user, held.tid, server, life=life, conn=conn)
        assert isinstance(answer, Admitted), answer
        return answer

    async def release(
        self,
        user: str,
        how: str = "clean",
        server: str = "s1",
        *,
        life: int = LIFE,
        conn: str = "c1",
        grace_ms: int = GRACE_MS,
    ) -> Released | NotInside:
        return await self.scripts.release(
            user=user, server=server, life=life, conn=conn, how=how, grace_ms=grace_ms
        )

    async def drop(self, server: str = "s1", *, life: int = LIFE, count: int = 500) -> Dropped:
        return await self.scripts.drop(server=server, life=life, count=count, now=self.now)

    # -- operators and watchers

    async def mode(self, wanted: str = "", **given: str) -> Governed | Conflict:
        """What is not given stays as it is."""
        unchanged = dict.fromkeys(("message", "limit", "rate", "opens_at", "seed", "expected"), "")
        return await self.scripts.govern(wanted=wanted, **{**unchanged, **given}, now=self.now)

    async def board(self) -> Board:
        return await self.scripts.board(lines=list(self.weights))

    async def numbers(self) -> dict[str, str]:
        return await fields_of(self.store, self.key("world"))

    async def number(self, name: str) -> int:
        return int(float((await self.numbers()).get(name, "0")))

    async def person(self, user: str) -> dict[str, str]:
        return await fields_of(self.store, self.key("people") + user.encode())

    async def line_of(self, part: str = "waiting", line: str = "") -> list[str]:
        key = self.key(part) + line.encode()
        return [user.decode() for user in await self.store.call("ZRANGE", key, 0, -1, key=key)]

    async def feed(self) -> list[Entry]:
        return await whole_feed(self.store, self.scope)

    async def promoted(self) -> list[str]:
        """Everybody who was given a ticket, in order."""
        return [entry.fields["user"] for entry in await self.feed() if entry.fields["event"] == "promoted"]

    # -- the test's own hands

    async def loses(self, name: str, value: int) -> None:
        """A failover has lost the last writes of one number of the world."""
        await self.store.call("HSET", self.key("world"), name, value, key=self.key("world"))

    async def forgets(self, *users: str) -> None:
        """A failover has lost that these people came."""
        for user in users:
            for key in [self.key("waiting") + line.encode() for line in self.weights]:
                await self.store.call("ZREM", key, user, key=key)
            key = self.key("people") + user.encode()
            await self.store.call("DEL", key, key=key)

    async def wiped(self) -> None:
        """Everything is lost; only the receipts in people's hands remain."""
        found = await self.store.call("KEYS", b"*{" + self.scope.tag.encode() + b"}*", key=self.key("world"))
        for key in found:
            await self.store.call("DEL", key, key=key)
        self.news, self._lives = "", {}

    def new_tid(self) -> str:
        self._tids += 1
        return f"t{self._tids}"

    def key(self, part: str) -> Key:
        return world_keys(self.store.keys, self.scope)[part]


@dataclass(frozen=True, slots=True)
class Row:
    life: int
    capacity: int
    reported: int
    counted: int
    consumed: int
    number: int
    doubt: int
    open: int

    @property
    def inside(self) -> int:
        return self.reported + self.consumed - self.counted

    @property
    def room(self) -> int:
        return max(0, self.capacity - self.inside) if self.open else 0


@dataclass(frozen=True, slots=True)
class State:
    """Every key of a world, read."""

    numbers: dict[str, str]
    servers: dict[str, Row]
    people: dict[str, dict[str, str]]
    ages: dict[str, int]
    """User → seconds that they will still be known; -1: for ever."""
    waiting: dict[str, dict[str, int]]
    away: dict[str, dict[str, int]]
    offers: dict[str, int]
    grace: dict[str, int]
    granted: dict[str, str]
    """Ticket id → user."""
    inside: dict[str, set[str]]

    def number(self, name: str) -> int:
        return int(float(self.numbers.get(name, "0")))

    @property
    def clock_ms(self) -> int:
        return self.number("clock_ms")

    @property
    def capacity(self) -> int:
        """The people inside, and what the open servers may let in; no more than the limit."""
        cap = sum(row.inside + row.room for row in self.servers.values())
        return min(cap, int(self.numbers.get("limit", cap)))


async def read_state(world: World) -> State:
    store, lines = world.store, list(world.weights)

    async def scores(part: str, line: str = "") -> dict[str, int]:
        key = world.key(part) + line.encode()
        found = await store.call("ZRANGE", key, 0, -1, "WITHSCORES", key=key)
        return {user: int(score) for user, score in pairs(found).items()}

    async def each(command: str, keys: Mapping[str, bytes]) -> dict[str, Any]:
        replies = await asyncio.gather(*(store.call(command, key, key=key) for key in keys.values()))
        return dict(zip(keys, replies, strict=True))

    people, granted, inside = await asyncio.gather(
        *(keys_below(store, world.key(part)) for part in ("people", "granted", "inside"))
    )
    hashes, ages, tickets, members = await asyncio.gather(
        each("HGETALL", people), each("TTL", people), each("GET", granted), each("SMEMBERS", inside)
    )
    waiting = {line: await scores("waiting", line) for line in lines}
    away = {line: await scores("away", line) for line in lines}
    servers = await fields_of(store, world.key("servers"))
    return State(
        await world.numbers(),
        {id_: Row(*map(int, packed.split("\t")[:8])) for id_, packed in servers.items()},
        {user: pairs(flat) for user, flat in hashes.items()},
        ages,
        waiting,
        away,
        await scores("offers"),
        await scores("grace"),
        {tid: json.loads(ticket)["userId"] for tid, ticket in tickets.items() if ticket},
        {life: {user.decode() for user in users} for life, users in members.items()},
    )


async def invariants(world: World) -> State:
    """What holds after every script: sums are sums, nobody stands twice, and a state is where it says."""
    state = await read_state(world)
    rows = state.servers.values()
    assert state.number("cap") == sum(row.inside + row.room for row in rows)
    assert state.number("inside") == sum(row.inside for row in rows)
    assert state.number("doubt") == sum(row.doubt * row.open for row in rows)
    assert state.number("overadmit") == 0, "tickets were issued for which there was no room"

    stands: dict[str, str] = {}
    for where, users in _sets_of(state):
        for user in users:
            assert user not in stands, f"{user} is in {stands.get(user)} and in {where}"
            stands[user] = where
    for user, person in state.people.items():
        _person_is_whole(state, user, person, stands.pop(user, ""))
    assert not stands, f"unknown people stand somewhere: {stands}"
    for tid, user in state.granted.items():
        assert state.people[user].get("tid") == tid, f"{user} is granted {tid}, which is not their ticket"
        assert user in state.offers
    return state


def _sets_of(state: State) -> Sequence[tuple[str, Iterable[str]]]:
    return [
        *((f"waiting{line}", users) for line, users in state.waiting.items()),
        *((f"away{line}", users) for line, users in state.away.items()),
        ("offered", state.offers),
        ("grace", state.grace),
    ]


def _person_is_whole(state: State, user: str, person: dict[str, str], stands: str) -> None:
    line, is_ = person.get("line", ""), person["state"]
    expected = {
        "waiting": f"waiting{line}",
        "away": f"away{line}",
        "offered": "offered",
        "grace": "grace",
        "inside": "",
        "left": "",
    }
    assert stands == expected[is_], f"{user} is {is_}, but stands in {stands!r}"
    assert (state.ages[user] > 0) == (is_ == "left"), f"{user} is {is_} and is known {state.ages[user]} s"
    if is_ in ("waiting", "away"):
        seqs = state.waiting[line] if is_ == "waiting" else state.away[line]
        assert seqs[user] == int(person["seq"])
    if is_ == "offered":
        assert state.offers[user] == int(person["exp"])
    if is_ == "inside":
        assert user in state.inside[f"{person['server']}:{person['life']}"]
    assert ("tid" in person) == (is_ in ("offered", "inside"))
