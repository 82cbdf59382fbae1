"""Any server, by weight; or the better of two, which is nearly as good as the best and needs no order."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Self

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy
from roost.balancing.strategies.least_connections import burden


class Random(Strategy):
    name = "random"

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__()
        self._rng = rng or random.Random()

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        return self._pick(fleet.accepting) if fleet.accepting else fleet.refusal()

    def _pick(self, servers: Sequence[Server]) -> Server:
        return self._rng.choices(servers, [server.weight for server in servers])[0]

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        try:
            rehearsal._rng = copy.copy(self._rng)
        except NotImplementedError:  # SystemRandom: it has no state that a choice could use up
            pass
        return rehearsal


class TwoChoices(Random):
    """Two at random, the less burdened of them: balancers with old figures do not pile onto one server."""

    name = "two_choices"

    def _pick(self, servers: Sequence[Server]) -> Server:
        return min(super()._pick(servers), super()._pick(servers), key=burden)
