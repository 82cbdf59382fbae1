"""What tests of and with Roost need, shipped because its users need it too. Nothing here needs pytest.

Servers: `run_valkey`, `run_sentinel`, `run_cluster`, and an open store on one of them with `open_store`.
Databases: `run_postgresql`, `run_mariadb`; `missing_database` says why one cannot be started here.
Roost: `open_gateway` in this process, `run_fleet` in another. Time: `FakeClock`, `eventually`, `wait_until`.
The SDK without a network: `FakeTransport`. Transcripts that are compared with what happens: `StoryRunner`.
"""

from roost.testing.clock import FakeClock
from roost.testing.databases import (
    MariadbServer,
    PostgresqlServer,
    RunningDatabase,
    missing_database,
    run_mariadb,
    run_postgresql,
)
from roost.testing.fleet import Fault, Fleet, run_fleet
from roost.testing.gateway import Answer, Gateway, open_gateway
from roost.testing.leading import Leader
from roost.testing.ports import free_port
from roost.testing.script import Script
from roost.testing.servers import (
    RunningCluster,
    RunningServer,
    SentinelGroup,
    is_running,
    run_cluster,
    run_sentinel,
    run_valkey,
)
from roost.testing.stores import open_store
from roost.testing.stories import Command, Names, StoryFault, StoryRunner, Verb
from roost.testing.transport import FakeAdmission, FakeRegistry, FakeTransport
from roost.testing.waiting import START_S, eventually, wait_until

__all__ = [
    "START_S",
    "Answer",
    "Command",
    "FakeAdmission",
    "FakeClock",
    "FakeRegistry",
    "FakeTransport",
    "Fault",
    "Fleet",
    "Gateway",
    "Leader",
    "MariadbServer",
    "Names",
    "PostgresqlServer",
    "RunningCluster",
    "RunningDatabase",
    "RunningServer",
    "Script",
    "SentinelGroup",
    "StoryFault",
    "StoryRunner",
    "Verb",
    "eventually",
    "free_port",
    "is_running",
    "missing_database",
    "open_gateway",
    "open_store",
    "run_cluster",
    "run_fleet",
    "run_mariadb",
    "run_postgresql",
    "run_sentinel",
    "run_valkey",
    "wait_until",
]
