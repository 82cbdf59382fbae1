"""A small world: the map's record of one user, the row of the database, servers, a gate. All values.

Epochs, revisions and sequences are small numbers; the state of a user is the tuple of the operations that
were executed, in their order (an append-list): what is lost, doubled or reordered shows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Ops = tuple[int, ...]


class Record(NamedTuple):
    """As `record_read.lua` reads it; `seats`: binders of all servers, `expired`: the mark's time is up."""

    s: str = ""
    e: int = 0
    p: int = 0
    st: str = ""
    d: str = ""
    ne: int = 0
    m: int = 0
    seats: str = ""
    expired: bool = False
    free: bool = False
    """Nobody held the user before this grant."""


class Row(NamedTuple):
    owner: str
    e: int
    rev: int
    ops: Ops
    stray: int = 0
    """An epoch that was not the row's and changed it nevertheless; 0: none did."""


class Write(NamedTuple):
    """A flush on its way to the database: its sender has given up waiting."""

    epoch: int
    rev: int
    ops: Ops


class LateClaim(NamedTuple):
    owner: str
    epoch: int
    judged: int


class LateFreeze(NamedTuple):
    server: str
    epoch: int
    move: int
    target: str


class LateCommit(NamedTuple):
    server: str
    epoch: int
    move: int


Late = Write | LateClaim | LateFreeze | LateCommit

NOW, BEFORE, LOST = 2, 1, 0
"""A message was sent in the present turn of the lane; in an earlier one; over a connection that is gone."""


class Op(NamedTuple):
    """A message of the user, as the gate sent it."""

    number: int
    oldest: int
    epoch: int
    tag: int = NOW


class Accept(NamedTuple):
    move: int
    source: str
    e: int
    ne: int
    rev: int
    ops: Ops


class Server(NamedTuple):
    """One server and what it has of the user. `turn`: what it does for the user now, one thing at a time."""

    name: str
    up: bool = True
    lease: bool = True
    """By its own clock."""
    is_open: bool = False
    epoch: int = 0
    current: bool = False
    """Whether the epoch was claimed under the present lease, and no attempt to freeze came after it."""
    ops: Ops = ()
    dirty: bool = False
    rev: int = 0
    fresh: bool = False
    """No lapse since the turn began."""
    turn: Any = None
    queue: tuple[Any, ...] = ()
    answer: str = ""
    """To the offer of the move under way: taken or refused, if it has arrived."""
    doubt: bool = False
    """A new connection to the store: say again whom you hold."""


class Gate(NamedTuple):
    """A lane: `state` has a letter for each operation: not issued, waiting, flying, done."""

    server: str
    seen: int
    state: str


class World:
    """Copied, changed, and then never changed again; `key` is what makes two of them the same."""

    __slots__ = (
        "clock",
        "faults",
        "gate",
        "history",
        "kinds",
        "late",
        "live",
        "moves",
        "record",
        "row",
        "servers",
        "spared",
    )

    def __init__(
        self, servers: tuple[Server, ...], record: Record, row: Row, gate: Gate, moves: int, faults: int
    ) -> None:
        self.servers = servers
        self.record = record
        self.history: tuple[Record, ...] = ()
        """What the record was before the last scripts, as far as a failover may lose them."""
        self.live = "".join(server.name for server in servers)
        """Whose lease holds in the store."""
        self.row = row
        self.late: tuple[Late, ...] = ()
        self.gate = gate
        self.clock = record.e
        """The store's clock: the highest epoch that it ever granted. A failover does not set it back."""
        self.spared: frozenset[int] = frozenset()
        """Operations that may be lost: their server crashed or lapsed before it wrote them."""
        self.moves = moves
        self.faults = faults
        self.kinds: frozenset[str] = frozenset()
        """Of faults that may happen; the same in every world of an exploration, and no part of `key`."""

    def copy(self) -> World:
        other = World.__new__(World)
        other.servers, other.record, other.history, other.live = (
            self.servers,
            self.record,
            self.history,
            self.live,
        )
        other.row, other.late, other.gate, other.clock = self.row, self.late, self.gate, self.clock
        other.spared, other.moves, other.faults = self.spared, self.moves, self.faults
        other.kinds = self.kinds
        return other

    def key(self) -> tuple[Any, ...]:
        return (
            self.servers,
            self.record,
            self.history,
            self.live,
            self.row,
            self.late,
            self.gate,
            self.clock,
            self.spared,
            self.moves,
            self.faults,
        )

    def may(self, kind: str) -> bool:
        """Whether one more fault of this kind may happen."""
        return self.faults > 0 and kind in self.kinds

    def server(self, name: str) -> Server:
        return self.servers[ord(name) - 65]

    def put(self, name: str, **changes: Any) -> Server:
        at = ord(name) - 65
        changed = self.servers[at]._replace(**changes)
        self.servers = (*self.servers[:at], changed, *self.servers[at + 1 :])
        return changed

    def serving(self) -> Iterator[Server]:
        """Those who would execute a message without asking anybody."""
        for server in self.servers:
            if server.up and server.is_open and server.current and server.lease:
                yield server
