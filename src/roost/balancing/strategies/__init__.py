"""How a server is chosen: one small pure module each.

`LoadBalancer` offers the interface of document 001 over any of them: `available`, `get_server_id(key)`,
`on_server_event`.
"""

from __future__ import annotations

from typing import Literal, Protocol

from roost.balancing.server import Fleet, Refusal, Server

ServerEvent = Literal["added", "removed", "changed"]


class Strategy(Protocol):
    """Chooses among the accepting. `choose` makes no I/O and never returns a server that does not accept."""

    name: str

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal: ...

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        """A server came, left or changed; for strategies that keep something about servers."""
