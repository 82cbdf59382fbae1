"""Lanes as operators see them: places, shards, advice, ids, orders. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from roost.api.orders import (
    AdviceView,
    HaltReply,
    IdView,
    MoveAdvice,
    OrderView,
    PlacementView,
    PlaceView,
    ShardStatus,
    ShardView,
    SpotView,
)
from roost.core.errors import InvalidId
from roost.lanes.advice import Advice, Move
from roost.lanes.commands import Durability, Outcome, Side, Standing, State
from roost.lanes.explain import explain
from roost.lanes.ids import LAUNCHED_MS, is_plausible, unpack
from roost.lanes.placement import Moving, Place, Table
from roost.lanes.scripts import Shard
from roost.lanes.selector import Spot

MAX_DIGITS = 19
STATES: dict[int, Literal["open", "filled", "cancelled"]] = {
    State.OPEN: "open",
    State.FILLED: "filled",
    State.CANCELLED: "cancelled",
}

_decode_status = msgspec.json.Decoder(ShardStatus).decode


def parse_id(text: str) -> int:
    """An order id as people and JSON write it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise InvalidId(f"{text[:40]!r} is no order id: they have at most {MAX_DIGITS} digits")
    return int(text)


def id_view(number: int, now_ms: int, launched_ms: int = LAUNCHED_MS) -> IdView:
    parts = unpack(number)
    made_at = datetime.fromtimestamp(parts.ms / 1000, UTC).isoformat(timespec="milliseconds")
    return IdView(
        id=str(number),
        said=explain(number, now_ms, launched_ms),
        plausible=is_plausible(number, now_ms, launched_ms),
        shard=parts.shard,
        lane=parts.lane,
        made_at=made_at.replace("+00:00", "Z"),
        sequence=parts.sequence,
    )


def place_view(table: Table, symbol: str, owners: Mapping[int, Shard] | None = None) -> PlaceView:
    found = table.of(symbol)
    if isinstance(found, Moving):
        source, target = found.source, found.target
        view = PlaceView(symbol, "moving", source.shard, source.lane, table.version, _spot(target))
        view.move_id = found.move_id
    elif isinstance(found, Place):
        how: Literal["pinned", "hash"] = "pinned" if symbol in table.pins else "hash"
        view = PlaceView(symbol, how, found.shard, found.lane, table.version)
    else:
        return PlaceView(symbol, "unreadable", -1, -1, table.version, record=found.record)
    owner = (owners or {}).get(view.shard)
    if owner is not None and is_owned(owner):
        view.owner, view.address = owner.server, owner.address
    return view


def placement_view(table: Table) -> PlacementView:
    named = sorted({*table.pins, *table.unreadable})
    return PlacementView(table.version, table.selector, [place_view(table, symbol) for symbol in named])


def is_owned(shard: Shard) -> bool:
    return bool(shard.holder) and shard.left_ms > 0


def shard_view(number: int, shard: Shard) -> ShardView:
    owned = is_owned(shard)
    return ShardView(
        shard=number,
        owner=shard.server if owned else "",
        address=shard.address if owned else "",
        epoch=shard.epoch,
        lease_left_ms=shard.left_ms,
        status=status_of(shard.status),
    )


def status_of(text: str) -> ShardStatus:
    """What an owner told of itself; of one that told nothing, or nothing that can be read, zeros."""
    try:
        return _decode_status(text.encode()) if text else ShardStatus()
    except (msgspec.MsgspecError, UnicodeError):
        return ShardStatus()


def advice_view(advice: Advice, unowned: Sequence[int]) -> AdviceView:
    return AdviceView(
        moves=[_move(move) for move in advice.moves],
        before=round(advice.before, 3),
        after=round(advice.after, 3),
        hottest=advice.hottest,
        ceiling=round(advice.ceiling, 3),
        unowned=list(unowned),
    )


def order_view(found: Standing, account: str) -> OrderView:
    return OrderView(
        id=str(found.order_id),
        account=account,
        symbol=found.symbol,
        state=STATES[found.state],
        side="buy" if found.side == Side.BUY else "sell",
        price=found.price,
        quantity=found.quantity,
        remaining=found.remaining,
        shard=found.shard,
        seq=found.seq,
    )


def halt_view(symbol: str, halted: bool, why: str, outcome: Outcome) -> HaltReply:
    return HaltReply(
        symbol=symbol,
        halted=halted,
        why=why,
        shard=outcome.shard,
        lane=outcome.lane,
        epoch=outcome.epoch,
        seq=outcome.seq,
        durability=Durability(outcome.durability).word,
    )


def _move(move: Move) -> MoveAdvice:
    return MoveAdvice(move.symbol, round(move.rate, 1), _spot(move.source), _spot(move.target))


def _spot(spot: Spot) -> SpotView:
    return SpotView(spot.shard, spot.lane)
