"""The store's scripts and the database's verbs on values; named as in `binding/lua` and `db/verbs.py`."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tests.faults.exhaustive.rules import Rules
from tests.faults.exhaustive.state import Record, Row, World, Write

HISTORY = 3
"""Scripts that a failover may lose."""


class Placed(NamedTuple):
    record: Record
    server: str
    epoch: int


def epoch_above(world: World, seen: int = 0) -> int:
    return max(world.record.e, world.record.ne, seen, world.clock) + 1


def grant(record: Record, server: str, epoch: int, rules: Rules, why: str = "") -> Record:
    seats = {server} if server else set()
    if not rules.r10 and why in ("failover", "repaired"):
        seats |= set(record.seats)
    is_free = record.st in ("", "R")
    return Record(server, epoch, record.e, "A" if server else "R", seats="".join(sorted(seats)), free=is_free)


def keep(world: World, record: Record) -> None:
    """A script has written."""
    if record != world.record:
        if world.may("failover"):
            world.history = (world.record, *world.history)[:HISTORY]
        world.record = record
        world.clock = max(world.clock, record.e, record.ne)


def resolve(world: World, seen: int, rules: Rules) -> list[Placed] | Literal["moving"]:
    """What may come of it: several, where a server is chosen."""
    record, live = world.record, world.live
    if record.st == "M" and not record.expired:
        return "moving"
    epoch = epoch_above(world, seen)
    if record.s and record.s in live:
        if record.st != "M" and seen <= record.e:
            return [Placed(record, record.s, record.e)]
        if record.st == "M" and not rules.epoch_on_abort:
            epoch = record.e
        return [Placed(grant(record, record.s, epoch, rules), record.s, epoch)]
    return [Placed(grant(record, name, epoch, rules, "failover"), name, epoch) for name in live]


def freeze(world: World, server: str, epoch: int, move: int, target: str) -> Record | None:
    """None: not the owner, or no room."""
    record, live = world.record, world.live
    if record.st == "M" and record.m == move and record.d == target:
        return record
    is_owner = record.st == "A" and record.s == server and record.e == epoch
    if not is_owner or server not in live or target not in live:
        return None
    seats = "".join(sorted({*record.seats, target}))
    return record._replace(st="M", d=target, ne=epoch_above(world), m=move, seats=seats)


def commit(world: World, server: str, epoch: int, move: int, rules: Rules) -> Record | None:
    """None: the mark is gone."""
    record = world.record
    if record.st == "A" and record.s == server and record.e == epoch:
        return record
    fits = record.st == "M" and record.m == move and record.d == server and record.ne == epoch
    if not fits or server not in world.live:
        return None
    return grant(record, server, epoch, rules)


def renew(world: World, server: str, above: int, rules: Rules) -> tuple[Record, int] | None:
    record = world.record
    if (record.s and record.s != server) or server not in world.live:
        return None
    epoch = epoch_above(world, above)
    if record.st == "M" and not rules.epoch_on_abort:
        epoch = record.e
    return grant(record, server, epoch, rules), epoch


def repair(
    world: World, wrong: str, epoch: int, right: str, above: int, rules: Rules
) -> Record | Literal["changed", "dead"]:
    record = world.record
    if record.s != wrong or record.e != epoch:
        return "changed"
    if right not in world.live:
        return "dead"
    return grant(record, right, epoch_above(world, above), rules, "repaired")


def reassert(world: World, server: str, epoch: int, rules: Rules) -> Record:
    record = world.record
    if server in world.live and record.e < epoch:
        return grant(record, server, epoch, rules)
    return record


def release(world: World, server: str, epoch: int, rules: Rules) -> Record:
    record = world.record
    if record.st != "A" or record.s != server or record.e != epoch:
        return record
    return grant(record, "", record.e, rules)


# -- the database


def claim(row: Row, owner: str, epoch: int, judged: int, rules: Rules) -> Row | None:
    """None: refused."""
    fits = row.e == judged if rules.r5 else True
    return row._replace(owner=owner, e=epoch) if fits and epoch > row.e else None


def flush(row: Row, write: Write, rules: Rules) -> Row | None:
    """None: fenced. One that is there already is there."""
    if rules.db_fence and row.e != write.epoch:
        return None
    if rules.r4 and row.rev >= write.rev:
        return row if row.rev == write.rev and row.ops == write.ops else None
    stray = row.stray if row.e == write.epoch else write.epoch
    return row._replace(rev=write.rev, ops=write.ops, stray=stray)


def release_row(row: Row, owner: str, epoch: int, rules: Rules) -> Row | None:
    if row.e != epoch or row.owner not in (owner, ""):
        return None
    return row._replace(owner="") if rules.r8 else row
