"""Which shards are this server's share: by the order servers that discovery shows, as far as they take them.

Servers that are fixed to a list say so in discovery; those that are not share the rest. Discovery takes its
time with a server that was killed; its shards' leases end much sooner. So a server that owns nothing, and
whose shard nobody owns for a while, is left out until it owns one again. One that owns others, and leaves
this one alone, is left out for this one: it may be fixed to a list without having said so, or fail at it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from roost.core.errors import RoostError
from roost.lanes.assignment import assign, rank
from roost.lanes.ids import SHARDS

log = logging.getLogger("roost.orders")

LOOK_S = 2.0
GRACE_S = 3.0
"""How long a shard may be nobody's before the server that should own it is left out."""

ABSENT_S = 60.0
"""For how long, unless it is seen to own something; twice as long each time that it does not."""

MAX_ABSENT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Absence:
    pause_s: float
    until: float


class Members:
    """`list_servers` asks discovery for the servers, each with the shards that it is fixed to; none: it
    shares what is left with the others, as this one does. That nobody is there changes nothing: who is beats
    again soon. Nor does one that cannot be asked: leases are renewed, and end, all the same.
    """

    def __init__(
        self,
        me: str,
        list_servers: Callable[[], Awaitable[Mapping[str, Collection[int]]]],
        time_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._me = me
        self._list = list_servers
        self._time = time_s
        self._known: Mapping[str, Collection[int]] = {me: ()}
        self._absent: dict[str, Absence] = {}
        self._passed: set[tuple[int, str]] = set()
        """Shards with the server that leaves them alone. For as long as discovery has it: a chance now and
        then would take a shard from its owner each time, for nothing but an evener share."""
        self._looked_at = -LOOK_S

    async def share(self, free_s: Mapping[int, float], owners: Mapping[int, str]) -> Collection[int]:
        """The shards that this server should own.

        `free_s`: for how long each shard that is nobody's has been so; `owners`: who owns the others.
        """
        now = self._time()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            await self._look()
        self._judge(free_s, owners, now)
        return [number for number, server in self._assigned(now).items() if server == self._me]

    async def _look(self) -> None:
        try:
            there = await self._list()
        except RoostError as error:
            log.warning("order servers cannot be listed", extra={"reason": error.message})
            return
        if there:
            self._known = {**there, self._me: ()}

    def _judge(self, free_s: Mapping[int, float], owners: Mapping[int, str], now: float) -> None:
        known, owning = self._known.keys(), frozenset(owners.values())
        self._absent = {name: one for name, one in self._absent.items() if name in known - owning}
        self._passed = {
            (number, name) for number, name in self._passed if name in known and owners.get(number) != name
        }
        left = {
            (number, name)
            for number, name in self._assigned(now).items()
            if name != self._me and free_s.get(number, 0.0) > GRACE_S
        }
        self._passed |= {(number, name) for number, name in left if name in owning}
        for name in {name for _, name in left} - owning:
            before = self._absent.get(name)
            pause_s = min(before.pause_s * 2, MAX_ABSENT_S) if before else ABSENT_S
            self._absent[name] = Absence(pause_s, now + pause_s)

    def _assigned(self, now: float) -> dict[int, str]:
        """Where the lists of two servers overlap both want a shard, and its lease decides."""
        absent = {name for name, one in self._absent.items() if now < one.until}
        present = sorted(self._known.keys() - absent)
        fixed = {number: name for name in present for number in self._known[name]}
        sharing = [name for name in present if not self._known[name]]
        assigned = fixed | assign(sharing, [number for number in range(SHARDS) if number not in fixed])
        for number, name in assigned.items():
            if (number, name) in self._passed:
                # Only this shard goes to another: to make all shares even again would move others too.
                others = [one for one in sharing if (number, one) not in self._passed]
                assigned[number] = rank(number, others)[0]
        return assigned
