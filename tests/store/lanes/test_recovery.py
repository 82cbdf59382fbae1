"""A takeover comes to the state that the log tells of, and says what is missing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from roost.core.errors import StoreUnavailable
from roost.db.orders import LOST
from roost.lanes.commands import Method, New, Side, State, decode_event, decode_outcome
from roost.lanes.ids import SHARDS, pack
from roost.servers.orders import closed
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.testing import eventually
from tests.store.lanes.hall import Hall, Server
from tests.store.lanes.test_committing import lose_tail

BEHIND_S = 600


async def trade(server: Server, first: int, last: int, symbol: str = "ACME") -> None:
    for number in range(first, last + 1):
        side = Side.BUY if number % 3 else Side.SELL
        await server.outcome(Method.NEW, New(f"a{number % 4}", number, 0, symbol, side, 10 + number % 2, 5))


async def test_g16_a_replay_comes_to_the_same_state(any_hall: Hall) -> None:
    first = await any_hall.started("first")
    await trade(first, 1, 20)
    digest = first.engine_of("ACME").digest()
    first.kill()

    second = await any_hall.takes_over("second", workers=1)

    assert second.engine_of("ACME").digest() == digest
    assert second.keeping.mismatches == second.keeping.lost_commands == 0


async def test_a_snapshot_and_the_entries_after_it_come_to_the_same_state(hall: Hall) -> None:
    first = await hall.started("first")
    await trade(first, 1, 12)
    await first.snapshot()
    await trade(first, 13, 20)
    digest, number = first.engine_of("ACME").digest(), first.shard_of("ACME").number
    first.kill()

    second = await hall.takes_over("second")

    kept = second.keeping.kept[number]
    assert second.engine_of("ACME").digest() == digest
    assert (kept.replayed, kept.mismatches) == (9, 0)  # eight, and the takeover


async def test_an_entry_that_the_snapshot_has_in_part_is_applied_in_part(hall: Hall) -> None:
    first = await hall.started("first")
    requests = [first.send(Method.NEW, New("ann", n, 0, "ACME", Side.BUY, 10, 5)) for n in range(1, 9)]
    for request in requests:
        await first.answer_to(request)
    number = first.shard_of("ACME").number
    assert len(await hall.entries(number)) == 2  # the takeover, and one of eight commands
    await first.snapshot()
    key = shard_keys(hall.store.keys, shard_scope(number))["snapshot"]
    await hall.store.call("HSET", key, "@seq", "5", key=key)
    first.kill()

    second = await hall.takes_over("second")

    assert second.keeping.kept[number].replayed == 4 + 1


async def test_g16_a_lost_tail_is_reported_and_its_numbers_are_not_used_again(hall: Hall) -> None:
    first = await hall.started("first")
    outcomes = [await first.new("ann", n, "ACME") for n in range(1, 7)]
    await first.outbox.flush()
    await lose_tail(hall, first, 4)
    first.kill()

    second = await hall.takes_over("second")

    assert second.keeping.lost_commands == 4
    number = outcomes[0].shard
    assert second.keeping.status(second.shard_of("ACME"))["lost"] == 4
    assert second.shard_of("ACME").epoch > outcomes[-1].epoch
    assert (await second.new("ann", 100, "ACME")).seq > outcomes[-1].seq
    assert second.keeping.kept[number].mismatches == 0


async def test_g16_what_the_log_has_lost_is_not_said_to_be_open_by_the_database(hall: Hall) -> None:
    """An order that only the database knows is marked there; one that the log knows is as the log has it."""
    first = await hall.started("first")
    kept, other = await first.new("ann", 1, "ACME"), await first.new("ann", 2, "ACME")
    await first.cancel("ann", 3, kept.order_id, "ACME")
    gone = await first.new("ann", 4, "ACME")
    await first.outbox.flush()
    await lose_tail(hall, first, 2)
    first.kill()

    second = await hall.takes_over("second")
    await second.outbox.flush()

    states = {order_id: row.state for order_id, row in hall.ledger.rows.items()}
    assert states == {kept.order_id: State.OPEN, other.order_id: State.OPEN, gone.order_id: LOST}
    assert (await second.cancel("ann", 5, kept.order_id, "ACME")).state == State.CANCELLED
    await second.outbox.flush()
    assert hall.ledger.rows[kept.order_id].state == State.CANCELLED


@pytest.mark.parametrize("is_moved", [False, True])
async def test_g15_ids_that_only_the_database_knows_are_not_used_again(hall: Hall, is_moved: bool) -> None:
    """The store comes back empty, on a host whose clock is behind: it has neither log nor mark."""
    first = await hall.started("first")
    made = [await first.new("ann", n, "ACME") for n in range(1, 4)]
    await first.outbox.flush()
    before = dict(hall.ledger.rows)
    if is_moved:  # the symbol has left: its new shard wrote the rows
        other = (made[0].shard + 1) % SHARDS
        hall.ledger.rows = {order_id: row._replace(shard=other) for order_id, row in before.items()}
    first.kill()
    await hall.store.call("FLUSHALL")
    hall.time.now_us -= BEHIND_S * 1_000_000

    second = await hall.takes_over("second")
    refused = await second.ask(Method.NEW, New("ann", 11, 0, "ACME", Side.BUY, 10, 5))
    assert b"CLOCK_BEHIND" in refused.payload
    hall.time.now_us += BEHIND_S * 1_000_000
    await second.ownership.step()
    again = [await second.new("ann", n, "ACME") for n in range(12, 15)]
    await second.outbox.flush()

    assert min(order.order_id for order in again) > max(order.order_id for order in made)
    assert {hall.ledger.rows[order.order_id].state for order in again} == {State.OPEN}
    if not is_moved:
        assert {hall.ledger.rows[order_id].state for order_id in before} == {LOST}


async def test_g15_ids_of_the_database_that_are_older_than_now_or_of_another_shard_hold_up_nothing(
    hall: Hall,
) -> None:
    number = cast(int, hall.table.of("ACME")[0])
    later = hall.time.now_ms(0) + 3_600_000
    server = await hall.started("first", wanted=[number])
    order = await server.new("ann", 1, "ACME")
    await server.outbox.flush()
    foreign = pack(later, (number + 1) % SHARDS, 0, 0)
    hall.ledger.rows[foreign] = hall.ledger.rows[order.order_id]._replace(order_id=foreign)
    server.kill()

    second = await hall.takes_over("second", wanted=[number])

    assert (await second.new("ann", 2, "ACME")).order_id > order.order_id


async def test_fills_after_a_loss_are_not_taken_for_those_that_were_lost(hall: Hall) -> None:
    """Whoever has seen lost ones would pass over as many new ones, which have their numbers."""
    first = await hall.started("first")
    await trade(first, 1, 6)
    await first.outbox.flush()
    number = first.shard_of("ACME").number
    seen, told = first.engine_of("ACME").events_after("a3", 0, 10_000)
    assert (seen, len(told)) == (0, 1)
    await lose_tail(hall, first, 5)
    first.kill()
    second = await hall.takes_over("second")
    await trade(second, 7, 12)

    after, events = second.engine_of("ACME").events_after("a3", 1, 10_000)

    assert after > 1  # a gap, and then those that are there
    assert all(decode_event(event).number > after for event in events)
    digest = second.engine_of("ACME").digest()
    second.kill()
    third = await hall.takes_over("third")
    assert third.keeping.kept[number].mismatches == 0
    assert third.engine_of("ACME").digest() == digest


async def test_the_log_is_not_cut_above_what_the_database_has(hall: Hall) -> None:
    first = await hall.started("first")
    number = (await first.new("ann", 1, "ACME")).shard
    await first.outbox.flush()
    hall.ledger.is_away = True
    await trade(first, 2, 9)
    await first.snapshot()
    assert [entry.seq for entry in await hall.entries(number)][:2] == [
        3,
        4,
    ]  # the takeover, and an order that it has, are cut
    hall.ledger.is_away = False

    await first.outbox.flush()
    await first.snapshot()
    await trade(first, 10, 10)
    await first.snapshot()

    assert [entry.seq for entry in await hall.entries(number)] in ([11], [10, 11])


async def with_more_closed_than_kept(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> tuple[Server, set[int]]:
    """A server that is due to take a snapshot, and the orders that it has closed."""
    monkeypatch.setattr(closed, "MAX_CLOSED", closed.IN_A_PART)
    number = cast(int, hall.table.of("ACME")[0])
    server = await hall.started("first", wanted=[number], snapshot_commands=100)
    count = closed.IN_A_PART + 50
    sent = [
        server.send(Method.NEW, New("ann", n, 0, "ACME", Side.BUY, 10, 5, immediate=True))
        for n in range(1, count + 1)
    ]
    answers = [await server.answer_to(request) for request in sent]
    return server, {decode_outcome(answer.payload).order_id for answer in answers}


async def test_no_row_is_lost_by_a_snapshot_of_fewer_closed_orders_than_the_database_lacks(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, orders = await with_more_closed_than_kept(hall, monkeypatch)
    hall.ledger.is_away = True
    with suppress(StoreUnavailable):
        await server.keeping.step()
    server.kill()
    hall.ledger.is_away = False

    second = await hall.takes_over("second")
    await second.outbox.flush()

    assert {row.order_id for row in hall.ledger.rows.values() if row.state == State.CANCELLED} == orders


async def test_a_snapshot_that_would_be_ahead_of_the_database_has_it_written_first(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast orders are closed, snapshots are taken and the log is cut."""
    server, orders = await with_more_closed_than_kept(hall, monkeypatch)

    await server.keeping.step()

    (kept,) = server.keeping.kept.values()
    assert kept.seq == kept.shard.seq
    assert set(hall.ledger.rows) == orders


async def test_rows_that_the_database_lacks_are_written_by_the_next_owner(hall: Hall) -> None:
    """Also those of commands that the snapshot has."""
    first = await hall.started("first")
    hall.ledger.is_away = True
    early = await first.new("ann", 1, "ACME")
    await first.snapshot()
    late = await first.new("ann", 2, "ACME")
    first.kill()
    hall.ledger.is_away = False

    second = await hall.takes_over("second")
    await second.outbox.flush()

    assert {early.order_id, late.order_id} <= set(hall.ledger.rows)


async def test_a_row_below_one_that_was_written_is_written_too(hall: Hall) -> None:
    first = await hall.started("first")
    early, late = await first.new("ann", 1, "ACME"), await first.new("ann", 2, "ACME")
    await first.outbox.flush()
    del hall.ledger.rows[early.order_id]  # its batch was another one
    first.kill()

    second = await hall.takes_over("second")
    await second.outbox.flush()

    assert {early.order_id, late.order_id} == set(hall.ledger.rows)


async def test_two_snapshots_at_once_lose_no_part(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ends between the moment when the other takes the parts out and the moment when it sends them."""
    first = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    await first.new("ann", 1, "ACME")
    shard = first.shard_of("ACME")
    snapshots = first.keeping.kept[shard.number].snapshots
    is_saved, goes_on = asyncio.Event(), asyncio.Event()
    save = snapshots.save

    async def slow(*args: Any, **named: Any) -> Any:
        answer = await save(*args, **named)
        is_saved.set()
        await goes_on.wait()
        return answer

    monkeypatch.setattr(snapshots, "save", slow)
    one = asyncio.create_task(first.snapshot())
    await is_saved.wait()
    first.faults.extend(["request lost"] * 3)
    first.send(Method.NEW, New("bob", 1, 0, "ACME", Side.BUY, 10, 5))
    await eventually(lambda: shard.seq > shard.commits.seq, "it is executed")
    other = asyncio.create_task(first.snapshot())
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(one, other)
    await first.quiet()
    digest = shard.machine.digest()
    first.kill()

    second = await hall.takes_over("second")

    assert second.keeping.mismatches == 0
    assert second.engine_of("ACME").digest() == digest


async def test_g15_ids_of_a_new_owner_are_above_those_of_the_dead_one(hall: Hall) -> None:
    first = await hall.started("first")
    hall.time.skew_ms = 4_000
    before = await first.new("ann", 1, "ACME")
    first.kill()
    hall.time.skew_ms = -10_000

    second = await hall.takes_over("second")
    refused = await second.ask(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))
    assert refused.code  # CLOCK_BEHIND, visibly
    hall.time.skew_ms = 0

    async def is_above() -> bool:
        await hall.pass_s(1)
        await second.ownership.step()
        answer = await second.ask(Method.NEW, New("ann", 3, 0, "ACME", Side.BUY, 10, 5))
        return not answer.code

    await eventually(is_above, "an id")
    assert (await second.new("ann", 3, "ACME")).order_id > before.order_id


async def test_a_snapshot_is_never_ahead_of_the_log(hall: Hall) -> None:
    """What a snapshot has and no log will ever have would be carried out, and nobody was told."""
    first = await hall.started("first")
    await first.new("ann", 1, "ACME")
    shard = first.shard_of("ACME")
    first.faults.append("request hangs")
    first.send(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))
    await eventually(lambda: shard.seq > shard.commits.seq, "it is executed")

    writing = asyncio.create_task(first.snapshot())
    await asyncio.wait([writing], timeout=0.3)
    writing.cancel()

    key = shard_keys(hall.store.keys, shard_scope(shard.number))["snapshot"]
    kept = await hall.store.call("HGET", key, "@seq", key=key)
    assert int(kept or 0) <= shard.commits.seq
