"""Owners of shards come and go: what was answered stays, and nobody else can write."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import NoReturn, cast

import msgspec
import pytest

from roost.core.errors import StoreUnavailable
from roost.lanes.commands import (
    SERVICE,
    Follow,
    Method,
    New,
    Places,
    Query,
    Reason,
    Side,
    State,
    decode_event,
    decode_outcome,
    decode_standing,
    encode,
)
from roost.lanes.fill_cursor import decode_followed
from roost.lanes.ids import SHARDS
from roost.lanes.owner import FIRST_PAUSE_S, GIVE_UP_AFTER, MAX_PAUSE_S
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.lanes.snapshots import Snapshots
from roost.servers.orders.relocation import Relocation
from roost.testing import eventually
from roost.wire.codes import Code
from roost.wire.connection import Call, Connection, call_of
from roost.wire.frame import Frame
from roost.wire.pool import Pool
from tests.store.lanes.hall import TTL_MS, Hall, HallPlacements, Ledger, Peers, Server
from tests.store.lanes.test_committing import lose_tail


async def test_g16_a_new_owner_knows_what_the_dead_one_answered(any_hall: Hall) -> None:
    first = await any_hall.started("first")
    order = await first.new("ann", 1, "ACME")
    first.kill()

    second = await any_hall.takes_over("second", workers=3)

    again = await second.new("ann", 1, "ACME")
    assert again == order
    other = await second.outcome(Method.NEW, New("ann", 1, 0, "ACME", Side.BUY, 10, 6))
    assert other.reason == Reason.DUPLICATE
    gone = await second.cancel("ann", 2, order.order_id)
    assert (gone.state, gone.lane, gone.epoch > order.epoch) == (State.CANCELLED, order.lane, True)


async def test_a_zombie_appends_nothing_after_a_takeover(any_hall: Hall) -> None:
    first = await any_hall.started("first")
    await first.new("ann", 1, "ACME")
    number = first.shard_of("ACME").number
    second = await any_hall.takes_over("second")
    before = await any_hall.entries(number)

    late = await first.ask(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))

    assert late.code == Code.DEADLINE  # it cannot know
    assert await any_hall.entries(number) == before
    assert not first.keeping.kept[number].shard.serves
    assert (await second.new("ann", 2, "ACME")).seq == before[-1].last_seq + 1


async def test_an_owner_that_slept_past_its_lease_gives_up_before_it_asks(hall: Hall) -> None:
    first = await hall.started("first")
    await first.new("ann", 1, "ACME")
    await hall.takes_over("second")

    await first.ownership.step()

    assert not first.ownership.owned
    assert first.ownership.address_of(3) == "second:1"
    refused = await first.ask(Method.QUERY, Query("ann", 0, 1, "ACME"))
    assert refused.code == Code.NOT_OWNER


async def test_a_query_is_refused_when_the_lease_is_over(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    assert not (await server.ask(Method.QUERY, Query("ann", order.order_id))).code

    await hall.pass_s(TTL_MS / 1000)

    assert (await server.ask(Method.QUERY, Query("ann", order.order_id))).code == Code.NOT_OWNER


def asked(server: Server, method: Method, payload: bytes = b"") -> Call:
    return call_of(Frame(0, SERVICE, method, 0, 0, 1, 0, payload), cast(Connection, server.trader))


async def test_nobody_follows_at_an_owner_whose_lease_is_over(hall: Hall) -> None:
    """What the next owner has told since would look like fills that were lost, and be told again."""
    server = await hall.started("first", wanted=[3])
    heard = asked(server, Method.FOLLOW, encode(Follow("ann", {3: 7})))
    answer = server.reading.follow(heard)
    assert answer is not None
    assert decode_followed(answer.payload) == ([3], {3: 0})

    await hall.pass_s(TTL_MS / 1000)

    answer = server.reading.follow(heard)
    assert answer is not None
    assert decode_followed(answer.payload) == ([], {})


async def test_an_owner_whose_lease_is_over_claims_no_shard(hall: Hall) -> None:
    server = await hall.started("first", wanted=[3])

    def owners() -> dict[int, str]:
        said = server.reading.places(asked(server, Method.PLACES))
        return msgspec.msgpack.decode(said.payload, type=Places).owners

    assert owners() == {3: "first:1"}
    await hall.pass_s(TTL_MS / 1000)
    assert owners() == {}


async def test_a_query_by_id_alone_is_told_the_symbol_of_an_order_that_left_with_its_book(hall: Hall) -> None:
    """Whoever asks then asks by the symbol, and needs no index, which is written later."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    placements, shard = HallPlacements(hall), (order.shard + 1) % SHARDS
    placements.use(hall.table.with_move("ACME", Spot(shard, 7), "m1"))

    moving = Relocation(server.host, server.ownership, cast(Placements, placements), cast(Pool, Peers(hall)))
    await moving.step()

    said = decode_standing((await server.ask(Method.QUERY, Query("ann", order.order_id))).payload)
    assert (said.reason, said.symbol) == (Reason.MOVED, "ACME")
    found = await server.ask(Method.QUERY, Query("ann", order.order_id, 0, said.symbol))
    assert (decode_standing(found.payload).state, decode_standing(found.payload).shard) == (State.OPEN, shard)


async def test_a_query_that_waited_for_a_lost_shard_is_refused(hall: Hall) -> None:
    server = await hall.started("first")
    server.faults.append("request hangs")
    server.send(Method.NEW, New("ann", 1, 0, "ACME", Side.BUY, 10, 5))
    shard = server.shard_of("ACME")
    await eventually(lambda: not shard.commits.is_idle, "an entry under way")
    query = server.send(Method.QUERY, Query("ann", 0, 1, "ACME"))

    shard.commits.end("for the test")

    assert (await server.answer_to(query)).code == Code.NOT_OWNER


async def test_two_candidates_never_own_the_same_shard(hall: Hall) -> None:
    first, second = hall.server("first"), hall.server("second")
    for _ in range(3):
        await first.ownership.step()
        await second.ownership.step()
        await hall.pass_s(1)

    assert len(first.ownership.owned) == 16
    assert not second.ownership.owned


async def test_a_hand_over_loses_nothing(hall: Hall) -> None:
    first, second = await hall.started("first"), hall.server("second", wanted=())
    sent = [first.send(Method.NEW, New("ann", n, 0, f"S{n}", Side.BUY, 10, 5)) for n in range(1, 41)]
    answers = [await first.answer_to(request) for request in sent]
    assert not any(answer.code for answer in answers)

    first.wanted, second.wanted = (), range(16)
    await first.ownership.step()
    await second.ownership.step()

    assert len(second.ownership.owned) == 16
    assert second.keeping.lost_commands == second.keeping.mismatches == 0
    again = [await second.ask(Method.NEW, New("ann", n, 0, f"S{n}", Side.BUY, 10, 5)) for n in range(1, 41)]
    assert again == answers


async def test_a_store_that_forgot_everything_gets_the_state_back_from_memory(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    digest = server.engine_of("ACME").digest()

    await hall.store.call("FLUSHALL")
    await server.ownership.step()
    await server.ownership.step()

    assert server.engine_of("ACME").digest() == digest
    server.kill()
    second = await hall.takes_over("second")
    assert second.keeping.mismatches == 0
    assert (await second.new("ann", 1, "ACME")) == order
    assert (await second.cancel("ann", 2, order.order_id)).state == State.CANCELLED


async def test_commands_on_their_way_when_the_store_forgot_everything_are_not_denied(hall: Hall) -> None:
    """Their memory is kept, so they happened: nobody may hear that they did not."""
    server = await hall.started("first")
    await server.new("ann", 1, "ACME")
    await hall.store.call("FLUSHALL")

    answer = await server.ask(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))
    for _ in range(3):
        await server.ownership.step()

    assert answer.code in (Code.OK, Code.DEADLINE)
    again = await server.new("ann", 2, "ACME")
    assert again.state == State.OPEN
    book = server.engine_of("ACME").book("ACME")
    assert book is not None
    assert len(list(book)) == 2


async def test_a_shard_whose_log_is_over_is_taken_over_again(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    shard = server.shard_of("ACME")

    shard.commits.end("the store refuses its log: OOM", keeps_memory=True)
    for _ in range(2):
        await server.ownership.step()

    assert server.shard_of("ACME").epoch > shard.epoch
    assert (await server.new("ann", 1, "ACME")) == order


async def no_snapshot(*_: object, **__: object) -> NoReturn:
    raise StoreUnavailable("no snapshot is taken")


async def test_g16_a_shard_that_is_taken_back_serves_once_its_memory_is_written(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what it answers meanwhile stands in a log that no replay can build on."""
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    orders = [await server.new("ann", 1, "ACME")]
    await hall.store.call("FLUSHALL")

    with monkeypatch.context() as without:
        without.setattr(Snapshots, "save", no_snapshot)
        for _ in range(2):
            await server.ownership.step()
        refused = await server.ask(Method.NEW, New("ann", 2, 0, "ACME", Side.BUY, 10, 5))
    await server.keeping.step()
    orders.append(await server.new("ann", 2, "ACME"))
    server.kill()

    assert refused.code == Code.NOT_OWNER
    second = await hall.takes_over("second")
    assert [await second.new("ann", n, "ACME") for n in (1, 2)] == orders
    assert second.keeping.mismatches == 0


async def test_a_shard_whose_memory_is_not_written_is_not_handed_over(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    order = await server.new("ann", 1, "ACME")
    await hall.store.call("FLUSHALL")

    with monkeypatch.context() as without:
        without.setattr(Snapshots, "save", no_snapshot)
        for _ in range(2):
            await server.ownership.step()
        server.wanted = ()
        with pytest.raises(StoreUnavailable):
            await server.ownership.step()
    await server.ownership.step()

    second = await hall.started("second")
    assert (await second.new("ann", 1, "ACME")) == order


@pytest.mark.parametrize("times", [1, 2])
async def test_fills_of_a_turn_that_was_under_way_when_the_store_forgot_everything_are_told(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Those who follow stay connected: nobody asks for them."""
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    server.host.sessions.follow("ann", cast(Connection, server.trader))
    await server.new("ann", 1, "ACME")
    server.faults.append("request hangs")
    server.send(Method.NEW, New("bob", 1, 0, "ACME", Side.SELL, 10, 5))
    await eventually(lambda: not server.shard_of("ACME").commits.is_idle, "an entry under way")

    for _ in range(times - 1):
        await hall.store.call("FLUSHALL")
        with monkeypatch.context() as without:
            without.setattr(Snapshots, "save", no_snapshot)
            for _ in range(2):
                await server.ownership.step()
        assert not server.trader.pushes
    await hall.store.call("FLUSHALL")
    for _ in range(3):
        await server.ownership.step()

    told = [decode_event(event) for event in server.trader.pushes]
    assert [(event.account, event.number, event.quantity) for event in told] == [("ann", 1, 5)]


async def test_an_epoch_whose_log_is_over_is_not_used_again_when_it_could_not_be_given_up(
    hall: Hall,
) -> None:
    """What was sent under it may still arrive: the next numbers must be of another."""
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    shard = server.shard_of("ACME")
    shard.commits.end("the store refuses its log: OOM", keeps_memory=True)
    hall.time.no_resigns = True
    with pytest.raises(StoreUnavailable):
        await server.ownership.step()
    hall.time.no_resigns = False

    for _ in range(2):
        await server.ownership.step()

    assert server.shard_of("ACME").epoch > shard.epoch
    assert (await server.new("ann", 1, "ACME")) == order
    entries = await hall.entries(shard.number)
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})


async def test_g16_an_owner_whose_lease_ran_out_with_a_store_that_lost_entries_heals_them(
    hall: Hall,
) -> None:
    """A failover may take longer than the owner may act: what it remembers is worth as much after it."""
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    orders = [await server.new("ann", n, "ACME") for n in (1, 2, 3)]
    before = server.shard_of("ACME")
    hall.time.store_is_away = True
    await hall.pass_s(TTL_MS / 1000)
    with pytest.raises(StoreUnavailable):
        await server.ownership.step()
    hall.time.store_is_away = False
    assert not server.ownership.owned
    await lose_tail(hall, server, 2, before.number)

    for _ in range(2):
        await server.ownership.step()

    assert server.shard_of("ACME").epoch > before.epoch
    assert [await server.new("ann", n, "ACME") for n in (1, 2, 3)] == orders
    server.kill()
    second = await hall.takes_over("second")
    assert [await second.new("ann", n, "ACME") for n in (1, 2, 3)] == orders
    assert second.keeping.lost_commands == second.keeping.mismatches == 0


async def test_a_lease_ends_also_while_nobody_knows_who_should_own_what(hall: Hall) -> None:
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    shard = server.shard_of("ACME")
    hall.time.no_discovery = True

    await hall.pass_s(TTL_MS / 1000)
    with pytest.raises(StoreUnavailable):
        await server.ownership.step()

    assert not shard.serves
    assert not server.ownership.owned
    assert not server.host.shards


async def test_a_takeover_that_takes_long_does_not_hold_up_renewals(hall: Hall) -> None:
    server = await hall.started("first", wanted=[1])
    held = hall.ledger.hold()
    server.wanted = [1, 2]
    async with asyncio.timeout(30):  # a step that waits for the takeover waits for ever
        for _ in range(2):
            await server.ownership.step()
            await hall.pass_s(3)
        await server.ownership.step()

    assert server.ownership.holds(1)
    held.set_result(None)
    await eventually(lambda: 2 in server.host.routes.shards, "the other shard")


async def test_a_hand_over_that_takes_long_does_not_hold_up_renewals_nor_its_own(hall: Hall) -> None:
    symbol = "ACME"
    number = cast(int, hall.table.of(symbol)[0])
    other = (number + 1) % SHARDS
    server = await hall.started("first", wanted=[number, other])
    server.faults.append("request hangs")
    server.send(Method.NEW, New("ann", 1, 0, symbol, Side.BUY, 10, 5))
    shard = server.shard_of(symbol)
    await eventually(lambda: not shard.commits.is_idle, "an entry under way")

    server.wanted = [other]
    async with asyncio.timeout(30):  # a step that waits for the hand-over waits for ever
        await server.ownership.step()
        await hall.pass_s(3)
        await server.ownership.step()
        await hall.pass_s(3)
        await server.ownership.step()

    assert server.ownership.holds(other)
    assert number not in server.host.routes.shards

    async def is_renewed() -> bool:
        seen = await hall.scripts(number).look(max_step_ms=TTL_MS, now=hall.time.now_us)
        return bool(seen.left_ms > TTL_MS - 3000)

    await eventually(is_renewed, "the lease of the shard that is being handed over")
    shard.commits.end("for the test")
    await server.ownership.step()
    assert list(server.ownership.owned) == [other]


async def test_a_server_that_leaves_gives_up_what_expires_meanwhile(hall: Hall) -> None:
    """Its next owner need not wait for the end of the lease."""
    number = cast(int, hall.table.of("ACME")[0])
    server = await hall.started("first", wanted=[number])
    server.faults.append("request hangs")
    server.send(Method.NEW, New("ann", 1, 0, "ACME", Side.BUY, 10, 5))
    shard = server.shard_of("ACME")
    await eventually(lambda: not shard.commits.is_idle, "an entry under way")
    leaving = asyncio.create_task(server.ownership.leave())
    await eventually(lambda: number not in server.host.routes.shards, "a hand-over that waits")

    await hall.pass_s(TTL_MS / 1000)
    hall.time.store_is_away = True  # nothing is renewed
    await asyncio.gather(server.ownership.step(), return_exceptions=True)
    hall.time.store_is_away = False
    async with asyncio.timeout(30):
        await leaving

    second = await hall.started("second", wanted=[number])
    assert list(second.ownership.owned) == [number]


async def without_database(hall: Hall, shards: Collection[int]) -> tuple[Server, Ledger]:
    """A server that owns shard 1, has lost its way to the database and should own these too."""
    ledger = Ledger()
    server = await hall.started("first", wanted=[1], ledger=ledger)
    ledger.is_away = True
    server.wanted = [1, *shards]
    return server, ledger


async def steps(hall: Hall, server: Server, seconds: int) -> None:
    """A step each second, whatever fails in it."""
    for _ in range(seconds):
        await asyncio.gather(server.ownership.step(), return_exceptions=True)
        await hall.pass_s(1)


async def test_a_shard_at_which_takeovers_keep_failing_is_left_to_a_server_that_can(hall: Hall) -> None:
    first, _ = await without_database(hall, [2, 3])

    await steps(hall, first, GIVE_UP_AFTER + 1)
    second = await hall.started("second", wanted=[2, 3])

    assert sorted(second.ownership.owned) == [2, 3]
    assert first.ownership.holds(1)
    assert "database is away" in first.ownership.failing[2].reason
    for _ in range(int(FIRST_PAUSE_S) + 1):
        await second.ownership.step()
        await steps(hall, first, 1)
    assert not first.ownership.failing, "another has them"
    assert first.ownership.address_of(2) == "second:1"
    assert first.ownership.holds(1)


async def test_a_shard_that_nobody_else_takes_is_tried_again_after_pauses_that_grow(hall: Hall) -> None:
    server, ledger = await without_database(hall, [2])
    await steps(hall, server, 200)
    tried = server.ownership.takeover_faults
    assert 3 * GIVE_UP_AFTER < tried < 200 / MAX_PAUSE_S * (GIVE_UP_AFTER + 1) + 3 * GIVE_UP_AFTER

    ledger.is_away = False
    await steps(hall, server, int(MAX_PAUSE_S) + 2)

    assert sorted(server.ownership.owned) == [1, 2]
    assert not server.ownership.failing
    assert server.ownership.takeover_faults == tried


async def test_a_shard_that_failed_and_is_not_wanted_any_more_is_free_at_once(hall: Hall) -> None:
    first, _ = await without_database(hall, [2])
    await steps(hall, first, 1)

    first.wanted = [1]
    await steps(hall, first, 1)
    second = await hall.started("second", wanted=[2])

    assert list(second.ownership.owned) == [2]
    assert not first.ownership.failing


async def test_g16_memory_that_the_store_may_lack_is_not_given_up_for_takeovers_that_fail(hall: Hall) -> None:
    """Another owner would find the log as the store lost it."""
    number = cast(int, hall.table.of("ACME")[0])
    ledger = Ledger()
    first = await hall.started("first", wanted=[number], ledger=ledger)
    order = await first.new("ann", 1, "ACME")
    await hall.store.call("FLUSHALL")
    ledger.is_away = True

    second = hall.server("second", wanted=[number])
    for _ in range(3 * GIVE_UP_AFTER):
        await steps(hall, first, 1)
        await second.ownership.step()
    assert not second.ownership.owned
    assert list(first.ownership.failing) == [number]

    ledger.is_away = False
    await steps(hall, first, 2)
    assert (await first.new("ann", 1, "ACME")) == order


async def test_memory_is_not_forgotten_by_an_attempt_that_failed(hall: Hall) -> None:
    server = await hall.started("first")
    order = await server.new("ann", 1, "ACME")
    await hall.store.call("FLUSHALL")
    hall.ledger.is_away = True
    try:
        await server.ownership.step()
    except Exception:
        pass
    hall.ledger.is_away = False

    await server.ownership.step()
    await server.ownership.step()

    assert (await server.new("ann", 1, "ACME")) == order


async def test_g15_ids_before_the_first_renewal_are_not_made_again_when_log_and_owner_are_lost(
    hall: Hall,
) -> None:
    """A new owner begins at the mark, ahead of the time, and dies with its log's tail before it renews."""

    async def next_owner(name: str) -> Server:
        server = hall.server(name, wanted=[hall.table.of("ACME")[0]])
        while not server.ownership.owned:
            await hall.pass_s(1)
            await server.ownership.step()
        return server

    first = await next_owner("first")
    await first.ownership.step()
    first.kill()
    second = await next_owner("second")
    await hall.pass_s(2)
    given = [await second.new("ann", n, "ACME") for n in (1, 2)]
    await lose_tail(hall, second, 2)
    second.kill()

    third = await next_owner("third")
    hall.time.skew_ms = -6_000  # a clock that was set back
    again = [await third.ask(Method.NEW, New("ann", n, 0, "ACME", Side.BUY, 10, 5)) for n in (1, 2)]

    ids = {outcome.order_id for outcome in given}
    assert not ids & {decode_outcome(answer.payload).order_id for answer in again if not answer.code}
