"""Health and state of one Roost process."""

from __future__ import annotations

from typing import Literal

from roost.api import Message


class Health(Message):
    """The process runs and its event loop turns."""

    status: Literal["ok"] = "ok"


class Ready(Message, omit_defaults=True):
    """Requests can be served."""

    status: Literal["ready"]
    store_latency_ms: float | None = None
    """Of a role that speaks to the store itself."""
    store: Literal["", "away"] = ""
    """Away: what is known is served from memory, everything else is refused with 503 for a while."""


class StoreNode(Message):
    name: str
    connected: bool
    why_down: str
    in_flight: int
    waiting: int
    reconnects: int
    timeouts: int
    unknown_outcomes: int


class StoreStatus(Message):
    url: str
    """Without its password."""
    shape: str
    server: str
    latency_ms: float
    nodes: list[StoreNode]


class Status(Message):
    version: str
    profile: str
    roles: list[str]
    started_at: str
    pid: int
    store: StoreStatus
