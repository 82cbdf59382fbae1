"""What happened reaches index and database after the answers, in order, and loses nothing to a takeover."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from roost.db.orders import OPEN, OrderRow
from roost.lanes.outbox import Outbox
from roost.servers.orders.outlet import Outlet
from roost.servers.orders.sessions import Sessions

SHARD = 3


def row(seq: int, order_id: int = 7) -> OrderRow:
    return OrderRow(order_id, SHARD, seq, 1, "ann", "ACME", 1, 10, 5, 5, OPEN, 100, 100 + seq)


class Index:
    def __init__(self) -> None:
        self.followed: list[int] = []

    def follow(self, _shard: int, rows: Iterable[OrderRow]) -> None:
        self.followed += [one.seq for one in rows]


class Told:
    """A connection that follows an account."""

    def __init__(self) -> None:
        self.pushed: list[bytes] = []

    def push(self, _service: int, _method: int, payload: bytes) -> bool:
        self.pushed.append(payload)
        return True

    def on_close(self, told: Any) -> None:
        pass


def outlet_of(index: Index, outbox: Outbox, sessions: Sessions | None = None) -> Outlet:
    return Outlet(sessions or Sessions(), cast(Any, index), outbox, cast(Any, None))


async def test_rows_wait_until_what_was_answered_in_the_same_turn_is_written() -> None:
    index, outbox, seen = Index(), Outbox(cast(Any, None)), list[tuple[str, int]]()
    outlet, loop = outlet_of(index, outbox), asyncio.get_running_loop()

    loop.call_soon(lambda: seen.append(("written", outbox.depth)))
    outlet.happened(SHARD, 1, [], [row(1)])
    outlet.happened(SHARD, 2, [], [row(2, order_id=8)])
    for _ in range(3):
        await asyncio.sleep(0)

    assert seen == [("written", 0)]
    assert (index.followed, outbox.depth) == ([1, 2], 2)


async def test_events_are_told_at_once() -> None:
    sessions, follower = Sessions(), Told()
    sessions.follow("ann", cast(Any, follower))

    outlet_of(Index(), Outbox(cast(Any, None)), sessions).happened(SHARD, 1, [("ann", b"filled")], [])

    assert follower.pushed == [b"filled"]


async def test_rows_of_an_earlier_owner_come_before_those_of_a_takeover() -> None:
    index = Index()
    outlet = outlet_of(index, Outbox(cast(Any, None)))

    outlet.happened(SHARD, 1, [], [row(1)])
    outlet.recovered(SHARD, 5, [row(5)])
    for _ in range(3):
        await asyncio.sleep(0)

    assert index.followed == [1, 5]
