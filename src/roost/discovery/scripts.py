"""The store's side of discovery as typed functions: one per Lua file."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Generic, TypeVar, get_args

from roost.store.keys import DISCOVERY, Key, Keys, SdPart
from roost.store.scripts import Library, Script

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


Answer = TypeVar("Answer")


class _Bound(Generic[Answer]):
    """A script with the keys of discovery already in place."""

    def __init__(self, script: Script[Answer], keys: dict[str, Key]) -> None:
        self._script = script
        self._keys = {parameter.name: keys[parameter.name] for parameter in script.contract.keys}

    def __call__(self, **args: Any) -> Coroutine[Any, Any, Answer]:
        named: dict[str, Any] = {**self._keys, **args}
        return self._script(**named)


class DiscoveryScripts:
    """Every script of discovery; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys) -> None:
        sd = {part: keys.sd(part) for part in get_args(SdPart)}
        sd |= {"feed": keys.feed(DISCOVERY), "bell": keys.bell(DISCOVERY)}
        self.register: _Bound[Registered | Taken | Removed | Fenced] = _Bound(
            library.script("register", Registered, Taken, Removed, Fenced, folder=LUA), sd
        )
        self.heartbeat: _Bound[Ok | Drain | Unknown | Removed | Fenced] = _Bound(
            library.script("heartbeat", Ok, Drain, Unknown, Removed, Fenced, folder=LUA), sd
        )
        self.remove: _Bound[Left | Unknown | Fenced] = _Bound(
            library.script("remove", Left, Unknown, Fenced, folder=LUA), sd
        )
        self.sweep: _Bound[Swept] = _Bound(library.script("sweep", Swept, folder=LUA), sd)
        self.bury: _Bound[Buried | Alive] = _Bound(library.script("bury", Buried, Alive, folder=LUA), sd)
        self.override: _Bound[Ordered | Unknown] = _Bound(
            library.script("override", Ordered, Unknown, folder=LUA), sd
        )
        self.snapshot: _Bound[Snapshot] = _Bound(library.script("snapshot", Snapshot, folder=LUA), sd)
        self.get: _Bound[Found | Gone | Unknown] = _Bound(
            library.script("get", Found, Gone, Unknown, folder=LUA), sd
        )
        self.vote: _Bound[Voted] = _Bound(library.script("vote", Voted, folder=LUA), sd)
        self.repair: _Bound[Repaired] = _Bound(library.script("repair", Repaired, folder=LUA), sd)
        self.repair_place: _Bound[Repaired] = _Bound(library.script("repair_place", Repaired, folder=LUA), sd)
        self.forget: _Bound[Forgotten] = _Bound(library.script("forget", Forgotten, folder=LUA), sd)
