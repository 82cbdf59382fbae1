from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import pytest

from roost.api.discovery import Change, Instance
from roost.core.errors import StoreUnavailable
from roost.core.lease import Tenure
from roost.discovery import failover as failover_module
from roost.discovery.failover import Failover, ServerLife
from roost.testing import eventually

TENURE = Tenure(epoch=1, asked_at=0.0, ttl_ms=10_000)
S1, S2 = ServerLife("501", "i1", "1"), ServerLife("502", "i2", "2")


class Book:
    """A holder that writes down what it is told, and fails as often as it shall."""

    def __init__(self, failures: int = 0) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.as_of_us = 0
        self._failures = failures

    async def server_ended(self, server: ServerLife, died: bool) -> None:
        self._write("died" if died else "left", server)

    async def only_these_live(self, servers: Collection[ServerLife], as_of_us: int) -> None:
        self._write("live", *servers)
        self.as_of_us = as_of_us

    def _write(self, *line: Any) -> None:
        if self._failures:
            self._failures -= 1
            raise StoreUnavailable("the holder's store is away")
        self.told.append(line)


class Told:
    """A discovery that says what the test wrote; each watch takes up the next part, the last one stays."""

    def __init__(self, *parts: Sequence[Change | Exception]) -> None:
        self.asked: list[tuple[str, str]] = []
        self._parts = list(parts)

    async def watch(self, type: str, group: str, /) -> AsyncIterator[Change]:  # noqa: A002
        self.asked.append((type, group))
        for change in self._parts.pop(0) if self._parts else ():
            if isinstance(change, Exception):
                raise change
            yield change
        if not self._parts:
            await asyncio.Event().wait()


def instance(server: ServerLife, **fields: Any) -> Instance:
    given = {"status": "ready", "accepting": True, "last_heartbeat": "", **fields}
    return Instance(
        "game", "kr-1", server.server_id, instance_id=server.instance_id, life=server.life, **given
    )


def snapshot(*servers: ServerLife) -> Change:
    return Change("snapshot", 1, "1", instances=[instance(server) for server in servers])


def removed(server: ServerLife, status: str) -> Change:
    return Change(
        "removed",
        2,
        "2",
        instance_id=server.instance_id,
        life=server.life,
        server_id=server.server_id,
        status=status,
    )


@contextlib.asynccontextmanager
async def running(discovery: Told, *holders: Book) -> AsyncIterator[None]:
    task = asyncio.create_task(Failover(discovery, holders).run(TENURE))
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover_module, "RETRY_S", 0.0)


async def test_every_holder_is_told_who_lives_and_who_ended() -> None:
    first, second = Book(), Book()
    async with running(discovery := Told([snapshot(S1, S2), removed(S1, "no-response")]), first, second):
        await eventually(lambda: len(second.told) == 2, "the end")
    assert first.told == second.told == [("live", S1, S2), ("died", S1)]
    assert discovery.asked == [("*", "*")]


@pytest.mark.parametrize(
    ("status", "word"), [("no-response", "died"), ("terminated", "left"), ("removed", "left")]
)
async def test_a_death_and_a_clean_end_are_told_apart(status: str, word: str) -> None:
    book = Book()
    await Failover(Told(), [book]).pass_on(removed(S1, status))
    assert book.told == [(word, S1)]


async def test_who_only_changes_has_not_ended() -> None:
    book = Book()
    failover = Failover(Told(), [book])
    await failover.pass_on(Change("added", 2, "2", instance=instance(S1)))
    await failover.pass_on(Change("changed", 3, "3", instance=instance(S1, status="suspect")))
    assert book.told == []


async def test_an_instance_without_a_stable_name_goes_by_its_id() -> None:
    book = Book()
    nameless = ServerLife("", "i9", "9")
    await Failover(Told(), [book]).pass_on(snapshot(nameless))
    assert book.told == [("live", ServerLife("i9", "i9", "9"))]


async def test_nobody_lives_where_the_snapshot_is_empty() -> None:
    book = Book()
    await Failover(Told(), [book]).pass_on(snapshot())
    assert book.told == [("live",)]


async def test_who_lives_is_said_as_of_the_snapshots_moment() -> None:
    book = Book()
    await Failover(Told(), [book]).pass_on(Change("snapshot", 7, "1700000000000007", instances=[]))
    assert book.as_of_us == 1_700_000_000_000_007


async def test_after_a_gap_in_discovery_it_says_who_lives() -> None:
    book = Book()
    async with running(Told([snapshot(S1, S2), StoreUnavailable("away")], [snapshot(S2)]), book):
        await eventually(lambda: len(book.told) == 2, "the second snapshot")
    assert book.told == [("live", S1, S2), ("live", S2)]


async def test_a_watch_that_ends_by_itself_is_begun_again() -> None:
    book = Book()
    async with running(Told([snapshot(S1)], [snapshot(S1)]), book):
        await eventually(lambda: len(book.told) == 2, "the second watch")


async def test_a_holder_that_could_not_be_told_of_an_end_learns_it_from_who_lives() -> None:
    """And so does the one after it, which was not reached."""
    first, second = Book(), Book()
    discovery = Told([snapshot(S1, S2), removed(S1, "no-response")], [snapshot(S2)])

    async def fail(server: ServerLife, died: bool) -> None:
        raise StoreUnavailable("the holder's store is away")

    first.server_ended = fail  # type: ignore[method-assign]
    async with running(discovery, first, second):
        await eventually(lambda: len(second.told) == 2, "the repetition")
    assert first.told == second.told == [("live", S1, S2), ("live", S2)]


async def test_it_says_who_lives_until_the_holder_has_heard_it() -> None:
    book = Book(failures=3)
    async with running(Told(*[[snapshot(S1)]] * 4), book):
        await eventually(lambda: bool(book.told), "the fourth attempt")
    assert book.told == [("live", S1)]
