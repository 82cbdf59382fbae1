"""The same key on the same server, in every process; a change of the fleet moves only the keys it must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from roost.balancing.ring import HashRing, check_node
from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.slots import ConsistentHash
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.rendezvous import rank

FEW = 16
"""Nodes that are asked for first: nearly always one of them accepts, and all of them cost a walk."""


class Hash(Protocol):
    """`ConsistentHash` or the documented `HashRing`."""

    def add_node(self, node: str, weight: int = ...) -> None: ...
    def remove_node(self, node: str) -> bool: ...
    def change_nodes(self, changes: Mapping[str, int | None]) -> None: ...
    def get_node(self, key: str) -> str | None: ...
    def get_nodes(self, key: str, n: int) -> list[str]: ...
    @property
    def node_count(self) -> int: ...


class ConsistentHashing(Strategy):
    """Every registered server keeps its share also while it does not accept: its keys go to their next
    candidates meanwhile, and come back."""

    name = "consistent_hash"
    looks_at_all = False

    def __init__(self, hash: Hash | None = None) -> None:  # noqa: A002 — it is one
        super().__init__()
        self.hash: Hash = hash if hash is not None else ConsistentHash()
        self._gathered: dict[str, int | None] | None = None
        """Changes of nodes that are to be made together; None: each is made at once."""

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        first = self.hash.get_node(key)
        server = fleet.servers.get(first) if first is not None else None
        if server is not None and server.accepting:
            return server
        for server in self._in_order(key, fleet):
            return server
        # The hash may be newer than the fleet: a server that accepts in it may have just left the hash.
        return rank(key, fleet.accepting, 1)[0] if fleet.accepting else fleet.refusal()

    def candidates(self, key: str, fleet: Fleet, n: int) -> list[Server]:
        return list(islice(self._in_order(key, fleet), n))

    def _in_order(self, key: str, fleet: Fleet) -> Iterator[Server]:
        """Those that accept, in the order in which the key would go to them."""
        asked = 0
        for count in (FEW, self.hash.node_count):
            for node in self.hash.get_nodes(key, count)[asked:]:
                server = fleet.servers.get(node)
                if server is not None and server.accepting:
                    yield server
            asked = count

    @contextmanager
    def many_events(self) -> Iterator[None]:
        self._gathered = {}
        try:
            yield
        finally:
            gathered, self._gathered = self._gathered, None
            self.hash.change_nodes(gathered)

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        weight = None if event == "removed" else server.weight
        if self._gathered is not None:
            check_node(server.server_id, weight or 0)  # first: it may refuse it by raising
            self._gathered[server.server_id] = weight
        elif weight is None:
            self.hash.remove_node(server.server_id)
        else:
            self.hash.add_node(server.server_id, weight)
        super().on_server_event(server, event)


class RingHashing(ConsistentHashing):
    """The same on the ring of document 000, for callers that compute it themselves."""

    name = "hash_ring"

    def __init__(self) -> None:
        super().__init__(HashRing())
