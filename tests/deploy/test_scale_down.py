"""What Kubernetes does when it scales an entity server in, on real processes: the hook, then SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientSession

from roost.drills.asking import Asker, visit
from roost.drills.client_book import ClientBook
from roost.drills.homes import OLD_VERSION, Homes, Operator
from roost.drills.processes import OPS_PORT_ABOVE, free_port
from roost.drills.update_verdicts import verdicts
from roost.testing import eventually
from tests.acceptance.conftest import ROOST
from tests.deploy.manifests import at, named, objects_of

POD = socket.gethostname()
"""A pod's name is its host's name, and so its server id."""
OTHER = "502"
CLIENTS, CACHED = 3, 40
PATIENCE_S = 60.0


class Cluster(Homes):
    """One gateway, one manager, one gate, and two entity servers, of which one bears this host's name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, class_name="Reference", targets=0)
        for server in (POD, OTHER):
            port = ("--port", str(free_port(OPS_PORT_ABOVE)), "--ttl", "6")
            self.add(server, "entity", "--id", server, "--version", OLD_VERSION, *port)

    def hook(self, command: list[str]) -> Awaitable[asyncio.subprocess.Process]:
        """What the kubelet executes in the container, with its environment."""
        own = {"ROOST_URL": self.gateway, "ROOST_API_TOKEN": self.token, "ROOST_DATA": str(self.data)}
        return asyncio.create_subprocess_exec(*ROOST, *command, env=dict(os.environ) | own)


def takes_users(operator: Operator, server: str) -> Callable[[], Awaitable[bool]]:
    async def takes() -> bool:
        return (await operator.servers()).get(server, False)

    return takes


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_server_that_is_scaled_in_drains_and_ends_in_its_grace_and_nobody_is_lost(
    tmp_path: Path,
) -> None:
    spec = at(named(objects_of("prod"), "StatefulSet", "roost-entity"), "spec.template.spec")
    grace_s = spec["terminationGracePeriodSeconds"]
    program, *command = at(spec, "containers.0.lifecycle.preStop.exec.command")
    assert program == "roost"
    cluster = Cluster(tmp_path)
    names = ("store-owner", "gateway", "manager-1", "gate-1", POD)
    async with cluster.open(names), ClientSession() as session:
        operator = Operator(cluster, session)
        await eventually(takes_users(operator, POD), f"{POD} to take users", PATIENCE_S)
        gate = cluster.gates["gate-1"]
        cached = [f"cached-{number}" for number in range(CACHED)]
        await visit(cached, gate, "count")
        askers = [Asker(ClientBook(f"client-{number}", "gate-1"), gate) for number in range(CLIENTS)]
        asking = [asyncio.create_task(asker.run()) for asker in askers]
        await eventually(
            lambda: all(asker.book.answered > 10 for asker in askers), "clients to play", PATIENCE_S
        )
        await cluster.start(OTHER)
        await eventually(takes_users(operator, OTHER), f"{OTHER} to take users", PATIENCE_S)

        began = time.monotonic()
        hook = await cluster.hook(command)
        assert await hook.wait() == 0
        if (
            cluster.ended(POD) is None
        ):  # the kubelet goes on with SIGTERM, if there is still somebody to get it
            os.kill(cluster.pid(POD), signal.SIGTERM)
        await eventually(lambda: cluster.ended(POD) is not None, f"{POD} to end", PATIENCE_S)
        assert cluster.ended(POD) == 0
        assert time.monotonic() - began < grace_s

        await eventually(
            lambda: all(asker.book.server == OTHER for asker in askers), "clients to be elsewhere", PATIENCE_S
        )
        for asker in askers:
            asker.stop()
        await asyncio.gather(*asking)
        assert [
            verdict for verdict in verdicts([one.book for one in askers], OLD_VERSION) if not verdict.held
        ] == []
        found = await visit(cached, gate, "get")
        assert {user: state["count"] for user, state in found.items()} == dict.fromkeys(cached, 1)

        await cluster.start(POD)  # the pod is back under its name, as after a rollout
        await eventually(takes_users(operator, POD), f"{POD} to take users again", PATIENCE_S)
