"""What each verb asks of the database, without I/O: a generator of statements that takes their results.

The SQLite thread steps it through, the network drivers await each statement; the rules stand here once. Every
verb may be repeated after a lost connection: a claim finds itself by its id, a flush by its epoch, revision
and content, a release by the row that has no owner at its epoch.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from roost.core.owner import Owner
from roost.db import statements
from roost.db.model import Claimed, Fenced, Flush, Flushed, FlushResult, Refused, Row, row_of
from roost.db.order_statements import ROWS_TOGETHER
from roost.db.orders import OrderRow
from roost.db.statements import Statement, Statements

T = TypeVar("T")


class Result(NamedTuple):
    """The rows that a statement answered, and how many it changed."""

    rows: Sequence[Sequence[Any]]
    changed: int


class Many(tuple[tuple[Any, ...], ...]):
    """The parameters of a statement that is carried out once with each of them; it answers nothing."""


Query = tuple[Statement, tuple[Any, ...]]
Steps = Generator[Query, Result, T]


class Claim(NamedTuple):
    """A claim under an id of its own, the same however often it is sent."""

    type: str
    user: str
    owner: Owner
    epoch: int
    judged: int
    unless_leased: bool
    claim_id: int

    @classmethod
    def make(
        cls, type_: str, user: str, owner: Owner, epoch: int, judged: int, unless_leased: bool = False
    ) -> Claim:
        return cls(type_, user, owner, epoch, judged, unless_leased, secrets.randbits(62) + 1)


class Release(NamedTuple):
    type: str
    user: str
    owner: Owner
    epoch: int


def read(known: Statements, type_: str, user: str) -> Steps[Row | None]:
    found = yield _query(known.read, {"type": type_, "user_id": user})
    return row_of(found.rows[0]) if found.rows else None


def claim(known: Statements, asked: Claim) -> Steps[Claimed | Refused]:
    values = {
        "type": asked.type,
        "user_id": asked.user,
        "owner_server": asked.owner.server_id,
        "owner_life": asked.owner.life,
        "epoch": asked.epoch,
        "judged": asked.judged,
        "claim_id": asked.claim_id,
    }
    with_row = known.claim_unless_leased if asked.unless_leased else known.claim
    answer = yield _query(with_row if asked.judged else known.claim_new, values)
    row = row_of(answer.rows[0]) if answer.rows else (yield from read(known, asked.type, asked.user))
    if row is None:
        return Refused(Row.absent(asked.type, asked.user))
    if row.claim_id == asked.claim_id:
        return Claimed(row)
    if not asked.unless_leased or row.owner is None or row.epoch != asked.judged:
        return Refused(row)
    return Refused(row, (yield from lease_left(known, asked.type, row.owner)))


def keep_lease(known: Statements, type_: str, owner: Owner, ttl_ms: int) -> Steps[None]:
    yield _query(known.keep_lease, _lease(type_, owner) | {"ttl_ms": ttl_ms})


def drop_lease(known: Statements, type_: str, owner: Owner) -> Steps[None]:
    yield _query(known.drop_lease, _lease(type_, owner))


def lease_left(known: Statements, type_: str, owner: Owner) -> Steps[int]:
    """In milliseconds; 0 where none stands."""
    found = yield _query(known.lease_left, _lease(type_, owner))
    return max(0, int(found.rows[0][0])) if found.rows else 0


def _lease(type_: str, owner: Owner) -> dict[str, Any]:
    return {"type": type_, "server_id": owner.server_id, "life": owner.life}


def flush(known: Statements, asked: Flush) -> Steps[FlushResult]:
    answer = yield _query(known.flush, flush_values(asked))
    if answer.changed:
        return Flushed()
    return (yield from explain_flush(known, asked))


def explain_flush(known: Statements, asked: Flush) -> Steps[FlushResult]:
    """Why a flush changed nothing: it was there already, or it is fenced."""
    row = yield from read(known, asked.type, asked.user)
    return Flushed() if row is not None and is_in(asked, row) else Fenced(row)


def flush_by_arrays(known: Statements, asked: Sequence[Flush]) -> Steps[list[FlushResult]]:
    """Many users, none of them twice, in one statement."""
    assert known.flush_many is not None
    rows = [flush_values(one) for one in asked]
    arrays = {name: [row[name] for row in rows] for name in known.flush_many.names}
    answer = yield _query(known.flush_many, arrays)
    written = {(type_, user) for type_, user in answer.rows}
    return (yield from _explained(known, asked, [(one.type, one.user) in written for one in asked]))


def flush_in_transaction(known: Statements, asked: Sequence[Flush]) -> Steps[list[FlushResult]]:
    """Many users, none of them twice, with one commit."""
    changed: list[bool] = []
    yield plain("BEGIN")
    for one in asked:
        answer = yield _query(known.flush, flush_values(one))
        changed.append(answer.changed > 0)
    yield plain("COMMIT")
    return (yield from _explained(known, asked, changed))


def flush_together(known: Statements, asked: Sequence[Flush]) -> Steps[list[FlushResult]]:
    """Many users, none of them twice, in few statements: of SQLite, whose thread has begun a transaction."""
    results: list[FlushResult] = []
    for rows, statement in known.flush_together.items():
        while len(asked) - len(results) >= rows:
            some = asked[len(results) : len(results) + rows]
            answer = yield statement, tuple(chain.from_iterable(map(_in_columns, some)))
            is_whole = answer.changed == rows  # else some are fenced, or were there before
            results += (
                [Flushed()] * rows if is_whole else (yield from _explained(known, some, [False] * rows))
            )
    for one in asked[len(results) :]:
        results.append((yield from flush(known, one)))
    return results


def _explained(
    known: Statements, asked: Sequence[Flush], written: Sequence[bool]
) -> Steps[list[FlushResult]]:
    results: list[FlushResult] = []
    for one, is_written in zip(asked, written, strict=True):
        results.append(Flushed() if is_written else (yield from explain_flush(known, one)))
    return results


def release(known: Statements, asked: Release) -> Steps[bool]:
    key = {"type": asked.type, "user_id": asked.user}
    values = {"owner_server": asked.owner.server_id, "owner_life": asked.owner.life, "epoch": asked.epoch}
    answer = yield _query(known.release, key | values)
    if answer.changed:
        return True
    row = yield from read(known, asked.type, asked.user)
    return row is not None and row.owner is None and row.epoch == asked.epoch


def put_orders(known: Statements, rows: Sequence[OrderRow]) -> Steps[None]:
    """Many orders, none of them twice, with one commit."""
    if known.flush_many:
        yield known.put_orders, tuple(list(column) for column in zip(*rows, strict=True))
        return
    if known.begin:
        yield known.begin, ()
    if known.put_orders_together is not None:
        while len(rows) >= ROWS_TOGETHER:
            first, rows = rows[:ROWS_TOGETHER], rows[ROWS_TOGETHER:]
            yield known.put_orders_together, tuple(chain.from_iterable(first))
    if rows:
        yield known.put_orders, Many(rows)
    if known.commit:
        yield known.commit, ()


def order(known: Statements, order_id: int) -> Steps[OrderRow | None]:
    found = yield _query(known.order, {"order_id": order_id})
    return OrderRow(*found.rows[0]) if found.rows else None


def last_seq(known: Statements, shard: int) -> Steps[int]:
    found = yield _query(known.last_seq, {"shard": shard})
    return int(found.rows[0][0] or 0)


def newest_order_id(known: Statements, at_least: int, mask: int, bits: int) -> Steps[int]:
    found = yield _query(known.newest_order_id, {"at_least": at_least, "mask": mask, "bits": bits})
    return int(found.rows[0][0] or 0)


def orders_between(known: Statements, shard: int, after: int, before: int) -> Steps[list[OrderRow]]:
    found = yield _query(known.orders_between, {"shard": shard, "after": after, "before": before})
    return [OrderRow(*row) for row in found.rows]


def is_in(asked: Flush, row: Row) -> bool:
    """Whether the row holds exactly this flush."""
    mine = (asked.epoch, asked.revision, asked.last_sequence, asked.state, asked.replies)
    return mine == (row.epoch, row.revision, row.last_sequence, row.state, row.replies)


def flush_values(asked: Flush) -> dict[str, Any]:
    return {
        "type": asked.type,
        "user_id": asked.user,
        "epoch": asked.epoch,
        "revision": asked.revision,
        "state": asked.state,
        "last_sequence": asked.last_sequence,
        "replies": asked.replies,
        "schema_version": asked.schema_version,
        "min_reader": asked.min_reader,
    }


_in_columns = attrgetter(*({"user_id": "user"}.get(name, name) for name in statements.FLUSH))
"""A flush in the order in which `flush_together` says it."""


def plain(sql: str) -> Query:
    """A statement without parameters."""
    return statements.plain(sql), ()


def _query(statement: Statement, values: dict[str, Any]) -> Query:
    return statement, statement.in_order(values)
