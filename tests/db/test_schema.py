"""How a database gets its tables: once, by whoever comes first, and never back."""

from __future__ import annotations

import asyncio
import multiprocessing
from pathlib import Path

import pytest
from sqlalchemy import DDL

from roost.core.owner import Owner
from roost.db.database import open_database
from roost.db.errors import SchemaTooNew
from roost.db.model import Claimed, Refused
from roost.db.schema import VERSION
from roost.db.statements import DialectName
from roost.db.steps import STEPS, Step, upgrade
from roost.db.verbs import Result

STARTERS = 6


async def test_the_schema_of_the_code_is_that_of_its_last_step() -> None:
    assert [step.version for step in STEPS] == list(range(1, VERSION + 1))


async def test_a_real_mysql_runs_the_suite(mysql_url: str) -> None:
    async with open_database(mysql_url) as db:
        assert isinstance(await db.claim("entity", "anna", Owner("501", "l"), 5, judged=0), Claimed)


async def test_whoever_opens_it_again_finds_what_is_there(any_url: str) -> None:
    async with open_database(any_url) as db:
        await db.claim("entity", "anna", Owner("501", "l"), 5, judged=0)
    async with open_database(any_url) as db:
        found = await db.read("entity", "anna")
        assert found is not None
        assert found.epoch == 5


async def test_several_that_start_at_once_do_not_collide(any_url: str) -> None:
    async def start(number: int) -> bool:
        async with open_database(any_url) as db:
            return isinstance(
                await db.claim("entity", f"user-{number}", Owner("501", "l"), 5, judged=0), Claimed
            )

    assert await asyncio.gather(*(start(number) for number in range(STARTERS))) == [True] * STARTERS


def start_in_a_process(url: str, number: int) -> None:
    async def start() -> None:
        async with open_database(url) as db:
            await db.claim("entity", f"user-{number}", Owner("501", "l"), 5, judged=0)

    asyncio.run(start())


async def test_several_processes_that_start_at_once_on_a_new_file_do_not_collide(sqlite_url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=start_in_a_process, args=(sqlite_url, n)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join, 60)
    assert [process.exitcode for process in processes] == [0] * 4
    async with open_database(sqlite_url) as db:
        assert all([await db.read("entity", f"user-{n}") for n in range(4)])


async def test_a_newer_schema_is_refused_with_what_to_do(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = (*STEPS, Step(VERSION + 1, "later", []))
    monkeypatch.setattr(upgrade, "__defaults__", (newer,))
    async with open_database(any_url) as db:
        await db.claim("entity", "anna", Owner("501", "l"), 5, judged=0)
    monkeypatch.undo()

    with pytest.raises(
        SchemaTooNew, match=f"tables of version {VERSION + 1}, this Roost knows them up to version {VERSION}"
    ) as error:
        async with open_database(any_url):
            pass
    assert "newer Roost" in error.value.hint


async def test_a_later_step_is_taken_once_and_keeps_the_rows(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_database(any_url) as db:
        await db.claim("entity", "anna", Owner("501", "l"), 5, judged=0)
    # a second time it would be refused
    once = DDL("ALTER TABLE roost_users ADD COLUMN note INTEGER")  # type: ignore[no-untyped-call]
    monkeypatch.setattr(upgrade, "__defaults__", ((*STEPS, Step(VERSION + 1, "note", [once])),))
    for _ in range(2):
        async with open_database(any_url) as db:
            assert await db.read("entity", "anna") is not None


async def test_a_database_of_the_first_release_gets_its_table_of_leases(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner("501", "l")
    monkeypatch.setattr(upgrade, "__defaults__", (STEPS[:1],))
    async with open_database(any_url) as db:
        await db.claim("entity", "anna", owner, 5, judged=0)
    monkeypatch.undo()

    async with open_database(any_url) as db:
        await db.keep_lease("entity", owner, 60_000)
        answer = await db.claim("entity", "anna", Owner("502", "l"), 6, judged=5, unless_leased=True)
        assert isinstance(answer, Refused)
        assert answer.leased_ms > 50_000


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mariadb", "mysql"])
def test_a_database_that_is_up_to_date_is_only_read(dialect: DialectName) -> None:
    steps = upgrade(dialect)
    asked = [next(steps)[0].sql, steps.send(Result([(1,)], 1))[0].sql]
    with pytest.raises(StopIteration):
        steps.send(Result([(VERSION,)], 1))
    assert all(sql.startswith("SELECT") for sql in asked)


async def test_the_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path}/deeper/users.db") as db:
        await db.claim("entity", "anna", Owner("501", "l"), 5, judged=0)
        assert {file.stat().st_mode & 0o777 for file in (tmp_path / "deeper").iterdir()} == {0o600}
