"""The moves of a job that are under way: what is asked of the servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from roost.binding.drain.model import Order, Progress
from roost.binding.drain.movers import Moved, MoveTerms
from roost.binding.drain.moving import Moving
from roost.binding.drain.view import Shift
from roost.binding.model import Record
from roost.binding.settings import BindingSettings
from roost.core.errors import OutcomeUnknown
from roost.core.owner import Owner

OLD, NEW = Owner("501", "7"), Owner("502", "8")


class Servers:
    """Move whoever they are asked to."""

    def __init__(self) -> None:
        self.terms: list[MoveTerms] = []
        self.are_heard = True

    async def move(
        self, at: Any, type_: str, move_id: str, users: Sequence[str], to: Any, terms: MoveTerms
    ) -> list[Moved]:
        self.terms.append(terms)
        if not self.are_heard:
            raise OutcomeUnknown("no answer in time")
        return [Moved(user, "moved") for user in users]


async def read(type_: str, user: str) -> Record:
    """The map: they are where they were."""
    return Record(OLD, 5, 0, "A", 0, "new")


def moving(servers: Servers, max_block_ms: int = 500) -> Moving:
    order = Order(
        id="job",
        kind="drain",
        type="entity",
        sources=["501"],
        lives={"501": OLD.life},
        to=[],
        version="",
        quota={},
        by="",
        rate=100,
        canary=0,
        max_block_ms=max_block_ms,
        deadline_s=60,
    )
    bindings = SimpleNamespace(settings=BindingSettings(), read=read)
    view: Any = SimpleNamespace(alive=lambda owner: owner, bindings=bindings)
    feed: Any = SimpleNamespace(heard=lambda *_: None, unsent=lambda *_, **__: None)
    return Moving(order, Progress(), view, servers, feed, feed)  # type: ignore[arg-type]


@pytest.mark.parametrize(("max_block_ms", "mark_ms"), [(500, 3000), (10_000, 10_000)])
async def test_a_mark_holds_for_as_long_as_a_user_may_be_held_up(max_block_ms: int, mark_ms: int) -> None:
    """A gate that waits for a user ends a mark whose time is over, and the move with it."""
    servers = Servers()
    under_way = moving(servers, max_block_ms)
    under_way.send(Shift("501", ("ann",), OLD, NEW))
    async with asyncio.timeout(2):
        await under_way.news.wait()
    [terms] = servers.terms
    assert (terms.max_block_ms, terms.mark_ms) == (max_block_ms, mark_ms)


async def test_one_who_came_back_and_left_again_is_not_waited_for_at_the_end() -> None:
    """As in a rebalance that lasts: released by the one server, they came to the other again."""
    servers = Servers()
    under_way = moving(servers)
    for servers.are_heard in (True, False, True):
        await one_move(under_way)
    assert not under_way.is_busy
    assert not under_way.ask_again(9.0)


async def one_move(under_way: Moving) -> None:
    under_way.news.clear()
    under_way.send(Shift("501", ("ann",), OLD, NEW))
    async with asyncio.timeout(2):
        await under_way.news.wait()
    await asyncio.sleep(0)  # the task ends
    under_way.hear(1.0)
    await under_way.resolve_doubts(1.0)
