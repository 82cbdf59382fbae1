"""What a balancer knows of a server, and of the fleet at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Server:
    """One server as document 000 describes it; `accepting` is the one flag that decides."""

    server_id: str
    host: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    load: int = 0
    """Users on it now (currentConnections)."""
    capacity: int = 0
    """Users it can take (maxConnections); 0: no limit."""
    weight: int = 100
    """Its share of new users beside others; 0: none."""
    zone: str = ""
    healthy: bool = True
    open: bool = True
    """Whether discovery says that it is willing: `roost.api.discovery.Instance.willing`."""
    life: str = ""
    since: float = 0.0
    """Monotonic seconds at which it was first seen; for the slow start."""
    last_heartbeat: str = field(default="", compare=False)
    """When it last beat, as of the last news of it: beats that change nothing are no news."""

    @property
    def accepting(self) -> bool:
        return self.healthy and self.open and self.weight > 0 and not self.is_full

    @property
    def is_full(self) -> bool:
        return bool(self.capacity) and self.load >= self.capacity

    @property
    def why_not(self) -> str:
        """Why it takes no new user; empty if it does."""
        if not self.healthy:
            return "unhealthy"
        if self.weight <= 0:
            return "of weight 0"
        if not self.open:
            return "not open"
        return f"full ({self.load} of {self.capacity})" if self.is_full else ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No server takes this user, and why."""

    reason: str


class Fleet:
    """Every server at one moment. Never changed: a change makes a new one."""

    def __init__(self, servers: Iterable[Server] = ()) -> None:
        self.servers: Mapping[str, Server] = {server.server_id: server for server in servers}

    @cached_property
    def accepting(self) -> tuple[Server, ...]:
        """Those that take new users, by id."""
        return tuple(sorted((s for s in self.servers.values() if s.accepting), key=lambda s: s.server_id))

    def in_zone(self, zone: str) -> Fleet:
        """Those of one zone, or all where none of that zone takes users."""
        near = [server for server in self.servers.values() if server.zone == zone]
        return Fleet(near) if any(server.accepting for server in near) else self

    def refusal(self) -> Refusal:
        if not self.servers:
            return Refusal("no server is registered")
        reasons: dict[str, int] = {}
        for server in self.servers.values():
            word = server.why_not.partition(" (")[0]
            reasons[word] = reasons.get(word, 0) + 1
        told = ", ".join(f"{count} {word}" for word, count in sorted(reasons.items()))
        return Refusal(f"none of {len(self.servers)} servers takes new users: {told}")
