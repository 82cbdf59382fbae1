"""One server as discovery and the map see it together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from roost.api.discovery import Instance, InstanceList, Override
from roost.binding.model import ServerRow
from roost.core.owner import Owner

WIRE_PORT = "wire"
SCHEMA_LABEL = "schemaVersion"
READER_LABEL = "minReader"


class Directory(Protocol):
    """What is asked of discovery."""

    async def discover(self, type_: str = "*", group: str = "*", /) -> InstanceList: ...

    async def override(self, instance_id: str, override: Override | None, /) -> None: ...


class Standing(NamedTuple):
    """A server that is registered: who it is, where, and whom it holds."""

    owner: Owner
    instance_id: str
    version: str
    address: tuple[str, int] | None
    willing: bool
    """Takes new users, were there room: so says discovery, and its lease in the map holds."""
    is_closed: bool
    """Every partition knows that it takes nobody new."""
    users: int
    capacity: int
    """0: no limit."""
    schema: int
    """`schema_version` of its entity class; 0: not known."""
    min_reader: int
    """`min_reader` of what it writes; 0: not known."""
    override: Override | None = None

    @property
    def server_id(self) -> str:
        return self.owner.server_id

    @property
    def is_drained_alone(self) -> bool:
        """Whether a drain has closed it, for this life or for one before of the same process."""
        ordered = self.override
        return ordered is not None and ordered.drain and ordered.drain_life == self.owner.life

    @property
    def room(self) -> int | None:
        """None: without limit."""
        return max(0, self.capacity - self.users) if self.capacity else None

    @property
    def crowding(self) -> tuple[float, int]:
        """What the emptiest is chosen by: the share of its seats, then the users."""
        return (self.users / self.capacity if self.capacity else 0.0, self.users)

    def can_read(self, min_reader: int) -> bool:
        """Whether its class reads rows that ask for such a reader, as far as is known."""
        return not (self.schema and min_reader and self.schema < min_reader)


Standings = Mapping[str, Standing]
"""By server id."""


def standings_of(instances: Iterable[Instance], rows: Iterable[ServerRow]) -> dict[str, Standing]:
    """Join what discovery lists with the rows of the map; a row of another life does not count."""
    by_owner = {Owner(row.server_id, row.life): row for row in rows}
    found = (_standing(instance, by_owner) for instance in instances)
    return {one.server_id: one for one in found}


def _standing(instance: Instance, rows: Mapping[Owner, ServerRow]) -> Standing:
    owner = Owner(instance.server_id or instance.instance_id, instance.life)
    row = rows.get(owner)
    host = instance.private_ip or instance.hostname or instance.public_ip
    port = instance.ports.get(WIRE_PORT)
    return Standing(
        owner=owner,
        instance_id=instance.instance_id,
        version=instance.version,
        address=(host, port) if host and port else None,
        willing=instance.willing and row is not None and row.open and row.alive,
        is_closed=row is not None and row.closed,
        users=row.users if row is not None else 0,
        capacity=instance.capacity,
        schema=_number(instance.labels.get(SCHEMA_LABEL, "")),
        min_reader=_number(instance.labels.get(READER_LABEL, "")),
        override=instance.override,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
