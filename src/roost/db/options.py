"""How a database is used: bounds and timeouts, in seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """What `ROOST_DB__…` says, in the units of the code; `settings.py` of this folder explains each."""

    pool_size: int = 16
    timeout_s: float = 5.0
    connect_timeout_s: float = 5.0
    max_waiting: int = 10_000
    max_state_bytes: int = 1 << 20
    group_size: int = 256
