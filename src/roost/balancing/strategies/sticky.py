"""Whoever has a place keeps it; whoever has none gets one from another strategy."""

from __future__ import annotations

from typing import Self

from roost.balancing.ports import Binding, Unbound
from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.least_connections import LeastConnections


class Sticky(Strategy):
    """A bound user stays also on a server that takes no new ones; only one that is gone lets go of it."""

    name = "sticky"

    def __init__(self, binding: Binding | None = None, otherwise: Strategy | None = None) -> None:
        super().__init__()
        self._binding = binding or Unbound()
        self._otherwise = otherwise or LeastConnections()

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        bound = self._binding.server_of(key)
        server = fleet.everybody.get(bound) if bound else None
        return server if server is not None else self._otherwise.choose(key, fleet)

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        self._otherwise.on_server_event(server, event)
        super().on_server_event(server, event)

    def rehearsal(self) -> Self:
        rehearsal = super().rehearsal()
        rehearsal._otherwise = self._otherwise.rehearsal()
        return rehearsal
