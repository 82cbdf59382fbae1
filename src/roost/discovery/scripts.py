"""The store's side of discovery as typed functions: one per Lua file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import get_args

from roost.store.keys import DISCOVERY, Key, Keys, SdPart
from roost.store.scripts import Bound, Library

LUA = files("roost.discovery") / "lua"


@dataclass(frozen=True, slots=True)
class Registered:
    life: int


@dataclass(frozen=True, slots=True)
class Taken:
    holder: str
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class Removed:
    cause: str


@dataclass(frozen=True, slots=True)
class Fenced:
    life: int


@dataclass(frozen=True, slots=True)
class Ok:
    pass


@dataclass(frozen=True, slots=True)
class Drain:
    pass


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


@dataclass(frozen=True, slots=True)
class Swept:
    clock_ms: int
    ended: list[str]
    suspected: list[str]
    held: list[str]


@dataclass(frozen=True, slots=True)
class Buried:
    pass


@dataclass(frozen=True, slots=True)
class Alive:
    pass


@dataclass(frozen=True, slots=True)
class Ordered:
    name: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    rev: int
    at: int
    records: list[bytes]
    beats: list[bytes]
    orders: list[bytes]


@dataclass(frozen=True, slots=True)
class Found:
    record: bytes
    beat: bytes
    order: bytes
    history: list[str]


@dataclass(frozen=True, slots=True)
class Gone:
    cause: str
    life: int
    at_ms: int
    place: str
    history: list[str]


@dataclass(frozen=True, slots=True)
class Repaired:
    cursor: str
    mended: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    cursor: str
    count: int


@dataclass(frozen=True, slots=True)
class Voted:
    live: int
    votes: list[str]


@dataclass(frozen=True, slots=True)
class Left:
    pass


class DiscoveryScripts:
    """Every script of discovery; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys) -> None:
        sd: dict[str, Key] = {part: keys.sd(part) for part in get_args(SdPart)}
        sd |= {"feed": keys.feed(DISCOVERY), "bell": keys.bell(DISCOVERY)}
        self.register: Bound[Registered | Taken | Removed | Fenced] = Bound(
            library.script("register", Registered, Taken, Removed, Fenced, folder=LUA), sd
        )
        self.heartbeat: Bound[Ok | Drain | Unknown | Removed | Fenced] = Bound(
            library.script("heartbeat", Ok, Drain, Unknown, Removed, Fenced, folder=LUA), sd
        )
        self.remove: Bound[Left | Unknown | Fenced] = Bound(
            library.script("remove", Left, Unknown, Fenced, folder=LUA), sd
        )
        self.sweep: Bound[Swept] = Bound(library.script("sweep", Swept, folder=LUA), sd)
        self.bury: Bound[Buried | Alive] = Bound(library.script("bury", Buried, Alive, folder=LUA), sd)
        self.override: Bound[Ordered | Unknown] = Bound(
            library.script("override", Ordered, Unknown, folder=LUA), sd
        )
        self.snapshot: Bound[Snapshot] = Bound(library.script("snapshot", Snapshot, folder=LUA), sd)
        self.get: Bound[Found | Gone | Unknown] = Bound(
            library.script("get", Found, Gone, Unknown, folder=LUA), sd
        )
        self.vote: Bound[Voted] = Bound(library.script("vote", Voted, folder=LUA), sd)
        self.repair: Bound[Repaired] = Bound(library.script("repair", Repaired, folder=LUA), sd)
        self.repair_place: Bound[Repaired] = Bound(library.script("repair_place", Repaired, folder=LUA), sd)
        self.forget: Bound[Forgotten] = Bound(library.script("forget", Forgotten, folder=LUA), sd)
