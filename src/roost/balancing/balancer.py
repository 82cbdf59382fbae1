"""The balancer: servers and their state on one side, `select_server` on the other, no store call between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from roost.api.discovery import Watcher
from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.strategies import ServerEvent, Strategy
from roost.balancing.strategies.bounded_load import BoundedLoad
from roost.balancing.strategies.consistent_hash import ConsistentHashing, RingHashing
from roost.balancing.strategies.least_connections import LeastConnections
from roost.balancing.strategies.random_choice import Random, TwoChoices
from roost.balancing.strategies.rendezvous import Rendezvous
from roost.balancing.strategies.round_robin import RoundRobin
from roost.balancing.strategies.singleton import Singleton

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    strategy.name: strategy
    for strategy in (
        ConsistentHashing,
        RingHashing,
        BoundedLoad,
        Rendezvous,
        RoundRobin,
        LeastConnections,
        Random,
        TwoChoices,
        Singleton,
    )
}
SLOW_START_FLOOR = 0.1
WARMTH_STEP_S = 0.25
"""How often the weights of servers that warm up are worked out."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who was chosen for a key, and what was said of everybody else."""

    key: str
    strategy: str
    chosen: str | None
    refusal: str
    considered: tuple[tuple[str, str], ...]
    """(server id, why it was left out; empty if it was not)."""


class LoadBalancer:
    """Threads may call it: a selection reads a fleet that nobody changes; after a change, a new one.

    `zone`: its servers come first; those of other zones are used where none of them takes users.

    `slow_start_s`: the weight of a server in a new life grows over so many seconds, from a tenth on. This
    has no effect on `consistent_hash`, where it would only move keys about: away from a server that restarted
    and back again, and each balancer would count from when it saw that server first. `bounded_load` lowers
    the cap of such a server and leaves the hash as it is.
    """

    def __init__(
        self,
        strategy: Strategy | None = None,
        *,
        zone: str = "",
        slow_start_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._strategy: Strategy = strategy or ConsistentHashing()
        self._zone = zone
        self._slow_start_s = slow_start_s
        self._clock = clock
        self._servers: dict[str, Server] = {}
        """Changed only by who holds `_changing`."""
        self._made: Fleet | None = None
        """The fleet of these servers; None since they changed: a thousand changes at once make one fleet."""
        self._last_seen = (Fleet(), 0.0, Fleet())
        """What the fleet looked like from here, and until when that holds: not worked out for each choice."""
        self._marked_unhealthy: set[str] = set()
        self._changing = threading.Lock()

    @classmethod
    def following(
        cls, client: Watcher, type_: str, group: str = "*", strategy: Strategy | None = None
    ) -> AbstractAsyncContextManager[LoadBalancer]:
        """`async with LoadBalancer.following(client, "game") as balancer`: it knows the servers there."""
        from roost.balancing.following import following

        return following(client, type_, group, cls(strategy))

    # -- servers

    def register_server(self, server: Server) -> None:
        """Add a server, or put a newer picture of it in place of the old one."""
        with self._changing:
            known = self._servers.get(server.server_id)
            self._put(self._newer(server, known), "changed" if known else "added")

    def replace_servers(self, servers: Iterable[Server]) -> None:
        """Let these be the servers: those not among them go, the others are registered. Like doing so
        one by one, but the fleet is made once and the strategy hears only of what is different."""
        with self._changing:
            fresh = {server.server_id: server for server in servers}
            now = self._servers
            if self._made is None and now:
                self._made = Fleet(now.values())  # who chooses meanwhile takes these, and waits for nobody
            try:
                with self._strategy.many_events():
                    self._replace(fresh, now)
            finally:  # also where the strategy refused one: the fleet is what the strategy was told
                self._made = None

    def _replace(self, fresh: dict[str, Server], now: dict[str, Server]) -> None:
        for gone in [server for server_id, server in now.items() if server_id not in fresh]:
            self._marked_unhealthy.discard(gone.server_id)
            del now[gone.server_id]
            self._strategy.on_server_event(gone, "removed")
        for server_id, server in fresh.items():
            known = now.get(server_id)
            newer = self._newer(server, known)
            if newer != known:
                self._strategy.on_server_event(newer, "changed" if known else "added")
            now[server_id] = newer  # also where only what no strategy looks at is newer

    def unregister_server(self, server_id: str) -> bool:
        with self._changing:
            known = self._servers.pop(server_id, None)
            if known is None:
                return False
            self._made = None
            self._marked_unhealthy.discard(server_id)
            self._strategy.on_server_event(known, "removed")
            return True

    def update_server_load(self, server_id: str, load: int) -> bool:
        return self._change(server_id, load=load)

    def mark_server_healthy(self, server_id: str, healthy: bool = True) -> bool:
        """A health checker's word; it holds until it is taken back, or the server is in a new life."""
        if healthy:
            self._marked_unhealthy.discard(server_id)
        elif server_id in self._servers:
            self._marked_unhealthy.add(server_id)
        return self._change(server_id, healthy=healthy)

    def _change(self, server_id: str, **fields: object) -> bool:
        with self._changing:
            known = self._servers.get(server_id)
            if known is None:
                return False
            self._put(replace(known, **fields), "changed")  # type: ignore[arg-type]
            return True

    def _newer(self, server: Server, known: Server | None) -> Server:
        """A newer picture, with what this balancer alone knows of the same life."""
        if known is None or known.life != server.life:
            self._marked_unhealthy.discard(server.server_id)
            return replace(server, since=self._clock())
        healthy = server.healthy and server.server_id not in self._marked_unhealthy
        return replace(server, since=known.since, healthy=healthy)

    def _put(self, server: Server, event: ServerEvent) -> None:
        self._strategy.on_server_event(server, event)  # first: it may refuse the server by raising
        self._servers[server.server_id] = server
        self._made = None

    @property
    def _fleet(self) -> Fleet:
        """Not for who holds `_changing`."""
        made = self._made
        if made is None:
            with self._changing:
                made = self._made = Fleet(self._servers.values())
        return made

    @property
    def all_servers(self) -> list[Server]:
        return list(self._fleet.servers.values())

    @property
    def healthy_servers(self) -> list[Server]:
        return [server for server in self._fleet.servers.values() if server.healthy]

    # -- choosing

    @property
    def strategy(self) -> Strategy:
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: Strategy) -> None:
        """Change how servers are chosen while it runs; the new strategy learns the fleet first."""
        with self._changing:
            with strategy.many_events():
                for server in self._servers.values():
                    strategy.on_server_event(server, "added")
            self._strategy = strategy

    def select_server(self, player_id: str) -> Server | Refusal:
        """The server that takes this player, or why there is none."""
        return self._strategy.choose(player_id, self._seen(self._fleet))

    def candidates(self, player_id: str, n: int) -> list[Server]:
        """Up to `n` servers that could take this player, best first, by the same strategy; none is picked."""
        return self._strategy.rehearsal().candidates(player_id, self._seen(self._fleet), n)

    def explain(self, player_id: str) -> Explanation:
        """What `select_server` would return now, and why. The next selection is what it would have been."""
        strategy, fleet = self._strategy.rehearsal(), self._fleet
        seen = self._seen(fleet)
        chosen = strategy.choose(player_id, seen)
        return Explanation(
            player_id,
            strategy.name,
            chosen.server_id if isinstance(chosen, Server) else None,
            chosen.reason if isinstance(chosen, Refusal) else "",
            tuple((s.server_id, _why_left_out(s, seen)) for s in fleet.servers.values()),
        )

    def _seen(self, fleet: Fleet) -> Fleet:
        """The fleet as this balancer prefers it: its own zone first, new servers below their weight."""
        if not self._zone and not self._slow_start_s:
            return fleet
        now = self._clock()
        source, until, seen = self._last_seen
        if source is not fleet or not until - WARMTH_STEP_S <= now < until:
            seen = fleet.in_zone(self._zone) if self._zone else fleet
            if self._slow_start_s:
                seen = Fleet(map(self._warmed, seen.servers.values()))
            self._last_seen = (fleet, now + WARMTH_STEP_S, seen)
        return seen

    def _warmed(self, server: Server) -> Server:
        warmth = (self._clock() - server.since) / self._slow_start_s
        if warmth >= 1 or not server.weight:
            return server
        return replace(server, weight=max(1, int(server.weight * max(warmth, SLOW_START_FLOOR))))

    # -- document 001's interface

    @property
    def available(self) -> list[str]:
        """Ids of the servers that take new users."""
        return [server.server_id for server in self._fleet.accepting]

    def get_server_id(self, key: str) -> str | None:
        chosen = self.select_server(key)
        return chosen.server_id if isinstance(chosen, Server) else None

    def on_server_event(self, server: Server, event: ServerEvent) -> None:
        if event == "removed":
            self.unregister_server(server.server_id)
        else:
            self.register_server(server)


def _why_left_out(server: Server, seen: Fleet) -> str:
    return server.why_not or ("" if server.server_id in seen.servers else "in another zone")
