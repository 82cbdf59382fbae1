"""The store's side of a partition as typed functions: one per Lua file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roost.binding.model import FIELDS, Record
from roost.core.owner import Owner
from roost.store.keys import Keys
from roost.store.keys.binding import partition_keys
from roost.store.scopes import Scope
from roost.store.scripts import Library, ScopedScript


class _Held:
    """An answer that names a life of a server."""

    __slots__ = ()
    server_id: str
    life: str

    @property
    def owner(self) -> Owner:
        return Owner(self.server_id, self.life)


@dataclass(frozen=True, slots=True)
class Bound(_Held):
    """Has a living owner."""

    server_id: str
    life: str
    epoch: int
    previous: int


@dataclass(frozen=True, slots=True)
class Placed(_Held):
    """Has an owner from now on, or the same one under a new epoch."""

    server_id: str
    life: str
    epoch: int
    previous: int
    why: str


@dataclass(frozen=True, slots=True)
class Moving(_Held):
    """Is on the move for `left_ms` at most: ask again."""

    server_id: str
    life: str
    epoch: int
    left_ms: int


@dataclass(frozen=True, slots=True)
class NoServer:
    """Nobody takes them: none registered, none willing, all full, version."""

    why: str


@dataclass(frozen=True, slots=True)
class Released:
    pass


@dataclass(frozen=True, slots=True, match_args=False)
class NotOwner:
    """Who asked does not hold the user, or has no lease; `record` is what the map says."""

    __match_args__ = ("record",)
    fields: list[str]

    @property
    def record(self) -> Record | None:
        return Record.read(self.fields)


@dataclass(frozen=True, slots=True)
class Renewed:
    epoch: int
    previous: int


@dataclass(frozen=True, slots=True)
class Frozen:
    """On the move."""

    epoch: int
    """That the target gets with the commit."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The target takes nobody: none registered, none willing, all full."""

    why: str


@dataclass(frozen=True, slots=True)
class Committed:
    pass


@dataclass(frozen=True, slots=True, match_args=False)
class Gone:
    """There is no such move any more, or the target has no lease; `record` is what the map says."""

    __match_args__ = ("record",)
    fields: list[str]

    @property
    def record(self) -> Record | None:
        return Record.read(self.fields)


@dataclass(frozen=True, slots=True)
class Reasserted:
    found: list[str]

    def records(self) -> list[Record | None]:
        return [Record.read(fields) for fields in _records(self.found)]


@dataclass(frozen=True, slots=True)
class Freezes:
    """What became of each user."""

    answers: list[str]
    records: list[str]

    def each(self) -> list[Frozen | NotOwner | NoRoom]:
        records = _records(self.records)
        return [
            Frozen(int(answer))
            if answer.isdecimal()
            else NotOwner(next(records))
            if answer == "not owner"
            else NoRoom(answer)
            for answer in self.answers
        ]


@dataclass(frozen=True, slots=True)
class Commits:
    """What became of each user."""

    answers: list[str]
    records: list[str]

    def each(self) -> list[Committed | Gone]:
        records = _records(self.records)
        return [Committed() if answer == "committed" else Gone(next(records)) for answer in self.answers]


@dataclass(frozen=True, slots=True)
class Repaired:
    epoch: int


@dataclass(frozen=True, slots=True)
class Dead:
    """The row's owner is not alive: the map's may claim the row."""


@dataclass(frozen=True, slots=True, match_args=False)
class Changed:
    """The map is not as it was judged."""

    __match_args__ = ("record",)
    fields: list[str]

    @property
    def record(self) -> Record | None:
        return Record.read(self.fields)


@dataclass(frozen=True, slots=True)
class Beaten:
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """The leader has not named this life yet: the lease is held, no new users come."""


@dataclass(frozen=True, slots=True)
class Ended:
    """This life is over for good."""


@dataclass(frozen=True, slots=True)
class Buried:
    users: int


@dataclass(frozen=True, slots=True)
class Synced:
    remaining: int
    """Users of ended lives that are still to be placed."""
    absent: list[str]
    """Server id and life, in turn, of rows that the news did not name."""


@dataclass(frozen=True, slots=True)
class Stale:
    pass


@dataclass(frozen=True, slots=True)
class Deposed:
    pass


@dataclass(frozen=True, slots=True)
class Ticked:
    clock: int
    idle: int
    orphans: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NewsLost:
    pass


@dataclass(frozen=True, slots=True)
class Replaced:
    placed: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Board:
    numbers: list[str]
    bindings: int
    servers: list[str]


@dataclass(frozen=True, slots=True)
class Appended:
    answers: list[str]


@dataclass(frozen=True, slots=True)
class Trimmed:
    count: int


@dataclass(frozen=True, slots=True)
class Noted:
    count: int


def _records(flat: list[str]) -> Iterator[list[str]]:
    """The fields of each record, out of those of all."""
    return (flat[at : at + len(FIELDS)] for at in range(0, len(flat), len(FIELDS)))


Resolved = Bound | Placed | Moving | NoServer


class PartitionScripts:
    """Every script on one partition; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys, partition: Scope) -> None:
        of = partition_keys(keys, partition)

        def script(name: str, *answers: type[Any]) -> ScopedScript[Any]:
            return ScopedScript(library.script("binding", name, *answers), of)

        self.resolve: ScopedScript[Resolved] = script("resolve", Bound, Placed, Moving, NoServer)
        self.bind: ScopedScript[Resolved] = script("bind", Bound, Placed, Moving, NoServer)
        self.release: ScopedScript[Released | NotOwner] = script("release", Released, NotOwner)
        self.renew: ScopedScript[Renewed | NotOwner] = script("renew", Renewed, NotOwner)
        self.freeze: ScopedScript[Freezes] = script("freeze", Freezes)
        self.commit: ScopedScript[Commits] = script("commit", Commits)
        self.reassert: ScopedScript[Reasserted] = script("reassert", Reasserted)
        self.repair: ScopedScript[Repaired | Dead | Changed] = script("repair", Repaired, Dead, Changed)
        self.beat: ScopedScript[Beaten | Unknown | Ended] = script("beat", Beaten, Unknown, Ended)
        self.bury: ScopedScript[Buried] = script("bury", Buried)
        self.sync: ScopedScript[Synced | Stale | Deposed] = script("sync", Synced, Stale, Deposed)
        self.tick: ScopedScript[Ticked | NewsLost | Deposed] = script("tick", Ticked, NewsLost, Deposed)
        self.replace: ScopedScript[Replaced | Deposed] = script("replace", Replaced, Deposed)
        self.board: ScopedScript[Board] = script("board", Board)
        self.append: ScopedScript[Appended] = script("append", Appended)
        self.trim: ScopedScript[Trimmed] = script("trim", Trimmed)
        self.moves_note: ScopedScript[Noted] = script("moves_note", Noted)
