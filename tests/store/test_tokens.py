"""What a gateway knows of tokens and of ended sessions while the store is slow, away, or answers late."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from roost.api.tokens import TokenInput
from roost.core.errors import Forbidden, StoreUnavailable
from roost.store.keys.tokens import TOKENS
from roost.store.store import Store
from roost.testing import eventually
from roost.tokens.ended import EndedSessions
from roost.tokens.service import Tokens
from roost.tokens.sessions import Session, Sessions


class Way:
    """The way of one gateway to the store, which the test may hold up, before or after the store acts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.keys = store.keys
        self.asked = 0
        self.is_away: set[str] = set()
        """Commands that fail at once."""
        self.lets_out = asyncio.Event()
        self.lets_in = asyncio.Event()
        self.lets_out.set()
        self.lets_in.set()

    async def call(self, command: str, *args: Any, **more: Any) -> Any:
        self.asked += 1
        await self.lets_out.wait()
        if command in self.is_away:
            raise StoreUnavailable("it does not answer")
        reply = await self._store.call(command, *args, **more)
        await self.lets_in.wait()
        return reply

    def store(self) -> Store:
        return cast(Store, self)


@pytest.fixture
def way(store: Store) -> Way:
    return Way(store)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def a_session() -> Session:
    return await Sessions("root").begin("root")


async def test_a_logout_that_the_store_did_not_take_is_not_forgotten_by_a_read_from_before_it(
    way: Way,
) -> None:
    clock, session = Clock(), await a_session()
    sessions = EndedSessions(way.store(), clock)
    way.lets_in.clear()
    reading = asyncio.create_task(sessions.has(await a_session()))
    await eventually(lambda: way.asked == 1, "the read is under way")
    way.is_away.add("ZADD")
    with pytest.raises(StoreUnavailable):
        await sessions.add(session)
    way.lets_in.set()

    assert not await reading
    assert await sessions.has(session)
    clock.now += 3
    assert not await sessions.has(await a_session()), "read again meanwhile"
    assert await sessions.has(session)


async def test_two_who_ask_at_once_hear_the_same_of_an_ended_session(way: Way) -> None:
    session = await a_session()
    await EndedSessions(way.store()).add(session)
    fresh, asked = EndedSessions(way.store()), way.asked

    assert await asyncio.gather(*(fresh.has(session) for _ in range(3))) == [True, True, True]
    assert way.asked == asked + 1


async def test_known_tokens_go_on_for_a_minute_while_the_store_hangs(way: Way) -> None:
    clock = Clock()
    tokens = Tokens("root", way.store(), clock)
    token = (await tokens.create(TokenInput(name="ops", scopes=["read"]))).token
    assert (await tokens.identify(token)).name == "ops"
    asked = way.asked
    clock.now += 3
    way.lets_out.clear()
    way.is_away.add("HGETALL")
    waiting = [asyncio.create_task(tokens.identify(token)) for _ in range(20)]
    await eventually(lambda: way.asked == asked + 1, "the list is read")
    way.lets_out.set()

    assert [grant.name for grant in await asyncio.gather(*waiting)] == ["ops"] * 20
    assert way.asked == asked + 1, "one read that failed is the answer to all"
    clock.now += 1
    assert (await tokens.identify(token)).name == "ops"
    assert way.asked == asked + 1
    with pytest.raises(StoreUnavailable):
        await tokens.identify("nobody knows whose")
    clock.now += 60
    with pytest.raises(StoreUnavailable):
        await tokens.identify(token)
    way.is_away.clear()
    clock.now += 1
    assert (await tokens.identify(token)).name == "ops"


async def test_strangers_who_come_while_the_store_hangs_wait_for_one_read(way: Way) -> None:
    tokens = Tokens("root", way.store(), Clock())
    way.is_away.add("HGETALL")
    said = await asyncio.gather(*(tokens.identify(f"t{n}") for n in range(20)), return_exceptions=True)
    assert all(isinstance(one, StoreUnavailable) for one in said)
    assert way.asked == 1


async def test_a_token_that_was_revoked_here_does_not_go_on(way: Way) -> None:
    tokens = Tokens("root", way.store(), Clock())
    made = await tokens.create(TokenInput(name="ops", scopes=["read"]))
    assert (await tokens.identify(made.token)).name == "ops"
    await tokens.revoke(made.id)
    way.is_away.add("HGETALL")
    with pytest.raises(StoreUnavailable):
        await tokens.identify(made.token)


async def test_the_token_that_only_reads_needs_no_store(way: Way) -> None:
    clock = Clock()
    tokens = Tokens("root", way.store(), clock, read_token="prometheus")
    way.is_away.add("HGETALL")
    for _ in range(2):
        grant = await tokens.identify("prometheus")
        assert (grant.name, grant.scopes) == ("reader", frozenset({"read"}))
        clock.now += 3600
    with pytest.raises(Forbidden):
        await tokens.check("prometheus", "register")


@pytest.mark.parametrize(
    "bad", [b"no JSON", b'{"name":"x","scopes":["later"],"createdAt":"","digest":"00"}', b"\xff"]
)
async def test_one_token_that_cannot_be_read_locks_nobody_else_out(store: Store, bad: bytes) -> None:
    """It may be of a later version, while gateways are updated one by one."""
    made = await Tokens("root", store).create(TokenInput("ann", ["read"]))
    key = store.keys.plain(TOKENS)
    await store.call("HSET", key, "bad", bad, key=key)
    tokens = Tokens("root", store)
    assert (await tokens.identify(made.token)).name == "ann"
    assert [token.id for token in await tokens.list()] == [made.id]
    await tokens.revoke("bad")
