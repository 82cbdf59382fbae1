"""A balancer that follows discovery, as document 000's sequences describe."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from roost.api.discovery import Change, Instance, Watcher
from roost.balancing.balancer import LoadBalancer
from roost.balancing.server import Server
from roost.core.loops import Loops

log = logging.getLogger("roost.balancing")

RETRY_S = 0.5
SLICE_S = 0.01
"""How long changes are taken in before others have their turn."""
MANY = 100
"""Servers of a snapshot from which on it is taken in beside the loop."""


@contextlib.asynccontextmanager
async def following(
    client: Watcher,
    type_: str,
    group: str = "*",
    balancer: LoadBalancer | None = None,
    loops: Loops | None = None,
) -> AsyncIterator[LoadBalancer]:
    """A balancer that knows the servers of a service, and learns of every change, while the block runs.

    Raises what keeps it from learning them at first; later it begins again with a snapshot.
    """
    balancer = balancer or LoadBalancer()
    loop = (loops or Loops()).loop(f"balancer {type_}:{group} {balancer.strategy.name}", essential=True)
    known: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow() -> None:
        until = time.perf_counter() + SLICE_S
        try:
            async for change in client.watch(type_, group):
                if change.event == "snapshot" and len(change.instances or ()) > MANY:
                    await asyncio.to_thread(apply, balancer, change)  # a table of thousands takes seconds
                else:
                    apply(balancer, change)
                if time.perf_counter() > until:  # thousands may have come at once
                    await asyncio.sleep(0)
                    until = time.perf_counter() + SLICE_S
                loop.good()
                if not known.done():
                    known.set_result(None)
        except Exception as error:
            if not known.done():
                known.set_exception(error)
            raise

    task = asyncio.create_task(loop.keep_running(follow, pause_s=RETRY_S))
    try:
        await known
        yield balancer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def apply(balancer: LoadBalancer, change: Change) -> None:
    """Bring a balancer up to date with one change; a server that it cannot take is named and left out."""
    if change.event == "snapshot":
        listed = {server.server_id: server for server in map(server_of, change.instances or ())}
        try:
            balancer.replace_servers(listed.values())
        except Exception:  # one of them is refused: the others must not suffer for it
            for known in balancer.all_servers:
                if known.server_id not in listed:
                    balancer.unregister_server(known.server_id)
            for server in listed.values():
                _take(balancer, server)
    elif change.event == "removed":
        balancer.unregister_server(change.server_id)
    elif change.instance is not None:
        _take(balancer, server_of(change.instance))


def _take(balancer: LoadBalancer, server: Server) -> None:
    try:
        balancer.register_server(server)
    except Exception as error:
        log.error("server left out", extra={"serverId": server.server_id, "reason": str(error)})
        balancer.unregister_server(server.server_id)


def server_of(instance: Instance) -> Server:
    """An instance as a balancer sees it. Its stable name is its identity: a restart keeps its keys.

    `open` is discovery's answer. `healthy` says why where it is not open.
    """
    return Server(
        server_id=instance.server_id or instance.instance_id,
        host=instance.hostname or instance.private_ip or instance.public_ip,
        ports=instance.ports,
        last_heartbeat=instance.last_heartbeat,
        load=instance.load,
        capacity=instance.capacity,
        weight=instance.weight,
        zone=instance.zone,
        healthy=instance.willing or instance.status != "suspect",
        open=instance.willing,
        life=instance.life,
    )
