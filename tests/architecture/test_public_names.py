"""The public face is a list: what is not named here may change without notice."""

from __future__ import annotations

import roost

EXPECTED = (
    "Accepted",
    "Client",
    "Door",
    "Entity",
    "Fill",
    "FillGap",
    "GateRefused",
    "Guest",
    "HealthChecker",
    "Journal",
    "LaneExecutor",
    "Later",
    "LoadBalancer",
    "Message",
    "Mistake",
    "Now",
    "OrderAccepted",
    "OrderRefused",
    "OutcomeUnknown",
    "Pinned",
    "Platform",
    "Player",
    "Prober",
    "Rejected",
    "RoostError",
    "Settings",
    "StartFailed",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "SyncClient",
    "ThreadLaneExecutor",
    "Trader",
    "WriteBack",
    "WriteThrough",
    "__version__",
    "connect",
    "connect_sync",
    "open_platform",
    "parse_keys",
    "play",
    "sign_entry",
    "sign_login",
    "trace_context",
)
"""Every public name, sorted; changes together with `roost.__all__`. Adding one is a promise."""


def test_the_public_names_are_these() -> None:
    assert tuple(sorted(roost.__all__)) == EXPECTED


def test_every_public_name_exists() -> None:
    for name in roost.__all__:
        assert hasattr(roost, name), name
