"""What people see of ordered work: shards, places, advice, orders, books."""

from __future__ import annotations

from collections.abc import Iterator

from roost.api.orders import (
    AdviceView,
    BookView,
    HaltReply,
    IdView,
    LevelView,
    OrderView,
    PlacedReply,
    PlacementView,
    PlaceView,
    ShardList,
    ShardView,
)
from roost.cli.tables import Cell, Column, Part, Styled, Table

HOT_SHOWN = 3
LEVELS_SHOWN = 10
REASONS_SHOWN = 4
NOBODY = Styled("nobody", "red")


def view_shards(found: ShardList) -> Iterator[Part]:
    columns = ("shard", "owner", "address", "lease", "seq", "durability", Column("epoch", drop=1))
    yield Table(columns, [_owned(shard) for shard in found.shards])
    yield _unowned(found)


def _owned(shard: ShardView) -> tuple[Cell, ...]:
    status = shard.status
    lease = f"{shard.lease_left_ms / 1000:.1f} s" if shard.owner else "-"
    return (
        str(shard.shard),
        shard.owner or NOBODY,
        shard.address or "-",
        lease,
        str(status.seq),
        status.durability or "-",
        str(shard.epoch) if shard.epoch else "-",
    )


def _unowned(found: ShardList) -> str:
    without = [str(shard.shard) for shard in found.shards if not shard.owner]
    if not without:
        return "every shard has an owner"
    if len(without) == len(found.shards):
        return "no shard has an owner: start an order server with `roost orders serve`"
    return f"nobody owns {', '.join(without)}: their symbols wait"


def view_top(found: ShardList) -> Iterator[Part]:
    """The picture of `roost orders top`."""
    columns = (
        *("shard", "owner", "depth", "rate/s", "violations", "lost"),
        Column("failed", drop=2),
        Column("halted", drop=1),
        Column("hot symbols", wrap=True),
    )
    yield Table(columns, [_busy(shard) for shard in found.shards])
    yield ""
    yield Table(("server", "shards", "rate/s", Column("rejected", wrap=True)), list(_servers(found)))
    yield _unowned(found)


def _busy(shard: ShardView) -> tuple[Cell, ...]:
    status = shard.status
    hot = list(status.hot.items())[:HOT_SHOWN]
    return (
        str(shard.shard),
        shard.owner or NOBODY,
        str(status.depth),
        f"{status.rate:.4g}",
        alarming(status.violations),
        alarming(status.lost),
        alarming(status.failed),
        str(status.halted),
        ", ".join(f"{symbol} {rate:.4g}" for symbol, rate in hot) or "-",
    )


def alarming(count: int) -> Cell:
    """A number that should be 0."""
    return Styled(str(count), "red") if count else "0"


def _servers(found: ShardList) -> Iterator[tuple[str, ...]]:
    for owner in sorted({shard.owner for shard in found.shards if shard.owner}):
        own = [shard for shard in found.shards if shard.owner == owner]
        rejected = max((shard.status.rejected for shard in own), key=lambda counts: sum(counts.values()))
        most = sorted(rejected.items(), key=lambda item: -item[1])[:REASONS_SHOWN]
        said = ", ".join(f"{count} {reason}" for reason, count in most)
        yield owner, str(len(own)), f"{sum(shard.status.rate for shard in own):.4g}", said or "-"


def view_place(place: PlaceView) -> Iterator[Part]:
    if place.how == "unreadable":
        yield f"{place.symbol} is served by nobody: its record is {place.record[:40]!r}"
        return
    moving = f", on its way to {place.to.shard}:{place.to.lane}" if place.to is not None else ""
    by = {"hash": "by its hash", "pinned": "pinned", "moving": "pinned"}[place.how]
    yield f"{place.symbol} is in shard {place.shard}, lane {place.lane}, {by}{moving}"
    yield f"owned by {place.owner} at {place.address}" if place.owner else "nobody owns the shard"


def view_placed(reply: PlacedReply) -> Iterator[Part]:
    if not reply.changed:
        yield "unchanged"
    yield from view_place(reply.place)


def view_placement(found: PlacementView) -> Iterator[Part]:
    rows = [
        (
            one.symbol,
            one.how,
            f"{one.shard}:{one.lane}" if one.how != "unreadable" else one.record[:20],
            "-" if one.to is None else f"{one.to.shard}:{one.to.lane}",
        )
        for one in found.symbols
    ]
    if rows:
        yield Table(("symbol", "how", "shard:lane", "goes to"), rows)
    yield f"version {found.version}; every other symbol is placed by {found.selector}"


def view_advice(advice: AdviceView) -> Iterator[Part]:
    if advice.moves:
        yield Table(
            ("symbol", "rate/s", "from", "to", Column("command", drop=1)),
            [
                (
                    move.symbol,
                    f"{move.rate:.4g}",
                    f"{move.source.shard}:{move.source.lane}",
                    f"{move.target.shard}:{move.target.lane}",
                    f"roost orders move {move.symbol} {move.target.shard} --lane {move.target.lane}",
                )
                for move in advice.moves
            ],
        )
    said = f"fullest shard by mean: {advice.before:.2f}"
    yield f"{said}, after these moves {advice.after:.2f}" if advice.moves else f"{said}; nothing to move"
    if advice.hottest:
        best = max(1.0, advice.ceiling)
        yield f"the hottest symbol is {advice.hottest}: no placement is better than {best:.2f}"
    if advice.unowned:
        yield f"nothing is known of {len(advice.unowned)} shards that nobody owns"


def view_id(found: IdView) -> Iterator[Part]:
    yield found.said


def view_order(order: OrderView) -> Iterator[Part]:
    done = order.quantity - order.remaining
    yield f"order {order.id} of {order.account}: {order.state}"
    yield f"{order.side} {order.quantity} {order.symbol} at {order.price}, {done} filled"
    yield f"shard {order.shard}, last command {order.seq}"


def view_halt(reply: HaltReply) -> Iterator[Part]:
    why = f" ({reply.why})" if reply.why else ""
    word = f"halted{why}: cancels go on" if reply.halted else "takes orders"
    yield f"{reply.symbol} {word}; command {reply.seq} of shard {reply.shard}, {reply.durability}"


def view_book(book: BookView) -> Iterator[Part]:
    yield f"{book.symbol} at command {book.seq} of shard {book.shard}: {book.orders} open orders"
    if book.halted is not None:
        yield Styled(f"halted: {book.halted or 'no reason given'}", "yellow")
    if book.moved_to is not None:
        yield f"it had left for {book.moved_to}: --shard {book.moved_to.partition('/')[0]} looks there"
    rows = [*reversed(list(_levels("ask", book.asks))), *_levels("bid", book.bids)]
    if rows:
        yield Table(("", "price", "quantity", "orders"), rows)
    if book.failed:
        yield Styled(f"{book.failed} commands failed, live too", "red")
    if book.missing:
        yield Styled(f"{book.missing} commands are missing: the store has lost them", "red")


def _levels(side: str, levels: list[LevelView]) -> Iterator[tuple[str, ...]]:
    for level in levels[:LEVELS_SHOWN]:
        yield side, str(level.price), str(level.quantity), str(len(level.orders))
