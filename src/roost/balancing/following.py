"""A balancer that follows discovery, as document 000's sequences describe."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from roost.api.discovery import Change, Instance, Watcher
from roost.balancing.balancer import LoadBalancer
from roost.balancing.server import Server


@contextlib.asynccontextmanager
async def following(
    client: Watcher, type_: str, group: str = "*", balancer: LoadBalancer | None = None
) -> AsyncIterator[LoadBalancer]:
    """A balancer that knows the servers of a place, and learns of every change, while the block runs."""
    balancer = balancer or LoadBalancer()
    known = asyncio.Event()

    async def follow() -> None:
        async for change in client.watch(type_, group):
            apply(balancer, change)
            known.set()

    task = asyncio.create_task(follow(), name=f"balancer {type_} {group}")
    try:
        waiting = asyncio.create_task(known.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()
        yield balancer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def apply(balancer: LoadBalancer, change: Change) -> None:
    """Bring a balancer up to date with one change."""
    if change.event == "snapshot":
        balancer.replace_servers(map(server_of, change.instances or ()))
    elif change.event == "removed":
        balancer.unregister_server(change.server_id)
    elif change.instance is not None:
        balancer.register_server(server_of(change.instance))


def server_of(instance: Instance) -> Server:
    """An instance as a balancer sees it. Its stable name is its identity: a restart keeps its keys."""
    ordered_away = instance.order is not None and (instance.order.drain or instance.order.out_of_service)
    return Server(
        server_id=instance.server_id or instance.instance_id,
        host=instance.hostname or instance.private_ip or instance.public_ip,
        ports=instance.ports,
        load=instance.load,
        capacity=instance.capacity,
        weight=instance.weight,
        zone=instance.zone,
        healthy=instance.status != "suspect" or instance.accepting,
        open=instance.status in ("ready", "suspect") and not ordered_away,
        life=instance.life,
    )
