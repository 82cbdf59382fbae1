"""Which symbols to pin elsewhere so that the shards share the load, from rates that were measured.

No hash makes skewed load even; placement does, down to the load of one symbol, which is never split: that is
the ceiling, and it is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from roost.lanes.ids import LANES, SHARDS
from roost.lanes.placement import Moving, Place, Table, Unreadable
from roost.lanes.selector import Spot

MOST_MOVES = 8
LEAST_GAIN = 0.01
"""A move that takes less than this part of the mean off the fullest shard is not worth its pause."""


class Move(NamedTuple):
    symbol: str
    rate: float
    source: Spot
    target: Spot


class Advice(NamedTuple):
    """The ratios are the fullest shard's load by that of the mean one: 1 is even."""

    moves: tuple[Move, ...]
    before: float
    after: float
    hottest: str
    """The symbol with the highest rate; empty without any load."""
    ceiling: float
    """Its own load by that of the mean shard: no placement is better than this, nor than 1."""

    def applied_to(self, table: Table) -> Table:
        for move in self.moves:
            table = table.with_pin(move.symbol, move.target)
        return table


def advise(
    rates: Mapping[str, float],
    table: Table,
    most_moves: int = MOST_MOVES,
    rest: Mapping[int, float] = MappingProxyType({}),
) -> Advice:
    """Greedy: off the fullest shard goes the symbol that, on the emptiest, leaves the two of them most even.

    Equal rates give equal advice, in whatever order they come. A symbol on its way counts where it goes.
    `rest`: what each shard has to do for symbols whose rates are not given; it stays where it is.
    """
    loads = _Loads(rates, table, rest)
    mean = math.fsum(loads.of_shard) / SHARDS
    if mean <= 0 or not loads.rates:
        return Advice((), 1.0, 1.0, "", 0.0)
    before = max(loads.of_shard)
    peaks, moves = [before], list[Move]()
    while len(moves) < most_moves and (move := loads.best_move(LEAST_GAIN * mean)):
        loads.carry_out(move)
        moves.append(move)
        peaks.append(max(loads.of_shard))
    after = min(peaks)
    hottest = min(loads.rates, key=lambda symbol: (-loads.rates[symbol], symbol))
    helpful = moves[: peaks.index(after)]
    return Advice(tuple(helpful), before / mean, after / mean, hottest, loads.rates[hottest] / mean)


class _Loads:
    """What each shard and lane has to do, as moves are thought through."""

    def __init__(self, rates: Mapping[str, float], table: Table, rest: Mapping[int, float]) -> None:
        self.rates: dict[str, float] = {}
        self.of_shard = [max(0.0, rest.get(shard, 0.0)) for shard in range(SHARDS)]
        self._of_lane = [[0.0] * LANES for _ in range(SHARDS)]
        self._movable: list[dict[str, Spot]] = [{} for _ in range(SHARDS)]
        for symbol in sorted(rates):
            if 0 < rates[symbol] < math.inf:
                self._count(symbol, rates[symbol], table.of(symbol))

    def _count(self, symbol: str, rate: float, place: Place | Moving | Unreadable) -> None:
        if isinstance(place, Unreadable):
            return
        self.rates[symbol] = rate
        if isinstance(place, Moving):
            self._add(place.target, rate)
            return
        spot = Spot(place.shard, place.lane)
        self._movable[spot.shard][symbol] = spot
        self._add(spot, rate)

    def best_move(self, least_gain: float) -> Move | None:
        """The move that lowers the fullest shard most; None if none does by so much."""
        fullest = max(range(SHARDS), key=lambda shard: (self.of_shard[shard], -shard))
        emptiest = min(range(SHARDS), key=lambda shard: (self.of_shard[shard], shard))
        full, empty = self.of_shard[fullest], self.of_shard[emptiest]

        def fuller_after(symbol: str) -> float:
            return max(full - self.rates[symbol], empty + self.rates[symbol])

        symbol = min(self._movable[fullest], key=lambda s: (fuller_after(s), s), default=None)
        if symbol is None or full - fuller_after(symbol) < least_gain:
            return None
        lanes = self._of_lane[emptiest]
        target = Spot(emptiest, lanes.index(min(lanes)))
        return Move(symbol, self.rates[symbol], self._movable[fullest][symbol], target)

    def carry_out(self, move: Move) -> None:
        """A symbol moves once: what was put somewhere stays there."""
        del self._movable[move.source.shard][move.symbol]
        self._add(move.source, -move.rate)
        self._add(move.target, move.rate)

    def _add(self, spot: Spot, rate: float) -> None:
        self.of_shard[spot.shard] += rate
        self._of_lane[spot.shard][spot.lane] += rate
