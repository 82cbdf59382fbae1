"""The rules of the scripts once more, in the plainest way, without a store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from roost.binding import scripts as answers
from roost.core.lease import MAX_STEP_MS
from roost.core.owner import Owner
from tests.store.binding.town import CLOSED, FULL, LEASE_MS, T0

NOBODY = Owner("", "")


@dataclass
class Row:
    life: str
    open: str
    capacity: int
    lease: int
    first: int
    version: str


@dataclass
class Rec:
    owner: Owner = NOBODY
    e: int = 0
    p: int = 0
    st: str = ""
    why: str = ""
    target: Owner = NOBODY
    ne: int = 0
    dt: int = 0
    move: str = ""


@dataclass
class Model:
    now: int = T0
    clock: int = 0
    last: int = 0
    """When the lease clock was looked at; 0: never."""
    slow_ms: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    buried: set[Owner] = field(default_factory=set)
    orphans: set[Owner] = field(default_factory=set)
    users: dict[str, Rec] = field(default_factory=dict)
    seats: dict[Owner, set[str]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    told: list[tuple[str, Owner, int, str]] = field(default_factory=list)

    # -- what all of them use

    def look(self) -> None:
        step = (self.now - self.last) // 1000 if self.last else 0
        if step < 0 or step > MAX_STEP_MS:
            step = max(0, min(step, MAX_STEP_MS))
            self.last = self.now
        else:
            self.last = (self.last or self.now) + step * 1000
        self.clock += step

    def of(self, user: str) -> Rec:
        return self.users.get(user, Rec())

    def load(self, owner: Owner) -> int:
        return len(self.seats.get(owner, ()))

    def is_live(self, owner: Owner) -> bool:
        row = self.rows.get(owner.server_id)
        return row is not None and row.life == owner.life and row.lease > self.clock

    def rank(self, server: str) -> None:
        row = self.rows[server]
        rank = self.load(Owner(server, row.life))
        if row.open != "1" or row.lease <= self.clock:
            rank += CLOSED
        elif row.capacity and rank >= row.capacity:
            rank += FULL
        self.ranks[server] = rank

    def seat(self, user: str, owner: Owner, taken: bool) -> None:
        users = self.seats.setdefault(owner, set())
        (users.add if taken else users.discard)(user)
        if not users:
            del self.seats[owner]
        if owner.server_id in self.rows and self.rows[owner.server_id].life == owner.life:
            self.rank(owner.server_id)

    def above(self, user: str, seen: int) -> int:
        record = self.of(user)
        return max(record.e + 1, record.ne + 1, seen + 1, self.now)

    def grant(self, user: str, owner: Owner, epoch: int, why: str) -> None:
        record = self.of(user)
        for held in (record.owner, record.target):
            if held not in (NOBODY, owner):
                self.seat(user, held, False)
        self.users[user] = Rec(owner, epoch, record.e, "A" if owner != NOBODY else "R", why)
        if owner != NOBODY:
            assert owner not in self.buried, "a life that has ended owns again"
            self.seat(user, owner, True)
            self.seen[user] = self.clock
        else:
            self.seen.pop(user, None)
        self.told.append((user, owner, epoch, why))

    def fits(self, server: str) -> bool:
        row = self.rows[server]
        if row.open != "1" or row.lease <= self.clock:
            self.rank(server)
            return False
        return True

    def choose(self, draw: int) -> str | answers.NoServer:
        order = sorted(self.ranks, key=lambda id_: (self.ranks[id_], id_))
        count = sum(rank < FULL for rank in self.ranks.values())
        if not count:
            if not order:
                return answers.NoServer("none registered")
            return answers.NoServer("none willing" if self.ranks[order[0]] >= CLOSED else "all full")
        first, second = draw % count, draw // count % count
        if first == second:
            second = (first + 1) % count
        pair = {order[at]: self.ranks[order[at]] for at in sorted({first, second})}
        fitting = [(users, id_) for id_, users in pair.items() if self.fits(id_)]
        if fitting:
            return min(fitting)[1]
        for id_ in sorted(self.ranks, key=lambda id_: (self.ranks[id_], id_))[:count]:
            if self.fits(id_):
                return id_
        return answers.NoServer("none willing")

    def place(self, user: str, seen: int, draw: int, why: str) -> Any:
        record, chosen = self.of(user), self.choose(draw)
        if isinstance(chosen, answers.NoServer):
            return chosen
        owner, epoch = Owner(chosen, self.rows[chosen].life), self.above(user, seen)
        self.grant(user, owner, epoch, why)
        return answers.Placed(*owner, epoch, record.e, why)

    # -- the verbs

    def _held(self, user: str, seen: int) -> Any:
        """What `resolve` and `bind` say of a user who has somebody, or a mark."""
        self.look()
        record = self.of(user)
        if record.st == "M" and record.dt > self.clock:
            return answers.Moving(*record.owner, record.e, record.dt - self.clock)
        if record.owner != NOBODY and self.is_live(record.owner):
            if record.st != "M" and seen <= record.e:
                return answers.Bound(*record.owner, record.e, record.p)
            epoch, why = self.above(user, seen), "move-expired" if record.st == "M" else "seen"
            self.grant(user, record.owner, epoch, why)
            return answers.Placed(*record.owner, epoch, record.e, why)
        return None

    def _why(self, user: str) -> str:
        return {"": "new", "R": "return"}.get(self.of(user).st, "failover")

    def resolve(self, user: str, seen: int, place: bool, draw: int) -> Any:
        held = self._held(user, seen)
        if held is not None:
            return held
        return self.place(user, seen, draw, self._why(user)) if place else answers.NoServer("unplaced")

    def bind(self, user: str, owner: Owner, seen: int) -> Any:
        held = self._held(user, seen)
        if held is not None:
            return held
        if not self.is_live(owner):
            return answers.NoServer("none registered")
        row = self.rows[owner.server_id]
        if row.open != "1":
            return answers.NoServer("none willing")
        if row.capacity and self.load(owner) >= row.capacity:
            return answers.NoServer("all full")
        record, epoch, why = self.of(user), self.above(user, seen), self._why(user)
        self.grant(user, owner, epoch, why)
        return answers.Placed(*owner, epoch, record.e, why)

    def release(self, user: str, owner: Owner, epoch: int) -> type:
        record = self.of(user)
        if record.st == "R" and record.e == epoch:
            return answers.Released
        if record.st != "A" or record.owner != owner or record.e != epoch:
            return answers.NotOwner
        self.grant(user, NOBODY, record.e, "released")
        return answers.Released

    def renew(self, user: str, owner: Owner, above: int, why: str = "renewed") -> Any:
        self.look()
        record = self.of(user)
        if record.owner not in (NOBODY, owner) or not self.is_live(owner):
            return None
        epoch = self.above(user, above)
        self.grant(user, owner, epoch, why)
        return answers.Renewed(epoch, record.e)

    def reassert(self, owner: Owner, held: dict[str, int]) -> list[Rec]:
        self.look()
        for user, epoch in held.items():
            if self.is_live(owner) and self.of(user).e < epoch:
                self.grant(user, owner, epoch, "reasserted")
        return [self.of(user) for user in held]

    def repair(self, user: str, wrong: Owner, epoch: int, right: Owner, above: int) -> Any:
        self.look()
        record = self.of(user)
        if record.owner != wrong or record.e != epoch:
            return None
        if not self.is_live(right):
            return answers.Dead()
        granted = self.above(user, above)
        self.grant(user, right, granted, "repaired")
        return answers.Repaired(granted)

    def beat(self, owner: Owner, capacity: int) -> Any:
        self.look()
        if owner in self.buried:
            return answers.Ended()
        row = self.rows.get(owner.server_id)
        if row is not None and row.life != owner.life:
            if row.open != "?" or row.lease > self.clock:
                return answers.Unknown()
            row = None
        row = row or Row(owner.life, "?", 0, 0, self.clock, "")
        row.lease = max(row.lease, self.clock + LEASE_MS)
        row.capacity, row.version = capacity, "1"
        self.rows[owner.server_id] = row
        self.rank(owner.server_id)
        return answers.Unknown() if row.open == "?" else answers.Beaten(LEASE_MS)

    def end(self, owner: Owner) -> int:
        self.buried.add(owner)
        row = self.rows.get(owner.server_id)
        if row is not None and row.life == owner.life:
            del self.rows[owner.server_id], self.ranks[owner.server_id]
        if self.load(owner):
            self.orphans.add(owner)
        return self.load(owner)

    def show(self, owner: Owner, is_open: str) -> None:
        if owner in self.buried:
            return
        row = self.rows.get(owner.server_id)
        if row is not None and row.life != owner.life:
            self.end(Owner(owner.server_id, row.life))
            row = None
        if row is not None and row.open == is_open:
            return
        is_new = row is None or row.open == "?"
        row = row or Row(owner.life, "", 0, 0, 0, "")
        row.open, row.first = is_open, self.clock if is_new else row.first
        self.rows[owner.server_id] = row
        self.rank(owner.server_id)

    def tick(self, idle_ms: int) -> int:
        self.look()
        idle = 0
        for at, user in sorted((at, user) for user, at in self.seen.items()):
            if not idle_ms or at > self.clock - idle_ms:
                continue
            if self.of(user).st == "A":
                self.grant(user, NOBODY, self.of(user).e, "idle")
                idle += 1
            else:
                del self.seen[user]
        return idle

    def replace(self, owner: Owner, draw: int) -> answers.Replaced:
        self.look()
        placed = 0
        for user in sorted(self.seats.get(owner, ())):
            record = self.of(user)
            if record.owner == owner and not (record.st == "M" and record.dt > self.clock):
                if isinstance(self.place(user, 0, draw, "failover"), answers.NoServer):
                    break
                placed += 1
                draw = (draw * 31 + 17) % 2**48
        if not self.load(owner):
            self.orphans.discard(owner)
        return answers.Replaced(placed, self.load(owner))

    def freeze(self, user: str, owner: Owner, epoch: int, move: str, target: Owner, ttl_ms: int) -> Any:
        self.look()
        record = self.of(user)
        is_mine = record.owner == owner and record.e == epoch and record.st in ("A", "M")
        if is_mine and record.st == "M" and (record.move, record.target) == (move, target):
            return answers.Frozen(record.ne)
        if not is_mine or record.st != "A" or not self.is_live(owner):
            return None
        if not self.is_live(target):
            return answers.NoRoom("none registered")
        row = self.rows[target.server_id]
        if row.open != "1":
            return answers.NoRoom("none willing")
        if row.capacity and self.load(target) >= row.capacity:
            return answers.NoRoom("all full")
        promised = self.above(user, 0)
        mark = {"st": "M", "target": target, "ne": promised, "move": move, "dt": self.clock + ttl_ms}
        self.users[user] = replace(record, **mark)  # type: ignore[arg-type]
        self.seat(user, target, True)
        return answers.Frozen(promised)

    def commit(self, user: str, move: str, target: Owner, epoch: int) -> Any:
        self.look()
        record = self.of(user)
        if record.st == "A" and (record.owner, record.e) == (target, epoch):
            return answers.Committed()
        is_this = record.st == "M" and (record.move, record.target, record.ne) == (move, target, epoch)
        if not is_this or not self.is_live(target):
            return None
        self.grant(user, target, epoch, "moved")
        return answers.Committed()
