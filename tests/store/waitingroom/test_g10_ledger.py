"""G10: nothing is issued for which there is no room, however late, doubled or reordered the reports."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from roost.store.store import Store
from roost.testing import RunningServer
from roost.waitingroom.scripts import (
    Admitted,
    Deposed,
    Expired,
    Fenced,
    Offered,
    Reported,
    ServerFull,
    ServerUnknown,
    Stale,
    Unknown,
    Used,
)
from tests.store.examples import SEEDS, for_each
from tests.store.waitingroom.world import MS, SECOND, State, World, invariants

USERS = [f"u{number:02}" for number in range(14)]
SERVERS = ["s1", "s2", "s3"]
CAPS = (0, 1, 2, 4, 4, 6)
STEPS_US = (0, 1_500, 100 * MS, SECOND, SECOND, SECOND, 2 * SECOND, 3600 * SECOND, -7 * SECOND)


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
    assert await world.report("s1", cap=5, life=2) == Fenced(3)

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
    """People, servers and reports as they really are, beside a store that hears of them late and twice."""

    def __init__(self, store: Store) -> None:
        self.world = World(store, weights={":vip": 1, "": 2}, ticket_ms=5_000)
        self.state = State({}, {}, {}, {}, {}, {}, {}, {}, {}, {})
        self.lives = 0
        self.alive: dict[str, GameServer] = {}
        self.dead: list[GameServer] = []
        """Not dropped yet."""
        self.dropped: dict[str, set[int]] = {}
        """Server → its lives that were dropped."""
        self.counted: dict[str, int] = {}
        """Server → the last of these that was in the ledger: whatever is older has ended too."""
        self.taken: dict[str, Report] = {}
        """Server → the report that the ledger should go by."""
        self.on_the_way: list[Report] = []
        self.limit: int | None = None
        self.epoch = 1
        self.consumed: dict[str, tuple[str, int, str, int]] = {}

    # -- the truth

    def real_total(self, state: State) -> int:
        """People inside, on servers of which the ledger was told, tickets out and places held."""
        known = [s for s in (*self.alive.values(), *self.dead) if self.is_taken(s)]
        return sum(s.people for s in known) + len(state.offers) + len(state.grace)

    def real_capacity(self) -> int:
        cap = sum(report.cap for report in self.taken.values())
        return cap if self.limit is None else min(cap, self.limit)

    def is_taken(self, server: GameServer) -> bool:
        return server.id in self.taken and self.taken[server.id].life == server.life

    async def see(self) -> None:
        """Read the store; whatever was issued since the last look must fit."""
        was = self.state
        self.state = is_ = await invariants(self.world)
        tids = {was.people[user]["tid"] for user in was.offers}
        fresh = {user for user in is_.offers if is_.people[user]["tid"] not in tids}
        if fresh - was.grace.keys():
            assert self.real_total(is_) <= self.real_capacity(), f"there was no room for {fresh}"
        elif fresh:
            assert self.real_total(is_) == self.real_total(was), "a held place is one, and so is its ticket"
        assert {id_: row.life for id_, row in is_.servers.items()} == {
            id_: report.life for id_, report in self.taken.items()
        }
        for server in (*self.alive.values(), *self.dead):
            if self.is_taken(server):
                assert is_.servers[server.id].inside >= server.people, "the ledger is no upper bound"
        assert (is_.number("lost_writes"), is_.number("drift")) == (0, 0)

    def is_reported(self, report: Report) -> Reported | Stale | Fenced:
        taken = self.taken.get(report.id)
        counted = self.counted.get(report.id, 0)
        if taken and taken.life > report.life:
            return Fenced(taken.life)
        if report.life <= counted or report.life in self.dropped.get(report.id, ()):
            return Fenced(0)
        if taken and taken.life == report.life and report.number <= taken.number:
            return Stale()
        self.taken[report.id] = report
        row = self.state.servers.get(report.id)
        return Reported(row.consumed if row and row.life == report.life else report.k)

    # -- people

    async def enter(self, rng: random.Random) -> None:
        user = rng.choice(USERS)
        held = user in self.state.grace
        answer = await self.world.enter(user, line=rng.choice(["", ":vip"]))
        assert not held or isinstance(answer, Offered)

    async def return_from_a_drop(self, rng: random.Random) -> None:
        if self.state.grace:
            await self.world.gets_ticket(rng.choice(sorted(self.state.grace)))

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
            assert self.state.servers[server.id].inside >= self.state.servers[server.id].capacity
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
        self.alive[id_] = GameServer(id_, self.lives, rng.choice(CAPS))
        if rng.random() < 0.7:
            self.on_the_way.append(self.alive[id_].report())

    async def die(self, rng: random.Random) -> None:
        if self.alive:
            self.dead.append(self.alive.pop(rng.choice(sorted(self.alive))))

    async def drop(self, rng: random.Random) -> None:
        if not self.dead:
            return
        server = self.dead.pop(rng.randrange(len(self.dead)))
        while (await self.world.drop(server.id, life=server.life, count=2)).remaining:
            pass
        self.dropped.setdefault(server.id, set()).add(server.life)
        if self.is_taken(server):
            self.counted[server.id] = max(server.life, self.counted.get(server.id, 0))
            del self.taken[server.id]

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
            report.id, cap=report.cap, n=report.n, k=report.k, life=report.life, number=report.number
        )
        if isinstance(expected, Fenced):
            assert isinstance(answer, Fenced)
        else:
            assert (replace(answer, asking=[]) if isinstance(answer, Reported) else answer) == expected

    # -- the leader

    async def time_passes(self, rng: random.Random) -> None:
        """A doubled tick is a step of 0."""
        step_us, issue, expire_limit = rng.choice(STEPS_US), rng.choice([1, 3, 20]), rng.choice([0, 1, 256])
        for _ in range(rng.randint(1, 4)):
            self.world.now += step_us
            await self.world.tick(issue, epoch=self.epoch, expire_limit=expire_limit)
            await self.see()

    async def another_leader_ticks(self, _: random.Random) -> None:
        self.epoch += 1
        await self.world.tick(epoch=self.epoch)
        await self.see()
        assert await self.world.admit(epoch=self.epoch - 1) == Deposed(self.epoch)


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
    Ledger.drop: 2,
    Ledger.change_capacity: 1,
    Ledger.set_limit: 1,
    Ledger.send_report: 6,
    Ledger.deliver: 7,
    Ledger.time_passes: 6,
    Ledger.another_leader_ticks: 1,
}
STEPS = [step for step, times in HOW_OFTEN.items() for _ in range(times)]


def test_g10_whatever_happens_in_whatever_order_nothing_is_issued_without_room(server: RunningServer) -> None:
    async def live_through(store: Store, rng: random.Random) -> None:
        ledger = Ledger(store)
        await ledger.world.tick(0)
        for step in [Ledger.start] * 3 + [Ledger.deliver] * 3:
            await step(ledger, rng)
            await ledger.see()
        for _ in range(90):
            await rng.choice(STEPS)(ledger, rng)
            await ledger.see()

    for_each(server, SEEDS, live_through, examples=40)
