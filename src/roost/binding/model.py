"""A binding as its readers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from roost.core.events import Entry, Mark
from roost.core.owner import Owner

FIELDS = ("s", "l", "e", "p", "st", "since", "why")
"""What the hot read asks for; `record_list.lua` tells the same."""

State = Literal["A", "M", "R"]
"""A: held. M: on the move. R: released, a tombstone that keeps the epoch."""


class Record(NamedTuple):
    """What the map says of a user. A tuple, because one is made for every route that is not cached."""

    owner: Owner | None
    """Nobody, if it was released."""
    epoch: int
    previous: int
    """The epoch of the grant before this one; 0: there was none."""
    state: State
    since: int
    """When it was granted or released, µs of the store's clock."""
    why: str

    @classmethod
    def read(cls, fields: Sequence[Any]) -> Self | None:
        """Out of the fields in the order of `FIELDS`, texts or bytes; None: there is no record."""
        server_id, life, epoch, previous, state, since, why = fields
        if not state:
            return None
        if isinstance(state, bytes):
            server_id, life, state = (server_id or b"").decode(), (life or b"").decode(), state.decode()
            why = (why or b"").decode()
        owner = Owner(server_id, life) if server_id else None
        return cls(owner, int(epoch), int(previous or 0), state, int(since or 0), why)


class BindingChange(NamedTuple):
    """One user changed hands, as the feed tells it."""

    type: str
    user: str
    owner: Owner | None
    """Who holds them from now on; None: they were released."""
    epoch: int
    why: str
    source: Owner | None
    """Who held them before."""
    mark: Mark

    @classmethod
    def of(cls, entry: Entry) -> Self:
        f = entry.fields
        return cls(
            f["type"],
            f["user"],
            _owner(f["serverId"], f["life"]),
            int(f["epoch"]),
            f["why"],
            _owner(f["from"], f["fromLife"]),
            entry.mark,
        )


class ServerRow(NamedTuple):
    """A server as one partition has it."""

    server_id: str
    life: str
    open: bool
    """Whether it takes new users, as the leader heard of discovery."""
    known: bool
    """Whether the leader has named this life."""
    capacity: int
    """0: no limit."""
    version: str
    users: int
    alive: bool
    """Whether its lease holds."""
    closed: bool
    """Not open; of the row of several partitions: in none of them."""

    @property
    def accepting(self) -> bool:
        """The documented `availableEntities`: whether a new user may be placed on it now."""
        return self.open and self.alive and not (self.capacity and self.users >= self.capacity)


@dataclass(frozen=True, slots=True)
class PartitionBoard:
    """One type in one partition, as `board.lua` found it."""

    numbers: Mapping[str, str]
    bindings: int
    """Users that somebody holds."""
    servers: tuple[ServerRow, ...]

    @classmethod
    def read(cls, numbers: Sequence[str], bindings: int, servers: Sequence[str]) -> Self:
        named = dict(zip(numbers[::2], numbers[1::2], strict=True))
        clock = int(named.get("clock_ms", "0"))
        triples = zip(servers[::3], servers[1::3], servers[2::3], strict=True)
        rows = (_row(clock, server_id, packed, int(users)) for server_id, packed, users in triples)
        return cls(named, bindings, tuple(rows))

    def grants(self, type_: str) -> dict[str, int]:
        """How often users of the type changed hands since the partition began, by cause."""
        prefix = f"granted:{type_}:"
        return {n.removeprefix(prefix): int(c) for n, c in self.numbers.items() if n.startswith(prefix)}

    def refusals(self, type_: str) -> int:
        return int(self.numbers.get(f"refused:{type_}", "0"))


def _row(clock: int, server_id: str, packed: str, users: int) -> ServerRow:
    life, state, capacity, lease, _, version = packed.split("\t")
    is_open, is_alive = state == "1", int(lease) > clock
    return ServerRow(
        server_id, life, is_open, state != "?", int(capacity), version, users, is_alive, not is_open
    )


def _owner(server_id: str, life: str) -> Owner | None:
    return Owner(server_id, life) if server_id else None
