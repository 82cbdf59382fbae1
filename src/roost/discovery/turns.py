"""Who hears of it when a server becomes unhealthy or recovers, and whom a balancer is told to leave out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from roost.api.discovery import Instance

log = logging.getLogger("roost.discovery.health")


class Marked(Protocol):
    """A balancer that wants to know."""

    def mark_server_healthy(self, server_id: str, healthy: bool = ..., /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """A server became unhealthy, or healthy again."""

    server_id: str
    type: str
    group: str
    life: str
    unhealthy: bool
    reason: str
    at: int
    """µs of the change in the feed by which it was learned: the same in every process that heard it."""


class Turns:
    """Callbacks, and how many turns there were."""

    def __init__(self) -> None:
        self.unhealthy: list[Callable[[str], None]] = []
        self.recovered: list[Callable[[str], None]] = []
        self.told: list[Callable[[Turn], None]] = []
        self.at = 0
        """µs of the last change of discovery that was heard."""
        self.fell = 0
        self.rose = 0

    def tell(self, one: Instance, unhealthy: bool, reason: str) -> None:
        server_id = one.server_id or one.instance_id
        log.warning(
            "server unhealthy" if unhealthy else "server recovered",
            extra={"serverId": server_id, "reason": reason},
        )
        turn = Turn(server_id, one.type, one.group, one.life, unhealthy, reason, self.at)
        self.fell += unhealthy
        self.rose += not unhealthy
        for callback in self.unhealthy if unhealthy else self.recovered:
            _call(callback, server_id)
        for told in self.told:
            _call(told, turn)


class Marks:
    """Whom a balancer is told to leave out: one answer about each server, by one rule.

    Where discovery doubts a server its answer holds, that of a panic included, which the store decides. Where
    it does not, the checker's own finding counts, for up to `most` of the servers: were it about nearly all
    of them, the fault would more likely be the checker's.
    """

    def __init__(self, balancer: Marked | None, most: float) -> None:
        self._balancer = balancer
        self._most = most
        self._marked: set[str] = set()
        """Instance ids."""
        self._found: set[str] = set()
        """Those of them that discovery does not doubt."""

    def weigh(self, one: Instance, found: bool, known: int) -> None:
        """After anything changed about one of so many servers; `found`: the checker finds it unhealthy."""
        instance_id, doubted = one.instance_id, one.status == "suspect"
        self._found.discard(instance_id)
        if found and not doubted and len(self._found) < self._most * known:
            self._found.add(instance_id)
        leaves_out = not one.willing if doubted else instance_id in self._found
        if leaves_out != (instance_id in self._marked):
            (self._marked.add if leaves_out else self._marked.discard)(instance_id)
            self._tell(one, not leaves_out)

    def left(self, one: Instance, *, died: bool) -> None:
        self._found.discard(one.instance_id)
        self._marked.discard(one.instance_id)
        if died:
            self._tell(one, False)

    def returned(self, one: Instance) -> None:
        """It died before, and is to be weighed next."""
        self._marked.add(one.instance_id)

    def _tell(self, one: Instance, healthy: bool) -> None:
        if self._balancer is not None:
            _call(self._balancer.mark_server_healthy, one.server_id or one.instance_id, healthy)


def _call(callback: Callable[..., object], *args: object) -> None:
    """One subscriber's fault must not keep the others from hearing, nor the checker from listening.

    A cancellation too is the subscriber's own: nothing here awaits.
    """
    try:
        callback(*args)
    except (Exception, asyncio.CancelledError):
        log.exception("a health callback failed")
