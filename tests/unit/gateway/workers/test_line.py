"""Questions and answers over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from roost.core.errors import Unavailable
from roost.gateway.workers.line import Answer, Line


async def echo(what: str) -> bytes:
    return what.encode()


@asynccontextmanager
async def two_ends(here: Answer = echo, there: Answer = echo) -> AsyncIterator[tuple[Line, Line]]:
    ends = socket.socketpair()
    lines = await Line.open(ends[0], here), await Line.open(ends[1], there)
    tasks = [asyncio.create_task(line.run()) for line in lines]
    try:
        yield lines
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_both_ends_may_ask_at_once() -> None:
    async with two_ends() as (one, other):
        answers = await asyncio.gather(one.ask("a"), other.ask("b"), one.ask("c"))

    assert list(answers) == [b"a", b"b", b"c"]


async def test_an_answer_may_need_a_question_over_the_same_line() -> None:
    async def ask_back(what: str) -> bytes:
        return b"all of " + await lines[1].ask("page")

    async with two_ends(there=ask_back) as lines:
        assert await lines[0].ask("metrics") == b"all of page"


async def test_a_refusal_says_why() -> None:
    async def refuse(what: str) -> bytes:
        raise Unavailable("a background loop fails: sweep")

    async with two_ends(there=refuse) as (one, _):
        with pytest.raises(Unavailable, match="a background loop fails: sweep"):
            await one.ask("ready")


async def test_who_does_not_answer_is_waited_for_no_longer_than_said() -> None:
    async def never(what: str) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with two_ends(there=never) as (one, _):
        with pytest.raises(Unavailable, match="no answer in time"):
            await one.ask("ready", timeout_s=0.01)


async def test_a_question_ends_with_the_other_end() -> None:
    async def never(what: str) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with two_ends(there=never) as (one, other):
        asking = asyncio.create_task(one.ask("ready"))
        await asyncio.sleep(0)
        other.close()
        with pytest.raises(Unavailable, match="gone"):
            await asking
