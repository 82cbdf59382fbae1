"""The pool: so many sessions and no more, nobody forgotten in the line."""

from __future__ import annotations

import asyncio

import pytest

from roost.db.errors import DatabaseOverloaded, DatabaseUnavailable
from roost.db.model import Flush
from roost.db.network import MAX_GROUP_BYTES, groups
from roost.db.pool import Pool
from roost.db.statements import Statement
from roost.db.verbs import Result


class FakeSession:
    def __init__(self) -> None:
        self.is_open = True

    async def run(self, statement: Statement, args: tuple[object, ...]) -> Result:
        return Result([], 0)

    def terminate(self) -> None:
        self.is_open = False

    async def close(self) -> None:
        self.is_open = False


class Server:
    def __init__(self) -> None:
        self.made: list[FakeSession] = []
        self.away = False

    async def connect(self) -> FakeSession:
        await asyncio.sleep(0)
        if self.away:
            raise DatabaseUnavailable
        self.made.append(FakeSession())
        return self.made[-1]


async def test_sessions_are_used_again_and_bounded() -> None:
    server = Server()
    pool = Pool(server.connect, size=2, max_waiting=100)

    async def use() -> None:
        session = await pool.take()
        await asyncio.sleep(0)
        pool.put_back(session)

    await asyncio.gather(*(use() for _ in range(50)))
    assert len(server.made) == 2


async def test_a_discarded_session_gives_its_place_to_the_next_in_line() -> None:
    server = Server()
    pool = Pool(server.connect, size=1, max_waiting=10)
    first = await pool.take()
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.discard(first)
    assert await waiting is server.made[1]
    assert not server.made[0].is_open


async def test_a_failed_connection_does_not_cost_a_place() -> None:
    server = Server()
    pool = Pool(server.connect, size=1, max_waiting=10)
    server.away = True
    ends = await asyncio.gather(*(pool.take() for _ in range(5)), return_exceptions=True)
    assert all(isinstance(end, DatabaseUnavailable) for end in ends)
    server.away = False
    assert await pool.take() is server.made[0]


async def test_who_gives_up_in_the_line_leaves_the_session_to_the_next() -> None:
    server = Server()
    pool = Pool(server.connect, size=1, max_waiting=10)
    session = await pool.take()
    gives_up, stays = asyncio.create_task(pool.take()), asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.put_back(session)
    gives_up.cancel()
    assert await stays is session
    with pytest.raises(asyncio.CancelledError):
        await gives_up


async def test_a_closed_session_is_not_given_out() -> None:
    server = Server()
    pool = Pool(server.connect, size=1, max_waiting=10)
    session = await pool.take()
    pool.put_back(session)
    server.made[0].is_open = False
    assert await pool.take() is server.made[1]


async def test_a_session_in_use_ends_when_it_is_put_back_after_the_end() -> None:
    server = Server()
    pool = Pool(server.connect, size=2, max_waiting=1)
    used, idle = await pool.take(), await pool.take()
    pool.put_back(idle)
    await pool.close()
    assert used.is_open
    pool.put_back(used)
    assert not used.is_open
    assert not idle.is_open


async def test_the_line_is_bounded() -> None:
    server = Server()
    pool = Pool(server.connect, size=1, max_waiting=1)
    await pool.take()
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    with pytest.raises(DatabaseOverloaded):
        await pool.take()
    waiting.cancel()


def flush(user: str, size: int = 0) -> Flush:
    return Flush("entity", user, 1, 1, b"x" * size)


def test_a_group_has_no_user_twice_and_keeps_the_order_of_one_user() -> None:
    flushes = [flush(user) for user in ("b", "a", "b", "c", "b", "a")]
    assert list(groups(flushes, 100)) == [[1, 0, 3], [5, 2], [4]]


def test_a_group_is_bounded_in_number_and_size() -> None:
    assert [len(group) for group in groups([flush(str(n)) for n in range(25)], 10)] == [10, 10, 5]
    large = [flush(str(n), MAX_GROUP_BYTES // 2) for n in range(5)]
    assert [len(group) for group in groups(large, 10)] == [2, 2, 1]
    assert [len(group) for group in groups([flush("a", MAX_GROUP_BYTES * 2), flush("b")], 10)] == [1, 1]
