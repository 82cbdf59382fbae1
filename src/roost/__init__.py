"""Roost: a session control plane for stateful servers.

Names are loaded when they are first used: a game server that imports the SDK does not pay for the gateway.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roost.version import __version__

if TYPE_CHECKING:
    from roost.app import Platform, open_platform
    from roost.balancing import LoadBalancer
    from roost.core.errors import (
        Mistake,
        OutcomeUnknown,
        RoostError,
        StartFailed,
        StoreError,
        StoreRefused,
        StoreUnavailable,
    )
    from roost.core.passes import sign_entry, sign_login
    from roost.core.signing import parse_keys
    from roost.core.tracing import trace_context
    from roost.discovery.health import HealthChecker
    from roost.discovery.probes import Prober
    from roost.lanes.executor import LaneExecutor
    from roost.lanes.outcomes import Accepted, Rejected
    from roost.lanes.threads import ThreadLaneExecutor
    from roost.sdk.client import Client
    from roost.sdk.connect import connect
    from roost.sdk.direct.trader import Trader
    from roost.sdk.door import Door
    from roost.sdk.entity import Entity, Journal, Later, Message, Now, Pinned, WriteBack, WriteThrough
    from roost.sdk.guests import Guest
    from roost.sdk.play import Player, play
    from roost.sdk.sync import SyncClient, connect_sync
    from roost.sdk.trade import Fill, FillGap, OrderAccepted, OrderRefused
    from roost.sdk.words import GateRefused
    from roost.settings import Settings

__all__ = [  # noqa: RUF022 — grouped by subject
    # the client
    "Client",
    "SyncClient",
    "connect",
    "connect_sync",
    # the waiting room
    "Door",
    "Guest",
    "parse_keys",
    "sign_entry",
    # users on entity servers
    "Entity",
    "Journal",
    "Later",
    "Message",
    "Now",
    "Pinned",
    "WriteBack",
    "WriteThrough",
    # playing
    "GateRefused",
    "Player",
    "play",
    "sign_login",
    # trading
    "Fill",
    "FillGap",
    "OrderAccepted",
    "OrderRefused",
    "Trader",
    # choosing and judging servers
    "HealthChecker",
    "LoadBalancer",
    "Prober",
    # ordered work by key
    "Accepted",
    "LaneExecutor",
    "Rejected",
    "ThreadLaneExecutor",
    # running
    "Platform",
    "Settings",
    "open_platform",
    # errors
    "Mistake",
    "OutcomeUnknown",
    "RoostError",
    "StartFailed",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    # traces
    "trace_context",
    # about
    "__version__",
]

_HOMES = {
    "Door": "roost.sdk.door",
    "Guest": "roost.sdk.guests",
    **dict.fromkeys(
        ("Entity", "Journal", "Later", "Message", "Now", "Pinned", "WriteBack", "WriteThrough"),
        "roost.sdk.entity",
    ),
    "parse_keys": "roost.core.signing",
    "sign_entry": "roost.core.passes",
    "sign_login": "roost.core.passes",
    "GateRefused": "roost.sdk.words",
    "Player": "roost.sdk.play",
    "play": "roost.sdk.play",
    **dict.fromkeys(("Fill", "FillGap", "OrderAccepted", "OrderRefused"), "roost.sdk.trade"),
    "Trader": "roost.sdk.direct.trader",
    "Client": "roost.sdk.client",
    "SyncClient": "roost.sdk.sync",
    "connect": "roost.sdk.connect",
    "connect_sync": "roost.sdk.sync",
    "HealthChecker": "roost.discovery.health",
    "LoadBalancer": "roost.balancing",
    "Prober": "roost.discovery.probes",
    "Accepted": "roost.lanes.outcomes",
    "LaneExecutor": "roost.lanes.executor",
    "Rejected": "roost.lanes.outcomes",
    "ThreadLaneExecutor": "roost.lanes.threads",
    "trace_context": "roost.core.tracing",
    "Platform": "roost.app",
    "Settings": "roost.settings",
    "open_platform": "roost.app",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'roost' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "roost.core.errors")), name)
