"""Whose an instance is: what a heartbeat or a removal acts on, for tokens that are bound to less than all."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from roost.api.discovery import InstanceDetail
from roost.core.errors import UnknownInstance
from roost.core.grants import Target

KEPT = 20_000
KEPT_S = 30.0
"""An instance keeps type and server id for its life; another life of its id may have others."""


class Owners:
    """Asks once in a while: a heartbeat with a bound token costs the store no second call."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[InstanceDetail]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get = get
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Target]] = OrderedDict()

    async def of(self, instance_id: str) -> list[Target]:
        """Type and server of a live instance; nothing of one that does not live: nobody can be harmed."""
        known = self._known.get(instance_id)
        if known is not None and known[0] > self._clock():
            return [known[1]]
        try:
            instance = (await self._get(instance_id)).instance
        except UnknownInstance:
            return []
        if instance is None:
            return []
        target = Target(type=instance.type, server_id=instance.server_id)
        self._known[instance_id] = (self._clock() + KEPT_S, target)
        self._known.move_to_end(instance_id)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return [target]

    def forget(self, instance_id: str) -> None:
        """It gets another life: what was known of it may not hold any more."""
        self._known.pop(instance_id, None)
