"""Where each symbol is served: by its hash, unless an operator pinned it elsewhere.

A `Table` is one state of the placement, immutable and numbered. The I/O layer looks a symbol up once, and the
command carries shard and lane. What is stale is refused by the shard that the symbol left: its log says so.

In the store it is one hash, of plain texts:

    @version   7
    @selector  mixed
    BTCUSDT    3:17                 pinned
    ETHUSDT    3:17>4:2:01JD…       moving from 3:17 to 4:2, by that move

Symbols are upper case and the two words are not, so they never meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from roost.core.errors import InvalidInput
from roost.lanes.ids import LANES, SHARDS
from roost.lanes.selector import DEFAULT_SELECTOR, SELECTORS, Spot, normalise

Row = TypeVar("Row")

VERSION_FIELD = "@version"
SELECTOR_FIELD = "@selector"
MAX_CACHED = 1 << 16
"""Symbols whose place is remembered; beyond them the memory starts anew."""

_MOVE_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_RECORD = re.compile(rf"([0-9]{{1,2}}):([0-9]{{1,2}})(?:>([0-9]{{1,2}}):([0-9]{{1,2}}):{_MOVE_ID.pattern})?")


class Place(NamedTuple):
    """Where a symbol is served, by the table of this version."""

    shard: int
    lane: int
    version: int


class Moving(NamedTuple):
    """The symbol is on its way: its orders are still at the source, and nothing new is taken."""

    source: Place
    target: Spot
    move_id: str


class Unreadable(NamedTuple):
    """The record of this symbol says nothing. By its hash it may have no book, so nobody serves it."""

    record: str


class Table:
    """All placements of one version. `with_…` and `without_…` give the table of the next one."""

    __slots__ = ("_known", "_selector", "moving", "pins", "unreadable", "version")

    def __init__(
        self,
        version: int = 0,
        selector: str = DEFAULT_SELECTOR,
        pins: Mapping[str, Spot] | None = None,
        moving: Mapping[str, tuple[Spot, str]] | None = None,
        unreadable: Mapping[str, str] | None = None,
    ) -> None:
        if selector not in SELECTORS:
            raise InvalidInput(f"no selector {selector!r}", hint=f"there are {', '.join(sorted(SELECTORS))}")
        self.version = version
        self.pins = dict(pins or {})
        self.moving = dict(moving or {})
        """Symbol → (target, move id). While it moves, it is pinned to its source."""
        self.unreadable = dict(unreadable or {})
        self._selector = SELECTORS[selector]
        self._known: dict[str, Place] = {}

    @property
    def selector(self) -> str:
        return self._selector.name

    def of(self, symbol: str) -> Place | Moving | Unreadable:
        """The place of a symbol, which is normalised."""
        return self._known.get(symbol) or self._look_up(symbol)

    def spot_of(self, symbol: str) -> Spot | None:
        """Where its log has its commands now, of one that moves its source; None: the record says nothing."""
        place = self.of(symbol)
        if isinstance(place, Unreadable):
            return None
        source = place.source if isinstance(place, Moving) else place
        return Spot(source.shard, source.lane)

    def with_pin(self, symbol: str, spot: Spot) -> Table:
        """The symbol is served there; a move of it is over."""
        symbol = normalise(symbol)
        _check_spot(spot)
        return self._changed({**self.pins, symbol: spot}, _without(self.moving, symbol), symbol)

    def without_pin(self, symbol: str) -> Table:
        """The symbol is served where its hash says."""
        symbol = normalise(symbol)
        return self._changed(_without(self.pins, symbol), _without(self.moving, symbol), symbol)

    def with_move(self, symbol: str, target: Spot, move_id: str) -> Table:
        """The symbol leaves for the target; `with_pin` ends the move, `without_move` calls it off."""
        symbol = normalise(symbol)
        _check_spot(target)
        if not _MOVE_ID.fullmatch(move_id):
            raise InvalidInput(f"{move_id!r} cannot name a move")
        place = self.of(symbol)
        if not isinstance(place, Place):
            raise InvalidInput(f"symbol {symbol} cannot move: it is {place}")
        source = Spot(place.shard, place.lane)
        return self._changed(
            {**self.pins, symbol: source}, {**self.moving, symbol: (target, move_id)}, symbol
        )

    def without_move(self, symbol: str) -> Table:
        """The symbol stays where it was, pinned."""
        symbol = normalise(symbol)
        return self._changed(self.pins, _without(self.moving, symbol), symbol)

    def encode(self) -> dict[str, str]:
        """The fields of the store's hash."""
        fields = {VERSION_FIELD: str(self.version), SELECTOR_FIELD: self.selector, **self.unreadable}
        for symbol, (shard, lane) in self.pins.items():
            fields[symbol] = f"{shard}:{lane}"
            if symbol in self.moving:
                target, move_id = self.moving[symbol]
                fields[symbol] += f">{target.shard}:{target.lane}:{move_id}"
        return fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.encode() == other.encode()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({self.encode()})"

    def _look_up(self, symbol: str) -> Place | Moving | Unreadable:
        if symbol in self.unreadable:
            return Unreadable(self.unreadable[symbol])
        place = Place(*(self.pins.get(symbol) or self._selector.spot(symbol)), self.version)
        if symbol in self.moving:
            return Moving(place, *self.moving[symbol])
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        self._known[symbol] = place
        return place

    def _changed(
        self, pins: Mapping[str, Spot], moving: Mapping[str, tuple[Spot, str]], symbol: str
    ) -> Table:
        """The next version; this one where nothing differs."""
        unreadable = _without(self.unreadable, symbol)
        if (pins, moving, unreadable) == (self.pins, self.moving, self.unreadable):
            return self
        return Table(self.version + 1, self.selector, pins, moving, unreadable)


def decode(fields: Mapping[str, str]) -> Table:
    """The table of the store's hash; an empty one is version 0. A bad record costs its own symbol only."""
    pins: dict[str, Spot] = {}
    moving: dict[str, tuple[Spot, str]] = {}
    unreadable: dict[str, str] = {}
    for symbol in sorted(fields.keys() - {VERSION_FIELD, SELECTOR_FIELD}):
        spots = _read(fields[symbol])
        if not spots:
            unreadable[symbol] = fields[symbol]
            continue
        pins[symbol] = spots[0]
        if spots[1:]:
            moving[symbol] = spots[1], fields[symbol].rpartition(":")[2]
    version = fields.get(VERSION_FIELD, "0")
    if not (version.isascii() and version.isdecimal()):
        raise InvalidInput(f"the placement table has the version {version!r}")
    return Table(int(version), fields.get(SELECTOR_FIELD, DEFAULT_SELECTOR), pins, moving, unreadable)


def _read(record: str) -> list[Spot]:
    """The pinned spot, and the target where it moves; empty if the record cannot be read."""
    found = _RECORD.fullmatch(record)
    numbers = [int(digits) for digits in found.groups()[:4] if digits] if found else []
    spots = [Spot(*numbers[at : at + 2]) for at in range(0, len(numbers), 2)]
    return spots if all(map(_is_spot, spots)) else []


def _is_spot(spot: Spot) -> bool:
    return 0 <= spot.shard < SHARDS and 0 <= spot.lane < LANES


def _check_spot(spot: Spot) -> None:
    if not _is_spot(spot):
        raise InvalidInput(
            f"no lane {spot.shard}:{spot.lane}", hint=f"{SHARDS} shards with {LANES} lanes each"
        )


def _without(rows: Mapping[str, Row], symbol: str) -> dict[str, Row]:
    return {key: row for key, row in rows.items() if key != symbol}
