"""The same key on the same server, in every process; a change of the fleet moves only the keys it must."""

from __future__ import annotations

from typing import Protocol

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.slots import ConsistentHash
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.rendezvous import rank


class Hash(Protocol):
    """`ConsistentHash` or the documented `HashRing`."""

    def add_node(self, node: str, weight: int = ...) -> None: ...
    def remove_node(self, node: str) -> bool: ...
    def get_node(self, key: str) -> str | None: ...
    def get_nodes(self, key: str, n: int) -> list[str]: ...
    @property
    def node_count(self) -> int: ...


class ConsistentHashing(Strategy):
    """Every registered server keeps its share also while it does not accept: its keys go to their next
    candidates meanwhile, and come back."""

    name = "consistent_hash"

    def __init__(self, hash: Hash | None = None) -> None:  # noqa: A002 — it is one
        super().__init__()
        self.hash: Hash = hash if hash is not None else ConsistentHash()

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        first = self.hash.get_node(key)
        server = fleet.servers.get(first) if first is not None else None
        if server is not None and server.accepting:
            return server
        for node in self.hash.get_nodes(key, self.hash.node_count):
            server = fleet.servers.get(node)
            if server is not None and server.accepting:
                return server
        # The hash may be newer than the fleet: a server that accepts in it may have just left the hash.
        return rank(key, fleet.accepting)[0] if fleet.accepting else fleet.refusal()

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        if event == "removed":
            self.hash.remove_node(server.server_id)
        else:
            self.hash.add_node(server.server_id, server.weight)  # first: it may refuse it by raising
        super().on_server_event(server, event)
