"""What the database keeps of an order: where it was made, and how it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Annotated, NamedTuple

import msgspec

from roost.core.errors import InvalidInput
from roost.core.ids import MAX_ID_BYTES

MAX_NUMBER = 2**63 - 1
MAX_SMALL = 2**31 - 1
OPEN = 1
"""The `state` of an order that may still be filled."""
LOST = 4
"""The `state` of an order that was acknowledged once and that the log no longer has: it is in no book."""


class OrderRow(NamedTuple):
    """An order after the command `seq` of its shard. A row of an older command never replaces a newer one."""

    order_id: int
    shard: int
    """Of the command that wrote this; a symbol that was moved writes from another shard than made the id."""
    seq: int
    epoch: int
    account: str
    symbol: str
    side: int
    price: int
    quantity: int
    remaining: int
    state: int
    """`lanes.commands.State`, or `LOST`."""
    created_ms: int
    updated_ms: int


def is_newer(row: OrderRow, kept: OrderRow) -> bool:
    """Whether `row` takes the place of `kept`: the rule of the statement, in `order_statements.py`.

    A shard numbers its commands, so of two rows of one shard the later command counts. Numbers of two shards
    cannot be compared: of an order that was moved the later `updated_ms` counts. So that this is the true
    order, `updated_ms` of an order never goes back, and whoever takes it over writes it with a later one.
    """
    if row.shard != kept.shard:
        return row.updated_ms > kept.updated_ms
    return row.seq > kept.seq if row.epoch == kept.epoch else row.epoch > kept.epoch


def newest(rows: Iterable[OrderRow]) -> list[OrderRow]:
    """One row for each order, by id: two writers then take their locks in the same order."""
    rows = sorted(rows)
    found: dict[int, OrderRow] = dict(zip(map(_order_id, rows), rows, strict=True))
    if len(found) == len(rows):  # as an outbox has them
        return rows
    found.clear()
    for row in rows:
        kept = found.get(row.order_id)
        if kept is None or is_newer(row, kept):
            found[row.order_id] = row
    return [found[order_id] for order_id in sorted(found)]


def check_orders(rows: Sequence[OrderRow]) -> None:
    """Refuse what some database would not keep: a row that cannot be written would hold up all behind it."""
    try:
        msgspec.convert(rows, list[_Storable])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"an order cannot be kept: {error}") from None
    if is_storable("".join([row[4] + row[5] for row in rows])):
        return
    for row in rows:
        if not (is_storable(row.account) and is_storable(row.symbol)):
            raise InvalidInput(f"account or symbol of order {row.order_id} holds what is no text")


def is_storable(text: str) -> bool:
    """Whether every database takes it as text: PostgreSQL keeps no NUL, nobody half a surrogate pair."""
    if "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


_order_id = itemgetter(0)

_Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
_Small = Annotated[int, msgspec.Meta(ge=0, le=MAX_SMALL)]
_Text = Annotated[str, msgspec.Meta(max_length=MAX_ID_BYTES)]
_Storable = tuple[
    _Number,
    _Small,
    _Number,
    _Number,
    _Text,
    _Text,
    _Small,
    _Number,
    _Number,
    _Number,
    _Small,
    _Number,
    _Number,
]
"""The columns of a row, in their order."""
