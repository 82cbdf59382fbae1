"""Which shards are this server's share: by the order servers that discovery shows, as far as they take them.

Discovery takes its time with a server that was killed; its shards' leases end much sooner. A server whose
shard nobody owns for a while is left out until it owns one again, so its shards go to the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from roost.core.errors import RoostError
from roost.lanes.assignment import assign

log = logging.getLogger("roost.orders")

LOOK_S = 2.0
GRACE_S = 3.0
"""How long a shard may be nobody's before the server that should own it counts as absent."""

ABSENT_S = 60.0
"""For how long, unless it is seen to own something."""


class Members:
    """`list_servers` asks discovery; that nobody is there changes nothing: who is beats again soon.

    Nor does one that cannot be asked: leases are renewed, and end, all the same.
    """

    def __init__(
        self,
        me: str,
        list_servers: Callable[[], Awaitable[Collection[str]]],
        time_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._me = me
        self._list = list_servers
        self._time = time_s
        self._known: frozenset[str] = frozenset({me})
        self._absent: dict[str, float] = {}
        self._looked_at = -LOOK_S

    async def share(self, free_s: Mapping[int, float], owners: Collection[str]) -> Collection[int]:
        """The shards that this server should own.

        `free_s`: for how long each shard that is nobody's has been so; `owners`: servers that own some.
        """
        now = self._time()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            await self._look()
        self._judge(free_s, owners, now)
        return [number for number, server in self._assigned().items() if server == self._me]

    async def _look(self) -> None:
        try:
            there = await self._list()
        except RoostError as error:
            log.warning("order servers cannot be listed", extra={"reason": error.message})
            return
        if there:
            self._known = frozenset({*there, self._me})

    def _judge(self, free_s: Mapping[int, float], owners: Collection[str], now: float) -> None:
        self._absent = {
            server: since
            for server, since in self._absent.items()
            if server not in owners and now - since < ABSENT_S
        }
        for number, server in self._assigned().items():
            if server != self._me and free_s.get(number, 0.0) > GRACE_S:
                self._absent[server] = now

    def _assigned(self) -> dict[int, str]:
        return assign(sorted(self._known - self._absent.keys()))
