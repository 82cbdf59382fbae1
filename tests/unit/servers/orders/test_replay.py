"""One symbol at any command of its log."""

from __future__ import annotations

import json

import msgspec

from roost.api.orders import BookView
from roost.lanes.commands import Batch, Method, New, Side, encode
from roost.servers.orders.replay import replay_symbol
from tests.unit.servers.orders.desk import EPOCH, SHARD, Desk


def evening() -> Desk:
    desk = Desk()
    desk.buy("ann", 100, 5)
    desk.buy("bob", 100, 2)
    desk.sell("cid", 103, 4)
    desk.buy("ann", 70, 1, symbol="OTHER")
    desk.sell("cid", 100, 6)
    desk.halt("ACME")
    return desk


def sides(view: BookView) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return (
        [(level.price, level.quantity) for level in view.bids],
        [(level.price, level.quantity) for level in view.asks],
    )


def test_the_book_stands_as_it_stood_at_the_command() -> None:
    entries = evening().entries

    assert sides(replay_symbol(entries, "ACME", 2, {}, shard=SHARD)) == ([(100, 7)], [])
    assert sides(replay_symbol(entries, "ACME", 4, {}, shard=SHARD)) == ([(100, 7)], [(103, 4)])
    at_five = replay_symbol(entries, "ACME", 5, {}, shard=SHARD)
    assert sides(at_five) == ([(100, 1)], [(103, 4)])
    assert (at_five.seq, at_five.at_ms, at_five.halted) == (5, 1_005, None)
    assert replay_symbol(entries, "ACME", 99, {}, shard=SHARD).halted == "news"
    assert sides(replay_symbol(entries, "NEVER", 99, {}, shard=SHARD)) == ([], [])


def test_it_may_begin_at_a_snapshot() -> None:
    desk = evening()
    start = Desk()
    for _, _, batch in desk.entries[:3]:
        [(method, _, order_id, payload)] = batch.commands
        start.run(method, msgspec.msgpack.decode(payload, type=New), order_id)
    start.collect()

    from_snapshot = replay_symbol(desk.entries[3:], "ACME", 5, start.parts, shard=SHARD)

    assert from_snapshot == replay_symbol(desk.entries, "ACME", 5, {}, shard=SHARD)


def test_a_batch_is_cut_at_the_command() -> None:
    commands = [
        (int(Method.NEW), 7, 10 + number, encode(New("ann", number, 0, "ACME", Side.BUY, 100, 1)))
        for number in (1, 2, 3)
    ]
    batch = Batch(5, 1, commands)

    assert sides(replay_symbol([(EPOCH, 8, batch)], "ACME", 9, {})) == ([(100, 2)], [])


def test_ids_are_text_in_json() -> None:
    view = replay_symbol(evening().entries, "ACME", 3, {}, shard=SHARD)

    read = json.loads(msgspec.json.encode(view))

    assert read["bids"][0]["orders"][0]["orderId"] == "380104982312345601"
    assert [order["account"] for order in read["bids"][0]["orders"]] == ["ann", "bob"]


def test_a_symbol_that_left_says_where_to() -> None:
    desk = evening()
    desk.move_out("ACME", "m1", 9, lane=4)

    view = replay_symbol(desk.entries, "ACME", desk.seq, {}, shard=SHARD)

    assert view.moved_to == "9/4"
    assert sides(view) == ([], [])


def test_a_command_at_which_the_machine_failed_is_counted_and_changes_nothing() -> None:
    desk = evening()
    _, _, first = desk.entries[0]
    broken = [*desk.entries[:2], (EPOCH, 3, Batch(9, 1, [(int(Method.MOVE_IN), 7, 0, first.commands[0][3])]))]

    view = replay_symbol(broken, "ACME", 3, {}, shard=SHARD)

    assert (view.failed, view.seq) == (1, 3)
    assert sides(view) == ([(100, 7)], [])
