"""How a database gets its tables: numbered steps, each taken once, by one process at a time.

A step is never changed after a release; a change of the tables is a new step at the end, and `schema.VERSION`
is its number. The table of a step is that of `schema.py` as long as no later step changes it; one that does
gives the earlier one a copy of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.schema import CreateTable, ExecutableDDLElement

from roost.db.errors import DatabaseUnavailable, SchemaTooNew
from roost.db.schema import leases, orders, users, versions
from roost.db.statements import DIALECTS, DialectName, statements
from roost.db.verbs import Result, Steps, plain

LOCK_WAIT_S = 30
LOCK_ID = 0x526F6F7374  # "Roost"


class Step(NamedTuple):
    """DDL that may be repeated: MySQL does not undo it with a transaction that breaks off."""

    version: int
    name: str
    changes: Sequence[ExecutableDDLElement]


STEPS = (
    Step(1, "users", [CreateTable(users, if_not_exists=True)]),
    Step(2, "leases", [CreateTable(leases, if_not_exists=True)]),
    Step(3, "orders", [CreateTable(orders, if_not_exists=True)]),
)


class Guard(NamedTuple):
    """How one process keeps the others away while it takes steps; whether there is a table of versions."""

    begin: tuple[str, ...]
    end: str
    has_versions: str


GUARDS: dict[DialectName, Guard] = {
    "sqlite": Guard(
        ("BEGIN IMMEDIATE",), "COMMIT", "SELECT count(*) FROM sqlite_master WHERE name = 'roost_schema'"
    ),
    "postgresql": Guard(
        ("BEGIN", f"SELECT 1 FROM pg_advisory_xact_lock({LOCK_ID})"),  # noqa: S608 — a number of ours
        "COMMIT",
        # not to_regclass(): it may remember from before the lock that there is none
        "SELECT count(*) FROM pg_catalog.pg_tables "
        "WHERE tablename = 'roost_schema' AND schemaname = ANY (current_schemas(false))",
    ),
    **dict.fromkeys(
        ("mariadb", "mysql"),
        Guard(
            (f"SELECT GET_LOCK(CONCAT('roost_schema.', DATABASE()), {LOCK_WAIT_S})",),
            "SELECT RELEASE_LOCK(CONCAT('roost_schema.', DATABASE()))",
            "SELECT count(*) FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name = 'roost_schema'",
        ),
    ),
}


def upgrade(dialect: DialectName, steps: Sequence[Step] = STEPS) -> Steps[int]:
    """Bring the tables to the last of the steps; returns the version that was found."""
    guard = GUARDS[dialect]
    found = yield from _version(dialect, guard)
    if _is_up_to_date(found, steps):
        return found
    for sql in guard.begin:
        answer = yield plain(sql)
        _check_lock(answer)
    found = yield from _version(dialect, guard)
    if not _is_up_to_date(found, steps):
        yield plain(_ddl(CreateTable(versions, if_not_exists=True), dialect))
        for step in steps:
            if step.version > found:
                yield from _take(step, dialect)
    yield plain(guard.end)
    return found


def _is_up_to_date(found: int, steps: Sequence[Step]) -> bool:
    known = steps[-1].version
    if found > known:
        raise SchemaTooNew(
            f"the database has tables of version {found}, this Roost knows them up to version {known}",
            hint="run the newer Roost that made them, or restore the copy of the database from before it",
        )
    return found == known


def _version(dialect: DialectName, guard: Guard) -> Steps[int]:
    there = yield plain(guard.has_versions)
    if not there.rows[0][0]:
        return 0
    found = yield statements(dialect).version, ()
    return int(found.rows[0][0] or 0)


def _take(step: Step, dialect: DialectName) -> Steps[None]:
    for change in step.changes:
        yield plain(_ddl(change, dialect))
    add = statements(dialect).add_version
    yield add, add.in_order({"version": step.version, "name": step.name})


def _check_lock(answer: Result) -> None:
    """GET_LOCK answers 0 or NULL where it did not get the lock; the others answer 1 or nothing."""
    if answer.rows and answer.rows[0][0] != 1:
        raise DatabaseUnavailable(f"another process has been changing the tables for {LOCK_WAIT_S} s")


def _ddl(change: ExecutableDDLElement, dialect: DialectName) -> str:
    return str(change.compile(dialect=DIALECTS[dialect]()))
