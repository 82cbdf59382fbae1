"""The scripts of binding against a small model: any order of calls, time, lost writes and wiped stores."""

from __future__ import annotations

import copy

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from roost.binding.scripts import Frozen, Gone, NotOwner, Placed, Synced, Ticked
from roost.core.owner import Owner
from roost.testing import RunningServer
from tests.store.binding.model import NOBODY, Model
from tests.store.binding.town import SECOND, Town, invariants
from tests.store.examples import StoreMachine, run_machine

USERS = st.sampled_from(["ann", "bob", "cy", "di"])
SERVERS = st.sampled_from(["s1", "s2", "s3"])
OWNERS = st.tuples(SERVERS, st.sampled_from(["", "", "", "", "1", "2", "3"]))
"""Server id and life; mostly its present one."""
RARELY = st.sampled_from([False] * 7 + [True])
DRAWS = st.integers(0, 2**48 - 1)
SEEN = st.sampled_from([None, None, 0, 0, 1, 10 * SECOND])
"""How far above the highest epoch that anybody has seen; None: the caller has seen nothing."""


class Machine(StoreMachine):
    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        self.town = Town(self.store)
        self.model = Model()
        self.highest: dict[str, int] = {}
        """By user: the highest epoch that was ever granted, whatever the store has forgotten since."""
        self.rows: dict[str, tuple[Owner, int]] = {}
        """By user: the row of the database, which forgets nothing: owner and epoch."""
        self.promised: dict[str, tuple[str, Owner, int]] = {}
        """By user: the last move that was promised to a target: id, target and epoch."""
        self.copied: tuple[dict[bytes, bytes], Model, dict[str, str]] | None = None

    @initialize()
    def three_servers(self) -> None:
        for server in ("s1", "s2", "s3"):
            self.open((server, "1"), 0)

    def named(self, which: tuple[str, str]) -> Owner:
        server, life = which
        present = self.model.rows.get(server)
        return Owner(server, life or (present.life if present else "1"))

    def seen(self, user: str, ahead: int | None) -> int:
        return 0 if ahead is None else self.highest.get(user, 0) + ahead

    def granted(self, user: str, epoch: int, *above: int) -> None:
        """Epochs only rise: above what the record and the caller have seen, and, as they are not below the
        clock, also over a record that was lost, unless the lost one was ahead of the clock."""
        assert epoch >= self.model.now
        assert all(epoch > other for other in above)
        self.highest[user] = max(epoch, self.highest.get(user, 0))

    # -- gates

    @rule(user=USERS, ahead=SEEN, place=st.sampled_from([True, True, True, False]), draw=DRAWS)
    def resolve(self, user: str, ahead: int | None, place: bool, draw: int) -> None:
        self.town.draw, seen, was = draw, self.seen(user, ahead), self.model.of(user).e
        expected = self.model.resolve(user, seen, place, draw)
        assert self.do(self.town.resolve(user, seen=seen, place=place)) == expected
        if isinstance(expected, Placed):
            self.granted(user, expected.epoch, seen, was)

    @rule(user=USERS, which=OWNERS, ahead=SEEN)
    def bind(self, user: str, which: tuple[str, str], ahead: int | None) -> None:
        owner, seen, was = self.named(which), self.seen(user, ahead), self.model.of(user).e
        expected = self.model.bind(user, owner, seen)
        assert self.do(self.town.bind(user, owner, seen=seen)) == expected
        if isinstance(expected, Placed):
            self.granted(user, expected.epoch, seen, was)

    # -- owners

    @rule(which=OWNERS, capacity=st.sampled_from([0, 1, 2]))
    def beat(self, which: tuple[str, str], capacity: int) -> None:
        owner = self.named(which)
        expected = self.model.beat(owner, capacity)
        answer = self.do(self.town.beat(owner.server_id, int(owner.life), cap=capacity))
        assert answer == expected

    @rule(user=USERS, which=OWNERS, right=st.booleans(), behind=st.sampled_from([0, 0, 1]))
    def release(self, user: str, which: tuple[str, str], right: bool, behind: int) -> None:
        owner, record = self.named(which), self.model.of(user)
        owner = record.owner if right and record.owner != NOBODY else owner
        epoch = max(0, record.e - behind)
        expected = self.model.release(user, owner, epoch)
        assert isinstance(self.do(self.town.release(user, owner, epoch)), expected)

    @rule(
        user=USERS,
        which=OWNERS,
        right=st.booleans(),
        ahead=SEEN,
        why=st.sampled_from(["renewed", "returned"]),
    )
    def renew(self, user: str, which: tuple[str, str], right: bool, ahead: int | None, why: str) -> None:
        owner, record = self.named(which), self.model.of(user)
        owner = record.owner if right and record.owner != NOBODY else owner
        above = self.seen(user, ahead)
        expected = self.model.renew(user, owner, above, why)
        answer = self.do(self.town.renew(user, owner, above, why))
        if expected is None:
            assert isinstance(answer, NotOwner)
        else:
            assert answer == expected
            self.granted(user, expected.epoch, above, record.e)

    @rule(user=USERS, draw=DRAWS)
    def log_in(self, user: str, draw: int) -> None:
        self.resolve(user, 0, True, draw)
        self.claim(user)

    @rule(user=USERS)
    def claim(self, user: str) -> None:
        """The owner that the map names takes the row, as a login does: by the epoch that was judged; where
        the row names another, it gives the user back if that one lives."""
        record, row = self.model.of(user), self.rows.get(user)
        if record.st != "A" or not self.model.is_live(record.owner) or (row and row[1] >= record.e):
            return
        if row and row[1] != record.p and row[0] != record.owner and self.model.is_live(row[0]):
            self.repair(user, row[0], True, 0)
        else:
            self.rows[user] = (record.owner, record.e)

    @rule(user=USERS, which=OWNERS, is_judged=st.sampled_from([True, True, False]), ahead=SEEN)
    def repair(self, user: str, which: tuple[str, str], is_judged: bool, ahead: int | None) -> None:
        right, record, above = self.named(which), self.model.of(user), self.seen(user, ahead)
        if record.owner == NOBODY:
            return
        epoch = record.e if is_judged else record.e - 1
        expected = self.model.repair(user, record.owner, epoch, right, above)
        answer = self.do(self.town.repair(user, record.owner, epoch, right, above))
        assert answer == expected or (expected is None and type(answer).__name__ == "Changed")
        if type(answer).__name__ == "Repaired":
            self.granted(user, self.model.of(user).e, above, record.e)

    # -- the leader

    @rule(which=OWNERS, capacity=st.sampled_from([0, 0, 2]))
    def open(self, which: tuple[str, str], capacity: int) -> None:
        self.sync(which, "1")
        self.beat(which, capacity)

    @rule()
    def everybody_beats(self) -> None:
        for server, row in list(self.model.rows.items()):
            self.beat((server, row.life), row.capacity)

    @rule(which=OWNERS, state=st.sampled_from("1110-"))
    def sync(self, which: tuple[str, str], state: str) -> None:
        owner = self.named(which)
        self.do(self.town.lead())
        self.model.look()
        if state == "-":
            self.model.end(owner)
        else:
            self.model.show(owner, state)
        answer = self.do(self.town.sync((owner.server_id, int(owner.life), state)))
        assert isinstance(answer, Synced)

    @rule(which=OWNERS, rarely=RARELY)
    def bury(self, which: tuple[str, str], rarely: bool) -> None:
        owner = self.named(which)
        if not rarely:
            return
        self.model.look()
        assert self.do(self.town.bury(owner.server_id, int(owner.life))).users == self.model.end(owner)

    @precondition(lambda self: self.town.news)
    @rule(idle_ms=st.sampled_from([0, 0, 3000]))
    def tick(self, idle_ms: int) -> None:
        self.do(self.town.lead())
        answer = self.do(self.town.tick(idle_ms=idle_ms))
        assert isinstance(answer, Ticked)
        assert answer.idle == self.model.tick(idle_ms)
        assert set(answer.orphans) == {f"entity:{o.server_id}:{o.life}" for o in self.model.orphans}

    @rule(draw=DRAWS)
    def replace(self, draw: int) -> None:
        self.do(self.town.lead())
        for owner in sorted(self.model.orphans):
            self.town.draw = draw
            held = {user: self.model.of(user).e for user in self.model.seats.get(owner, ())}
            expected = self.model.replace(owner, draw)
            assert self.do(self.town.replace(owner.server_id, int(owner.life))) == expected
            for user, was in held.items():
                if self.model.of(user).e != was:
                    self.granted(user, self.model.of(user).e, was)

    # -- moves

    @rule(
        user=USERS,
        which=OWNERS,
        is_right=st.sampled_from([True, True, True, False]),
        move=st.sampled_from(["m1", "m2"]),
        ttl_ms=st.sampled_from([10, 800, 3000]),
    )
    def freeze(self, user: str, which: tuple[str, str], is_right: bool, move: str, ttl_ms: int) -> None:
        record, target = self.model.of(user), self.named(which)
        source, epoch = (record.owner, record.e) if is_right else (Owner("s1", "1"), max(0, record.e - 1))
        if target == source or source == NOBODY:
            return
        expected = self.model.freeze(user, source, epoch, move, target, ttl_ms)
        answer = self.do(self.town.freeze(user, source, epoch, target, move=move, ttl_ms=ttl_ms))
        if expected is None:
            assert isinstance(answer, NotOwner)
        else:
            assert answer == expected
        if isinstance(expected, Frozen):
            if expected.epoch != record.ne:
                self.granted(user, expected.epoch, record.e, record.ne)
            self.promised[user] = (move, target, expected.epoch)

    @rule(user=USERS, late=st.booleans())
    def commit(self, user: str, late: bool) -> None:
        """The target, by what it was promised last; or by what the map says now."""
        record = self.model.of(user)
        if late and user not in self.promised:
            return
        move, target, epoch = self.promised[user] if late else (record.move, record.target, record.ne)
        if not move:
            return
        expected = self.model.commit(user, move, target, epoch)
        answer = self.do(self.town.commit(user, target, epoch, move=move))
        assert answer == expected or (expected is None and isinstance(answer, Gone))
        if expected is not None:
            assert self.model.of(user).e == epoch, "never under another epoch than was promised"

    # -- time, and a store that forgets

    @rule(ms=st.sampled_from([0, 1, 400, 1000, 1000, 2500]))
    def time_passes(self, ms: int) -> None:
        self.town.now += ms * 1000
        self.model.now += ms * 1000

    @rule()
    def a_replica_is_in_step(self) -> None:
        self.copied = (self.do(self.town.copy()), copy.deepcopy(self.model), dict(self.town.news))

    @precondition(lambda self: self.copied is not None)
    @rule(at_once=st.booleans())
    def fail_over(self, at_once: bool) -> None:
        """Everything since the copy is lost; others remember what was granted and claimed since."""
        assert self.copied is not None
        now, (kept, model, news) = self.model.now, self.copied
        self.do(self.town.fails_over_to(kept))
        self.model, self.town.news = copy.deepcopy(model), dict(news)
        self.model.now = now
        if at_once:
            self.heal()

    @rule(rarely=RARELY, at_once=st.booleans())
    def wipe(self, rarely: bool, at_once: bool) -> None:
        if not rarely:
            return
        self.do(self.town.wiped())
        self.model, self.town.news, self.copied = Model(self.model.now), {}, None
        if at_once:
            self.heal()

    @rule()
    def heal(self) -> None:
        """Owners beat and say again whom they hold; whoever logs a user in repairs the map by the row. Then
        every user whose row names a living owner is where the row says."""
        for owner in sorted({owner for owner, _ in self.rows.values()}):
            self.beat(owner, 0)
            held = {user: epoch for user, (holder, epoch) in self.rows.items() if holder == owner}
            expected = self.model.reassert(owner, held)
            found = self.do(self.town.reassert(owner, *held.items()))
            for told_of, (user, wanted) in zip(found, zip(held, expected, strict=True), strict=True):
                told = (told_of.owner or NOBODY, told_of.epoch) if told_of else (NOBODY, 0)
                assert told == (wanted.owner, wanted.e), user
                self.highest[user] = max(wanted.e, self.highest.get(user, 0))
        for user, (owner, epoch) in self.rows.items():
            record = self.model.of(user)
            if self.model.is_live(owner) and record.owner not in (NOBODY, owner):
                self.repair(user, owner, True, 0)
            record = self.model.of(user)
            if self.model.is_live(owner) and record.owner != NOBODY:
                assert record.owner == owner
                assert record.e >= epoch

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        self.do(self.compare())

    async def compare(self) -> None:
        model, state = self.model, await invariants(self.town)
        assert state.clock == model.clock
        assert {
            name.partition(":")[2]: (
                r["s"],
                r["l"],
                int(r["e"]),
                int(r["p"]),
                r["st"],
                r["why"],
                r.get("d", ""),
                int(r.get("ne", 0)),
                r.get("m", ""),
                int(r.get("dt", 0)),
            )
            for name, r in state.users.items()
        } == {
            user: (*r.owner, r.e, r.p, r.st, r.why, r.target.server_id, r.ne, r.move, r.dt)
            for user, r in model.users.items()
        }
        assert state.binders == {f"entity:{o.server_id}:{o.life}": users for o, users in model.seats.items()}
        assert state.ranking.get("entity", {}) == model.ranks
        assert {name.partition(":")[2]: row for name, row in state.servers.items()} == {
            id_: [r.life, r.open, str(r.capacity), str(r.lease), str(r.first), r.version]
            for id_, r in model.rows.items()
        }
        told = [
            (
                e.fields["user"],
                Owner(e.fields["serverId"], e.fields["life"]),
                int(e.fields["epoch"]),
                e.fields["why"],
            )
            for e in await self.town.feed()
        ]
        assert told == model.told


@pytest.mark.timeout(400)
def test_whatever_happens_in_whatever_order_the_store_is_as_the_model_says(server: RunningServer) -> None:
    run_machine(Machine, server, examples=80)
