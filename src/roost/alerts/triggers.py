"""What makes an alert: a server turns, a node of the store is away, a leader loses its lease."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from roost.alerts.notifier import Notifier
from roost.alerts.payloads import Alert, AlertKind, Incident
from roost.core.clock import Clock, SystemClock
from roost.core.loops import Loops

STORE_AWAY_S = 5.0
"""How long a node of the store may be away before an alert says so."""
LOOK_S = 1.0


class Node(Protocol):
    """A node of the store, as an alert needs to know it."""

    name: str

    @property
    def connected(self) -> bool: ...

    @property
    def why_down(self) -> str: ...


class Turned(Protocol):
    """A server that became unhealthy or healthy, as an alert needs to know it."""

    @property
    def server_id(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def life(self) -> str: ...
    @property
    def unhealthy(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def at(self) -> int:
        """µs of the change in discovery's feed by which this process learned of it."""


class Triggers:
    def __init__(
        self,
        notifier: Notifier,
        nodes: Callable[[], Iterable[Node]],
        loops: Loops | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._notifier = notifier
        self._nodes = nodes
        self._loops = loops or Loops()
        self._clock = clock or SystemClock()
        self._away_since: dict[str, float] = {}
        self._told: set[str] = set()

    def server_turned(self, turn: Turned) -> None:
        details = {"type": turn.type, "group": turn.group, "reason": turn.reason}
        name = f"{turn.type} {turn.server_id} in {turn.group}"
        what = f"is unhealthy: {turn.reason}" if turn.unhealthy else "has recovered"
        self._notifier.tell(
            Alert(
                "unhealthy" if turn.unhealthy else "recovered",
                turn.server_id,
                f"{name} {what}",
                time.time(),
                {key: value for key, value in details.items() if value},
                turn.type,
                Incident(turn.life, turn.at),
            )
        )

    async def run(self) -> None:
        """Watch the store: alert once when a node has been away for a while, and once when it is back."""
        await self._loops.keep_running("store watch", self.look, pause_s=LOOK_S)

    async def look(self) -> None:
        now, nodes = self._clock.monotonic(), list(self._nodes())
        if nodes:  # else there is no map to say that one is none any more
            self._forget_all_but({node.name for node in nodes})
        for node in nodes:
            if node.connected:
                self._away_since.pop(node.name, None)
                if node.name in self._told:
                    self._told.discard(node.name)
                    self._alert("store-back", node.name, "is back")
            elif self._is_over(node.name, now) and node.name not in self._told:
                self._told.add(node.name)
                self._alert("store-away", node.name, f"is away: {node.why_down or 'no answer'}")

    def _forget_all_but(self, names: set[str]) -> None:
        """A node that was replaced is away no more, though nobody will ever connect to it again."""
        for name in self._away_since.keys() - names:
            del self._away_since[name]
        for name in self._told - names:
            self._told.discard(name)
            self._alert("store-back", name, "is no node of the store any more")

    def _is_over(self, name: str, now: float) -> bool:
        return now - self._away_since.setdefault(name, now) >= STORE_AWAY_S

    def leader_lost(self, what: str) -> None:
        self._alert("leader-lost", what, "has lost its leader in this process")

    def _alert(self, kind: AlertKind, subject: str, what: str) -> None:
        self._notifier.tell(Alert(kind, subject, f"{subject} {what}", time.time()))
