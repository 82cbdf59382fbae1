"""Who hears of it when a server becomes unhealthy or recovers."""

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
    """Callbacks, a balancer, and how many turns there were."""

    def __init__(self, balancer: Marked | None = None) -> None:
        self.unhealthy: list[Callable[[str], None]] = []
        self.recovered: list[Callable[[str], None]] = []
        self.told: list[Callable[[Turn], None]] = []
        self.at = 0
        """µs of the last change of discovery that was heard."""
        self.fell = 0
        self.rose = 0
        self._balancer = balancer

    def tell(self, one: Instance, unhealthy: bool, reason: str, *, panics: bool) -> None:
        """`panics`: more than half are unhealthy; then the fault is likely ours, and they stay routable."""
        server_id = one.server_id or one.instance_id
        log.warning(
            "server unhealthy" if unhealthy else "server recovered",
            extra={"serverId": server_id, "reason": reason},
        )
        turn = Turn(server_id, one.type, one.group, one.life, unhealthy, reason, self.at)
        self.fell += unhealthy
        self.rose += not unhealthy
        if self._balancer is not None and not (unhealthy and panics):
            self._call(self._balancer.mark_server_healthy, server_id, not unhealthy)
        for callback in self.unhealthy if unhealthy else self.recovered:
            self._call(callback, server_id)
        for told in self.told:
            self._call(told, turn)

    @staticmethod
    def _call(callback: Callable[..., object], *args: object) -> None:
        """One subscriber's fault must not keep the others from hearing, nor the checker from listening.

        A cancellation too is the subscriber's own: nothing here awaits.
        """
        try:
            callback(*args)
        except (Exception, asyncio.CancelledError):
            log.exception("a health callback failed")
