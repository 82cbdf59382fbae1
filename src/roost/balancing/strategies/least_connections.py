"""The server with the fewest users for its weight."""

from __future__ import annotations

from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import Strategy


class LeastConnections(Strategy):
    name = "least_connections"

    def choose(self, key: str, fleet: Fleet) -> Server | Refusal:
        return min(fleet.accepting, key=burden) if fleet.accepting else fleet.refusal()


def burden(server: Server) -> tuple[float, str]:
    """Users per weight; on a tie the id decides, so that every balancer agrees."""
    return (server.load + 1) / server.weight, server.server_id
