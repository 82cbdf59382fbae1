"""Which shard and lane the commands of a symbol go to here: found once, until shards or places change."""

from __future__ import annotations

from roost.core.errors import InvalidInput
from roost.lanes.dispatch import Dispatch
from roost.lanes.placement import Place
from roost.lanes.selector import normalise
from roost.lanes.shard import Shard
from roost.lanes.tally import Tally
from roost.lanes.work import Route
from roost.servers.orders.rates import Rates

MAX_ROUTES = 100_000
"""Symbols whose way is remembered."""


class Routes:
    """`known` has the symbols that were asked for, as they are spelled in the books."""

    def __init__(self, dispatch: Dispatch, traded: frozenset[str]) -> None:
        self.shards: dict[int, Shard] = {}
        """Those that are owned here, by number; changed by `own` and `disown` alone."""
        self.tallies: dict[int, Tally] = {}
        """Of every shard that was ever owned here."""
        self.known: dict[str, Route] = {}
        self.rates = Rates()
        self.lane_rates = Rates()
        """The same by the number of the lane."""
        self._dispatch = dispatch
        self._traded = traded
        dispatch.on_change.append(self._forget)

    def own(self, shard: Shard) -> None:
        self._forget()
        self.shards[shard.number] = shard
        shard.commits.tally = self.tallies.setdefault(shard.number, shard.commits.tally)

    def disown(self, number: int) -> None:
        self._forget()
        self.shards.pop(number, None)

    def spelled(self, symbol: str, is_cancel: bool = False) -> str:
        """As it is known; `InvalidInput` or `InvalidId` for what is no symbol, or is not traded.

        Orders of one that is traded no more can be cancelled: nobody is kept in.
        """
        known = normalise(symbol)
        if self._traded and known not in self._traded and not is_cancel:
            raise InvalidInput(f"{known} is not traded here")
        return known

    def find(self, symbol: str) -> Route | int | None:
        """The way; the number of a shard that is another server's; None: the symbol is on the move."""
        place = self._dispatch.place(symbol)
        if not isinstance(place, Place):
            return None
        shard = self.shards.get(place.shard)
        if shard is None:
            return place.shard
        if len(self.known) >= MAX_ROUTES:
            self._forget()
        route = Route(symbol, shard, place.lane)
        if not self._traded or symbol in self._traded:  # what is known is not asked about again
            self.known[symbol] = route
        return route

    def measure(self, seconds: float) -> None:
        """Make rates of the commands that were queued in so many seconds."""
        self._count()
        self.rates.turn(seconds)
        self.lane_rates.turn(seconds)

    def _forget(self) -> None:
        self._count()
        self.known.clear()

    def _count(self) -> None:
        for route in self.known.values():
            if route.commands:
                self.rates.count(route.shard.number, route.symbol, route.commands)
                self.lane_rates.count(route.shard.number, str(route.lane), route.commands)
                route.commands = 0
