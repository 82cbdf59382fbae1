"""One id for callers: the server id, or the instance id where there is none. Either is understood."""

from __future__ import annotations

from roost.api.discovery import Instance, InstanceDetail
from roost.core.errors import InvalidInput, UnknownInstance
from roost.sdk.ports import Registry


def id_of(instance: Instance) -> str:
    """What callbacks, balancers and checkers call it."""
    return instance.server_id or instance.instance_id


async def find(registry: Registry, any_id: str, type_: str = "*") -> InstanceDetail:
    """One instance by its instance id or, while it lives, by its server id, which is unique within a type."""
    try:
        return await registry.get(any_id)
    except UnknownInstance:
        listed = (await registry.discover(type_, "*", (), False)).instances
        bearers = [one.instance_id for one in listed if one.server_id == any_id]
        if not bearers:
            raise
    if len(bearers) > 1:
        raise InvalidInput(
            f"{len(bearers)} servers of different types are called {any_id}", hint="name the type"
        )
    return await registry.get(bearers[0])
