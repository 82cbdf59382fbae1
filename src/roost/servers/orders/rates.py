"""How busy each symbol is, for operators and for advice on where to put it."""

from __future__ import annotations

from collections import Counter

SHOWN = 8
HALF_LIFE = 0.5
"""Share of the former rate in the next: a symbol that falls silent fades within some seconds."""


class Rates:
    """Commands a second by symbol, of the shards that are owned here."""

    def __init__(self) -> None:
        self._counted: dict[int, Counter[str]] = {}
        self._rates: dict[int, dict[str, float]] = {}

    def count(self, shard: int, symbol: str, commands: int) -> None:
        self._counted.setdefault(shard, Counter())[symbol] += commands

    def turn(self, seconds: float) -> None:
        """Make rates of what was counted in so many seconds."""
        counted, self._counted = self._counted, {}
        for shard in {*counted, *self._rates}:
            now, former = counted.get(shard, Counter()), self._rates.get(shard, {})
            rates = {
                symbol: former.get(symbol, 0.0) * HALF_LIFE + now[symbol] / seconds * (1 - HALF_LIFE)
                for symbol in {*now, *former}
            }
            self._rates[shard] = {symbol: rate for symbol, rate in rates.items() if rate >= 0.1}

    def hot(self, shard: int, most: int = SHOWN) -> dict[str, float]:
        """The busiest symbols of a shard, and how many commands a second."""
        rates = self._rates.get(shard, {})
        busiest = sorted(rates.items(), key=lambda item: (-item[1], item[0]))[:most]
        return {symbol: round(rate, 1) for symbol, rate in busiest}

    def total(self, shard: int) -> float:
        return round(sum(self._rates.get(shard, {}).values()), 1)
