"""What the controller of a job sees of the fleet, read anew every second; and what a move is."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from roost.binding.drain.certificate import gate_name
from roost.binding.drain.plan import busy_servers
from roost.binding.drain.records import JobRecords
from roost.binding.drain.standing import Directory, Standing, standings_of
from roost.binding.service import Bindings
from roost.core.owner import Owner

REFRESH_S = 1.0
GATE = "gate"


class Shift(NamedTuple):
    """Users that are to move together, or one."""

    source: str
    """The server of the job that they came from."""
    users: tuple[str, ...]
    at: Owner
    to: Owner
    force: bool = False


class View:
    def __init__(self, directory: Directory, bindings: Bindings, records: JobRecords, type_: str) -> None:
        self.type = type_
        self.bindings = bindings
        self.directory = directory
        self.standings: dict[str, Standing] = {}
        self.gates: set[str] = set()
        self.busy: set[str] = set()
        """Servers that a job empties."""
        self._records = records
        self._read_at = float("-inf")

    async def refresh(self, now: float, *, at_once: bool = False) -> bool:
        """Whether it was read anew."""
        if now - self._read_at < REFRESH_S and not at_once:
            return False
        instances, gates, rows, running = await asyncio.gather(
            self.directory.discover(self.type, "*"),
            self.directory.discover(GATE, "*"),
            self.bindings.servers(self.type),
            self._records.running(),
        )
        self.standings = standings_of(instances.instances, rows)
        self.gates = {gate_name(one.server_id or one.instance_id, one.life) for one in gates.instances}
        self.busy = busy_servers(running, self.type)
        self._read_at = now
        return True

    def alive(self, owner: Owner) -> Standing | None:
        """This very life of a server, if it is registered."""
        found = self.standings.get(owner.server_id)
        return found if found is not None and found.owner == owner else None
