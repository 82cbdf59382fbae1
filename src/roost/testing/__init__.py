"""Throwaway servers and clocks for tests, shipped because the users of Roost need them too."""

from roost.testing.clock import FakeClock
from roost.testing.servers import (
    RunningCluster,
    RunningServer,
    SentinelGroup,
    free_port,
    is_running,
    run_cluster,
    run_sentinel,
    run_valkey,
    wait_until,
)

__all__ = [
    "FakeClock",
    "RunningCluster",
    "RunningServer",
    "SentinelGroup",
    "free_port",
    "is_running",
    "run_cluster",
    "run_sentinel",
    "run_valkey",
    "wait_until",
]
