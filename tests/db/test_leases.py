"""The lease of a server in the database: while it stands nobody takes its users over."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from roost.core.errors import InvalidId, InvalidInput
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.leases import KEPT_MS
from roost.db.model import Claimed, Flush, Flushed, Refused, Row
from roost.testing import eventually

A, B, AGAIN = Owner("501", "life-1"), Owner("502", "life-2"), Owner("501", "life-3")
LONG_MS = 60_000


async def claimed(db: Database, owner: Owner = A, epoch: int = 5, judged: int = 0) -> Row:
    answer = await db.claim("entity", "anna", owner, epoch, judged=judged)
    assert isinstance(answer, Claimed)
    return answer.row


async def taken_over(db: Database, owner: Owner = B, epoch: int = 9, judged: int = 5) -> Claimed | Refused:
    return await db.claim("entity", "anna", owner, epoch, judged=judged, unless_leased=True)


async def test_a_takeover_is_refused_while_the_owner_holds_a_lease(db: Database) -> None:
    before = await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)

    answer = await taken_over(db)

    assert isinstance(answer, Refused)
    assert answer.row == before
    assert LONG_MS - 10_000 < answer.leased_ms <= LONG_MS
    assert await db.read("entity", "anna") == before


async def test_a_takeover_without_a_lease_is_a_claim(db: Database) -> None:
    assert isinstance(await taken_over(db, A, 5, judged=0), Claimed)
    taken = await taken_over(db)
    assert isinstance(taken, Claimed)
    assert (taken.row.owner, taken.row.epoch) == (B, 9)


async def test_who_dropped_its_lease_may_be_taken_over(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    await db.drop_lease("entity", A)
    await db.drop_lease("entity", A)
    assert isinstance(await taken_over(db), Claimed)


async def test_a_lease_runs_out_by_itself_and_is_prolonged_by_keeping_it(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    await db.keep_lease("entity", A, 200)

    answer = await taken_over(db)

    assert isinstance(answer, Refused)
    assert answer.leased_ms <= 200

    async def is_over() -> bool:
        return isinstance(await taken_over(db), Claimed)

    await eventually(is_over, "the lease has run out")


async def test_only_the_lease_of_the_rows_owner_counts(db: Database) -> None:
    await claimed(db)
    for type_, owner in (("entity", B), ("pet", A), ("entity", AGAIN)):
        await db.keep_lease(type_, owner, LONG_MS)
    assert isinstance(await taken_over(db), Claimed)


async def test_two_lives_of_a_server_are_two_owners(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    answer = await taken_over(db, AGAIN)
    assert isinstance(answer, Refused)
    assert answer.leased_ms > 0
    await db.drop_lease("entity", AGAIN)
    assert isinstance(await taken_over(db, AGAIN), Refused)


async def test_its_own_lease_keeps_nobody_from_claiming_anew(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    assert isinstance(await taken_over(db, A), Claimed)


async def test_a_planned_claim_and_a_row_without_an_owner_ask_for_no_lease(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    await claimed(db, B, 6, judged=5)
    await claimed(db, A, 7, judged=6)
    assert await db.release("entity", "anna", A, 7)
    assert isinstance(await taken_over(db, judged=7), Claimed)


async def test_what_is_refused_for_its_epoch_is_not_called_leased(db: Database) -> None:
    before = await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    assert await taken_over(db, judged=4) == Refused(before)
    assert await taken_over(db, judged=0) == Refused(before)
    absent = await db.claim("entity", "bob", B, 9, judged=5, unless_leased=True)
    assert absent == Refused(Row.absent("entity", "bob"))


async def test_who_holds_a_lease_goes_on_writing(db: Database) -> None:
    await claimed(db)
    await db.keep_lease("entity", A, LONG_MS)
    await taken_over(db)
    assert await db.flush(Flush("entity", "anna", 5, 1, b"state")) == Flushed()


async def test_of_a_takeover_and_leases_that_race_the_lease_that_was_answered_first_wins(
    any_url: str,
) -> None:
    async with open_database(any_url) as db, open_database(any_url) as other:
        await claimed(db)
        await db.keep_lease("entity", A, LONG_MS)
        answers = await asyncio.gather(
            *(taken_over(other, Owner(f"6{n}", "l"), 9 + n) for n in range(8)),
            *(db.keep_lease("entity", A, LONG_MS) for _ in range(8)),
        )
        assert {type(answer) for answer in answers} == {Refused, type(None)}


async def test_whoever_drops_one_forgets_those_that_ended_long_ago(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'users.db'}") as db:
        for owner in (A, B, AGAIN):
            await db.keep_lease("entity", owner, LONG_MS)
        with contextlib.closing(sqlite3.connect(tmp_path / "users.db", isolation_level=None)) as file:
            long_ago = (KEPT_MS + 2 * LONG_MS, B.server_id)
            file.execute("UPDATE roost_leases SET until_ms = until_ms - ? WHERE server_id = ?", long_ago)

            await db.drop_lease("entity", AGAIN)

            assert file.execute("SELECT server_id, life FROM roost_leases").fetchall() == [tuple(A)]


@pytest.mark.parametrize("bad", [0, -1, 3_600_001, True, 1.5, "5", None])
async def test_bad_times_are_refused(db: Database, bad: int) -> None:
    with pytest.raises(InvalidInput, match="ttl_ms must be a whole number"):
        await db.keep_lease("entity", A, bad)


async def test_bad_ids_are_refused(db: Database) -> None:
    for bad in ("", "a{b}", "x" * 129):
        with pytest.raises(InvalidId):
            await db.keep_lease("entity", Owner(bad, "l"), 5)
        with pytest.raises(InvalidId):
            await db.drop_lease("entity", Owner("501", bad))
        with pytest.raises(InvalidId):
            await db.keep_lease(bad, A, 5)
