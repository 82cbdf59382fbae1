"""G10: nothing is issued for which there is no room, however late, doubled or reordered the reports."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from roost.store.store import Store
from roost.testing import RunningServer
from roost.waitingroom.scripts import (
    Admitted,
    Deposed,
    Expired,
    Fenced,
    Held,
    Offered,
    Pending,
    Reported,
    ServerFull,
    ServerUnknown,
    Stale,
    Synced,
    Unknown,
    Used,
)
from tests.store.examples import SEEDS, for_each
from tests.store.waitingroom.world import MS, SECOND, TICKET_MS, State, World, invariants

USERS = [f"u{number:02}" for number in range(14)]
SERVERS = ["s1", "s2", "s3"]
CAPS = (0, 1, 2, 4, 4, 6)
STEPS_US = (0, 1_500, 100 * MS, SECOND, SECOND, SECOND, 2 * SECOND, 9 * SECOND, -7 * SECOND)


async def test_g10_who_went_in_since_the_last_report_is_counted(world: World) -> None:
    await world.report(cap=3, n=0)
    for user in ("ann", "bob", "cid"):
        await world.gets_ticket(user)
        await world.goes_in(user)

    await world.waits("dan")

    assert (await world.tick()).issued == 0
    assert (await world.number("inside"), await world.number("overadmit")) == (3, 0)


async def test_g10_who_holds_a_ticket_is_counted(world: World) -> None:
    await world.report(cap=2, n=0)
    await world.gets_ticket("ann")
    await world.gets_ticket("bob")
    await world.waits("cid")
    await world.report(cap=2, n=0)
    assert (await world.tick()).issued == 0


async def test_g10_a_report_from_before_a_consume_frees_nothing(world: World) -> None:
    await world.report(cap=1, n=0)
    await world.gets_ticket("ann")
    await world.goes_in("ann")
    await world.waits("bob")

    await world.report(cap=1, n=0, k=0)
    assert (await world.tick()).issued == 0
    await world.report(cap=1, n=1, k=1)
    assert (await world.tick()).issued == 0
    await world.report(cap=1, n=0, k=1)
    assert (await world.tick()).issued == 1


async def test_g10_a_place_held_on_a_server_that_ended_is_no_room_for_others(world: World) -> None:
    """Who comes back gets a ticket all the same: refused, the hold would run out and the place be lost."""
    await world.report("s1", cap=2)
    for user in ("ann", "bob"):
        await world.gets_ticket(user)
        await world.goes_in(user)
    for user in ("ann", "bob"):
        await world.release(user, "dropped")
    await world.report("s2", cap=1)
    await world.drop("s1")
    tickets = [await world.gets_ticket(user) for user in ("ann", "bob")]
    await world.waits("new")
    assert (await world.tick()).issued == 0, "two tickets for one place"

    assert isinstance(await world.consume("ann", tickets[0].tid, "s2"), Admitted)
    assert await world.consume("bob", tickets[1].tid, "s2") == ServerFull()
    await world.pass_ms(TICKET_MS, polling=["bob", "new"], issue=100)
    assert await world.line_of() == ["bob", "new"]
    await world.report("s2", cap=2, n=1, k=1)
    assert (await world.tick()).issued == 1
    assert isinstance(await world.status("bob"), Offered)
    await invariants(world)


async def test_g10_tickets_inside_and_held_places_are_one_budget(world: World) -> None:
    await world.report(cap=3, n=0)
    for user in ("ann", "bob"):
        await world.gets_ticket(user)
        await world.goes_in(user)
    await world.release("bob", "dropped")
    await world.report(cap=3, n=1, k=2)
    await world.gets_ticket("cid")
    await world.waits("dan")
    assert (await world.tick()).issued == 0


async def test_g10_a_report_of_a_server_that_was_dropped_brings_no_capacity_back(world: World) -> None:
    await world.report("s1", cap=5, life=3)
    await world.drop("s1", life=3)

    assert await world.report("s1", cap=5, life=3) == Fenced(3)
    assert await world.report("s1", cap=5, life=2) == Pending(), "nobody compares lives by size"

    await world.waits("ann")
    assert (await world.tick()).issued == 0
    assert isinstance(await world.report("s1", cap=5, life=4), Reported)
    assert (await world.tick()).issued == 1


@dataclass
class GameServer:
    """One life of a game server as it really is."""

    id: str
    life: int
    cap: int
    table: set[str] = field(default_factory=set)
    on_the_way: dict[int, str] = field(default_factory=dict)
    """Consumed, but the server has not heard of it yet."""
    arrived: set[int] = field(default_factory=set)
    reports: int = 0

    @property
    def people(self) -> int:
        return len(self.table) + len(self.on_the_way)

    @property
    def counted(self) -> int:
        """The last consume such that the table has seen every one up to it."""
        k = 0
        while k + 1 in self.arrived:
            k += 1
        return k

    def hears(self, number: int) -> None:
        self.table.add(self.on_the_way.pop(number))
        self.arrived.add(number)

    def report(self) -> Report:
        self.reports += 1
        return Report(self.id, self.life, self.reports, self.cap, len(self.table), self.counted)


@dataclass(frozen=True)
class Report:
    id: str
    life: int
    number: int
    cap: int
    n: int
    k: int


class Ledger:
    """People, servers, reports and news as they really are, beside a store that hears late and twice."""

    def __init__(self, store: Store) -> None:
        self.world = World(store, weights={":vip": 1, "": 2}, ticket_ms=5_000)
        self.state = State({}, {}, {}, {}, {}, {}, {}, {}, {}, {})
        self.lives = 0
        self.alive: dict[str, GameServer] = {}
        self.dead: list[GameServer] = []
        """Of whose end discovery has not told yet."""
        self.unwilling: set[str] = set()
        self.known: dict[str, tuple[int, bool]] = {}
        """Server → the life that the leader wrote, and whether it takes new users."""
        self.ended: dict[str, set[int]] = {}
        self.taken: dict[str, Report] = {}
        """Server → the report of its known life that the ledger should go by."""
        self.pending: dict[str, Report] = {}
        self.on_the_way: list[Report] = []
        self.old_news: list[tuple[int, int, list[tuple[str, int, str]]]] = []
        self.limit: int | None = None
        self.consumed: dict[str, tuple[str, int, str, int]] = {}

    # -- the truth

    def inside(self) -> int:
        """People on servers of which the ledger was told."""
        return sum(s.people for s in (*self.alive.values(), *self.dead) if self.is_taken(s))

    def real_room(self) -> int:
        """What the servers that take new users may still let in, and the limit allows."""
        people = {(s.id, s.life): s.people for s in (*self.alive.values(), *self.dead)}
        room = sum(
            max(0, report.cap - people.get((report.id, report.life), 0))
            for report in self.taken.values()
            if self.known[report.id][1]
        )
        return room if self.limit is None else min(room, self.limit - self.inside())

    def is_taken(self, server: GameServer) -> bool:
        return server.id in self.taken and self.taken[server.id].life == server.life

    async def see(self) -> None:
        """Read the store; whatever was issued since the last look must fit."""
        was = self.state
        self.state = is_ = await invariants(self.world)
        tids = {was.people[user]["tid"] for user in was.offers}
        fresh = {user for user in is_.offers if is_.people[user]["tid"] not in tids}
        out = len(is_.offers) + len(is_.grace)
        if fresh - was.grace.keys():
            assert out <= self.real_room(), f"there was no room for {fresh}"
        elif fresh:
            assert out == len(was.offers) + len(was.grace), "a held place is one, and so is its ticket"
        rows = {id_: (row.life, row.open == 1) for id_, row in is_.servers.items()}
        assert rows == {id_: self.known[id_] for id_ in self.taken}
        for server in (*self.alive.values(), *self.dead):
            if self.is_taken(server):
                assert is_.servers[server.id].inside >= server.people, "the ledger is no upper bound"
        assert (is_.number("lost_writes"), is_.number("drift")) == (0, 0)

    def is_reported(self, report: Report) -> Reported | Pending | Stale | Fenced:
        if report.life in self.ended.get(report.id, ()):
            return Fenced(report.life)
        kept = self.taken if self.known.get(report.id, (0,))[0] == report.life else self.pending
        before = kept.get(report.id)
        if before and before.life == report.life and report.number <= before.number:
            return Pending() if kept is self.pending else Stale()
        kept[report.id] = report
        if kept is self.pending:
            return Pending()
        self.pending.pop(report.id, None)
        row = self.state.servers.get(report.id)
        return Reported(max(row.consumed, report.k) if row else report.k)

    def is_ended(self, id_: str, life: int) -> None:
        self.ended.setdefault(id_, set()).add(life)
        if self.known.get(id_, (0,))[0] == life:
            del self.known[id_]
            self.taken.pop(id_, None)

    def is_written(self, rows: list[tuple[str, int, str]], full: bool) -> None:
        for id_, life, state in rows:
            known = self.known.get(id_)
            if state == "-":
                self.is_ended(id_, life)
            elif life not in self.ended.get(id_, ()):
                if known and known[0] != life:
                    self.is_ended(id_, known[0])
                self.known[id_] = (life, state == "1")
                if id_ in self.pending and self.pending[id_].life == life:
                    self.taken[id_] = self.pending.pop(id_)
        named = {id_ for id_, *_ in rows}
        if full:
            self.known |= {id_: (life, False) for id_, (life, _) in self.known.items() if id_ not in named}

    # -- people

    async def enter(self, rng: random.Random) -> None:
        user = rng.choice(USERS)
        held = user in self.state.grace
        answer = await self.world.enter(user, line=rng.choice(["", ":vip"]))
        assert not held or isinstance(answer, Offered | Held)

    async def return_from_a_drop(self, rng: random.Random) -> None:
        if self.state.grace:
            answer = await self.world.enter(rng.choice(sorted(self.state.grace)))
            assert isinstance(answer, Offered | Held)

    async def ask(self, rng: random.Random) -> None:
        if self.state.people:
            await self.world.status(rng.choice(sorted(self.state.people)))

    async def leave(self, rng: random.Random) -> None:
        if self.state.people:
            await self.world.leave(rng.choice(sorted(self.state.people)))

    async def go_in(self, rng: random.Random) -> None:
        if not self.state.offers or not self.alive:
            return
        user = rng.choice(sorted(self.state.offers))
        server = rng.choice(list(self.alive.values()))
        tid = self.state.people[user]["tid"]
        answer = await self.world.consume(user, tid, server.id, life=server.life, conn=f"c-{tid}")
        if isinstance(answer, Admitted):
            assert tid not in self.consumed, "a ticket was consumed twice"
            self.consumed[tid] = (server.id, server.life, user, answer.number)
            server.on_the_way[answer.number] = user
            if rng.random() < 0.5:
                server.hears(answer.number)
        elif isinstance(answer, ServerUnknown):
            assert not self.is_taken(server)
        elif isinstance(answer, ServerFull):
            assert self.state.servers[server.id].room == 0
        else:
            assert isinstance(answer, Expired)
            assert self.state.offers[user] <= self.state.clock_ms

    async def show_a_used_ticket(self, rng: random.Random) -> None:
        if not self.consumed:
            return
        tid = rng.choice(sorted(self.consumed))
        server, life, user, number = self.consumed[tid]
        conn = rng.choice(["other", f"c-{tid}"])
        answer = await self.world.consume(user, tid, server, life=life, conn=conn)
        if isinstance(answer, Admitted):
            assert (conn, answer.number) == (f"c-{tid}", number)
        else:
            assert isinstance(answer, Used | Unknown)

    async def hear_of_a_consume(self, rng: random.Random) -> None:
        news = [(server, number) for server in self.alive.values() for number in server.on_the_way]
        if news:
            server, number = rng.choice(news)
            server.hears(number)

    async def depart(self, rng: random.Random) -> None:
        """The server counts them until the store knows."""
        inside = sorted((server.id, user) for server in self.alive.values() for user in server.table)
        if not inside:
            return
        id_, user = rng.choice(inside)
        server = self.alive[id_]
        conn = f"c-{self.state.people[user].get('tid')}"
        how = rng.choice(["clean", "dropped", "dropped", "failed"])
        await self.world.release(user, how, id_, life=server.life, conn=conn, grace_ms=4_000)
        server.table.discard(user)

    # -- servers

    async def start(self, rng: random.Random) -> None:
        """A new life; where there was one, it has died unnoticed."""
        id_ = rng.choice(SERVERS)
        if id_ in self.alive:
            self.dead.append(self.alive.pop(id_))
        self.lives += 1
        # Another primary's clock may be behind: a later life may be the smaller number.
        life = self.lives if rng.random() < 0.5 else 10_000 - self.lives
        self.alive[id_] = GameServer(id_, life, rng.choice(CAPS))
        if rng.random() < 0.7:
            self.on_the_way.append(self.alive[id_].report())

    async def die(self, rng: random.Random) -> None:
        if self.alive:
            self.dead.append(self.alive.pop(rng.choice(sorted(self.alive))))

    async def flip(self, rng: random.Random) -> None:
        """A server stops taking new users, or takes them again."""
        self.unwilling ^= {rng.choice(SERVERS)}

    async def remove(self, rng: random.Random) -> None:
        """An operator takes a server out of the ledger, whatever discovery says."""
        if self.known:
            id_ = rng.choice(sorted(self.known))
            life = self.known[id_][0]
            while (await self.world.drop(id_, life=life, count=2)).remaining:
                pass
            self.is_ended(id_, life)

    async def tell_news(self, rng: random.Random, full: bool | None = None) -> None:
        """The leader writes what discovery shows: all of it, or some of what changed."""
        full = rng.random() < 0.3 if full is None else full
        gone = [server for server in self.dead if rng.random() < 0.7]
        shown = [(id_, s.life, "0" if id_ in self.unwilling else "1") for id_, s in self.alive.items()]
        if not full:
            shown = [row for row in shown if rng.random() < 0.8]
        rows = [(server.id, server.life, "-") for server in gone] + shown
        answer = await self.world.sync(*rows, full=full, count=2)
        while isinstance(answer, Synced) and answer.remaining:
            answer = await self.world.sync(*rows, full=full, count=2)
        assert isinstance(answer, Synced)
        self.old_news.append((self.world.epoch, self.world.last_sync, rows))
        self.dead = [server for server in self.dead if server not in gone]
        self.is_written(rows, full)

    async def tell_old_news(self, rng: random.Random) -> None:
        """A write that was late, or of a leader that was: it changes nothing."""
        if len(self.old_news) > 1:
            epoch, number, rows = rng.choice(self.old_news[:-1])
            news = self.world.news
            answer = await self.world.sync(*rows, full=True, epoch=epoch, number=number)
            assert answer == (Stale() if epoch == self.world.epoch else Deposed())
            assert self.world.news == news

    async def change_capacity(self, rng: random.Random) -> None:
        if self.alive:
            rng.choice(list(self.alive.values())).cap = rng.choice(CAPS)

    async def set_limit(self, rng: random.Random) -> None:
        self.limit = rng.choice([None, None, 0, 1, 2, 3, 4, 6])
        await self.world.mode(limit="-" if self.limit is None else str(self.limit))

    # -- reports

    async def send_report(self, rng: random.Random) -> None:
        if self.alive:
            self.on_the_way.append(rng.choice(list(self.alive.values())).report())

    async def deliver(self, rng: random.Random) -> None:
        """In any order; it may come once more later."""
        if not self.on_the_way:
            return
        at = rng.randrange(len(self.on_the_way))
        report = self.on_the_way[at] if rng.random() < 0.3 else self.on_the_way.pop(at)
        expected = self.is_reported(report)
        answer = await self.world.report(
            report.id,
            cap=report.cap,
            n=report.n,
            k=report.k,
            life=report.life,
            number=report.number,
            shown=False,
        )
        assert (replace(answer, asking=[]) if isinstance(answer, Reported) else answer) == expected

    # -- the leader

    async def time_passes(self, rng: random.Random) -> None:
        """A doubled tick is a step of 0."""
        step_us, issue, expire_limit = rng.choice(STEPS_US), rng.choice([1, 3, 20]), rng.choice([0, 1, 256])
        for _ in range(rng.randint(1, 4)):
            self.world.now += step_us
            await self.world.tick(issue, expire_limit=expire_limit)
            await self.see()

    async def another_leader_ticks(self, rng: random.Random) -> None:
        former = self.world.epoch
        self.world.epoch += 1
        await self.world.lead()
        await self.tell_news(rng, full=True)
        await self.world.tick()
        await self.see()
        assert await self.world.admit(epoch=former) == Deposed()


HOW_OFTEN = {
    Ledger.enter: 9,
    Ledger.return_from_a_drop: 2,
    Ledger.ask: 3,
    Ledger.leave: 1,
    Ledger.go_in: 8,
    Ledger.show_a_used_ticket: 1,
    Ledger.hear_of_a_consume: 3,
    Ledger.depart: 4,
    Ledger.start: 2,
    Ledger.die: 1,
    Ledger.flip: 2,
    Ledger.remove: 1,
    Ledger.tell_news: 6,
    Ledger.tell_old_news: 2,
    Ledger.change_capacity: 1,
    Ledger.set_limit: 1,
    Ledger.send_report: 6,
    Ledger.deliver: 7,
    Ledger.time_passes: 6,
    Ledger.another_leader_ticks: 1,
}
STEPS = [step for step, times in HOW_OFTEN.items() for _ in range(times)]


@pytest.mark.timeout(400)
def test_g10_whatever_happens_in_whatever_order_nothing_is_issued_without_room(server: RunningServer) -> None:
    async def live_through(store: Store, rng: random.Random) -> None:
        ledger = Ledger(store)
        await ledger.world.tick(0)
        for step in [Ledger.start] * 3 + [Ledger.tell_news] + [Ledger.deliver] * 3:
            await step(ledger, rng)
            await ledger.see()
        for _ in range(90):
            await rng.choice(STEPS)(ledger, rng)
            await ledger.see()

    for_each(server, SEEDS, live_through, examples=40)
