"""No call is lost by its link: whatever happens to a connection, every caller hears how it ended.

A follower that waits for a reply which nobody owes it stands still for ever, and no loop fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from roost.core.errors import StoreError, StoreRefused
from roost.store.call import Call, pack
from roost.store.connection import Access, Connection, dial
from roost.store.link import Link, LinkOptions
from roost.store.url import Address
from roost.testing import RunningServer, eventually

OPTIONS = LinkOptions(command_timeout_s=1.0, connect_timeout_s=1.0)


def link_of(connect: Callable[[], Awaitable[Connection]], policy: Callable[..., bool]) -> Link:
    return Link("node", connect, OPTIONS, policy)


def asked(link: Link, *args: str) -> asyncio.Future[object]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    link.submit(Call(future, pack(args), loop.time() + 3.0, None, True, False))
    return future


async def test_a_connection_that_is_lost_before_its_link_has_it_takes_no_call_along(
    server: RunningServer,
) -> None:
    dialled = 0

    async def connect() -> Connection:
        nonlocal dialled
        dialled += 1
        connection = await dial(Address("127.0.0.1", server.port), Access(), 1.0)
        if dialled == 1:  # the store answers the handshake and dies
            connection.abort()
            await connection.lost
        return connection

    link = link_of(connect, lambda *_: False)
    call = asked(link, "PING")
    async with asyncio.timeout(5.0):
        assert await call == b"PONG"
    assert dialled == 2
    await link.close()


async def test_an_error_that_the_policy_cannot_read_is_the_callers_and_nobody_elses(
    server: RunningServer,
) -> None:
    async def connect() -> Connection:
        return await dial(Address("127.0.0.1", server.port), Access(), 1.0)

    def policy(link: Link, call: Call, word: str, message: str) -> bool:
        raise ValueError(message)

    link = link_of(connect, policy)
    await link.ready(5.0)
    bad, good = asked(link, "NOSUCHCOMMAND"), asked(link, "PING")
    async with asyncio.timeout(5.0):
        assert await good == b"PONG"
        with pytest.raises(StoreRefused):
            await bad
    await link.close()


async def test_a_listener_that_fails_does_not_keep_the_link_from_dialling_again(
    server: RunningServer,
) -> None:
    async def connect() -> Connection:
        return await dial(Address("127.0.0.1", server.port), Access(), 1.0)

    troubles = 0

    def trouble() -> None:
        nonlocal troubles
        troubles += 1
        if troubles == 1:
            raise RuntimeError("a listener's own fault")

    link = Link("node", connect, OPTIONS, lambda *_: False, trouble)
    await link.ready(5.0)
    link.drop("a test")
    await eventually(lambda: link.stats.connects == 2, "another connection")
    try:
        assert await asked(link, "PING") == b"PONG"
    except StoreError as error:  # pragma: no cover — said for a reader of the failure
        pytest.fail(error.message)
    await link.close()
