"""The store's side of discovery as typed functions: one per Lua file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from roost.store.keys import Keys
from roost.store.keys.discovery import discovery_keys
from roost.store.scripts import Library, ScopedScript


class GivenRegistration(NamedTuple):
    """The values that `register.lua` takes for one instance, checked."""

    instance_id: str
    service: str
    name: str
    record: bytes
    status: str
    load: int
    capacity: int
    performance: bytes
    ttl_ms: int
    nonce: str
    former_life: str


class GivenBeat(NamedTuple):
    """The values that `heartbeat.lua` takes for one beat, checked."""

    instance_id: str
    life: str
    status: str
    load: int | str
    performance: bytes
    tick_age_ms: int


@dataclass(frozen=True, slots=True)
class Answered:
    answers: list[str]


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
class Beaten:
    answers: list[str]


RegisterAnswer = Registered | Taken | Removed | Fenced


def register_answer(packed: str) -> RegisterAnswer:
    """One answer of `register`."""
    word, *rest = packed.split("\t")
    match word, rest:
        case "REGISTERED", [life]:
            return Registered(int(life))
        case "TAKEN", [holder, remaining_ms]:
            return Taken(holder, int(remaining_ms))
        case "REMOVED", [cause]:
            return Removed(cause)
        case "FENCED", [life]:
            return Fenced(int(life))
        case _:
            raise ValueError(f"a registration was answered {packed[:40]!r}")


BeatAnswer = Ok | Drain | Unknown | Removed | Fenced


def beat_answer(packed: str) -> BeatAnswer:
    """One answer of `heartbeat`."""
    word, _, rest = packed.partition("\t")
    match word:
        case "OK":
            return Ok()
        case "DRAIN":
            return Drain()
        case "UNKNOWN":
            return Unknown()
        case "REMOVED":
            return Removed(rest)
        case "FENCED":
            return Fenced(int(rest))
        case _:
            raise ValueError(f"a beat was answered {packed[:40]!r}")


@dataclass(frozen=True, slots=True)
class Swept:
    clock_ms: int
    ended: list[str]
    suspected: list[str]
    held: list[str]

    @property
    def looked(self) -> int:
        """How many were due."""
        return len(self.ended) + len(self.suspected) + len(self.held)

    def __add__(self, later: Swept) -> Swept:
        """What two sweeps found."""
        return Swept(
            later.clock_ms,
            self.ended + later.ended,
            self.suspected + later.suspected,
            self.held + later.held,
        )


@dataclass(frozen=True, slots=True)
class Ended:
    pass


@dataclass(frozen=True, slots=True)
class Alive:
    pass


@dataclass(frozen=True, slots=True)
class Overridden:
    name: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    rev: int
    at: int
    records: list[bytes]
    beats: list[bytes]
    overrides: list[bytes]
    panics: list[str]


@dataclass(frozen=True, slots=True)
class Found:
    record: bytes
    beat: bytes
    override: bytes
    panic: int
    history: list[str]


@dataclass(frozen=True, slots=True)
class Gone:
    cause: str
    life: int
    at_ms: int
    service: str
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
    live: list[str]
    joined: int


@dataclass(frozen=True, slots=True)
class Left:
    pass


class DiscoveryScripts:
    """Every script of discovery; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys) -> None:
        sd = discovery_keys(keys)

        def script(name: str, *answers: type[Any]) -> ScopedScript[Any]:
            return ScopedScript(library.script("discovery", name, *answers), sd)

        self.register: ScopedScript[Answered] = script("register", Answered)
        self.heartbeat: ScopedScript[Beaten] = script("heartbeat", Beaten)
        self.remove: ScopedScript[Left | Unknown | Fenced] = script("remove", Left, Unknown, Fenced)
        self.sweep: ScopedScript[Swept] = script("sweep", Swept)
        self.end_silent: ScopedScript[Ended | Alive] = script("end_silent", Ended, Alive)
        self.override: ScopedScript[Overridden | Unknown] = script("override", Overridden, Unknown)
        self.snapshot: ScopedScript[Snapshot] = script("snapshot", Snapshot)
        self.get: ScopedScript[Found | Gone | Unknown] = script("get", Found, Gone, Unknown)
        self.vote: ScopedScript[Voted] = script("vote", Voted)
        self.repair: ScopedScript[Repaired] = script("repair", Repaired)
        self.repair_service: ScopedScript[Repaired] = script("repair_service", Repaired)
        self.forget: ScopedScript[Forgotten] = script("forget", Forgotten)
