"""The store's side of a waiting room as typed functions: one per Lua file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from roost.store.keys import Keys
from roost.store.keys.waitingroom import world_keys
from roost.store.scopes import Scope
from roost.store.scripts import Library, ScopedScript


@dataclass(frozen=True, slots=True)
class Waiting:
    seq: int
    rank: int
    """1 is next."""
    away_ahead: int
    was_away: int
    poll_ms: int
    fast: int
    """Thousandths of a person in a second, over the last minute."""
    slow: int
    line: str
    """Suffix of their class's line."""
    opens_ms: int
    """Until the world opens; before that, rank is how many take part in the draw."""


@dataclass(frozen=True, slots=True)
class Offered:
    seq: int
    tid: str
    left_ms: int


@dataclass(frozen=True, slots=True)
class Inside:
    server: str


@dataclass(frozen=True, slots=True)
class Held:
    left_ms: int


@dataclass(frozen=True, slots=True)
class Limited:
    retry_ms: int


@dataclass(frozen=True, slots=True)
class Closed:
    mode: str


@dataclass(frozen=True, slots=True)
class Full:
    waiting: int


@dataclass(frozen=True, slots=True)
class NoPlace:
    cause: str


@dataclass(frozen=True, slots=True)
class Statuses:
    found: list[str]


@dataclass(frozen=True, slots=True)
class Touched:
    count: int


@dataclass(frozen=True, slots=True)
class Left:
    pass


@dataclass(frozen=True, slots=True)
class Admitted:
    number: int
    nickname: str
    region: str
    left_ms: int
    trace: str = ""
    """Context of the entry's span; empty: it was not sampled."""


@dataclass(frozen=True, slots=True)
class Used:
    pass


@dataclass(frozen=True, slots=True)
class Expired:
    pass


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


@dataclass(frozen=True, slots=True)
class ServerFull:
    pass


@dataclass(frozen=True, slots=True)
class ServerUnknown:
    pass


@dataclass(frozen=True, slots=True)
class Released:
    held_ms: int


@dataclass(frozen=True, slots=True)
class NotInside:
    pass


@dataclass(frozen=True, slots=True)
class Reported:
    consumed: int
    asking: list[str] = field(default_factory=list)
    """User and connection, in turn."""


@dataclass(frozen=True, slots=True)
class Pending:
    pass


@dataclass(frozen=True, slots=True)
class Stale:
    pass


@dataclass(frozen=True, slots=True)
class Fenced:
    life: int


@dataclass(frozen=True, slots=True)
class Dropped:
    remaining: int


@dataclass(frozen=True, slots=True)
class Governed:
    revision: int


@dataclass(frozen=True, slots=True)
class Conflict:
    revision: int


@dataclass(frozen=True, slots=True)
class Board:
    numbers: list[str]
    servers: list[str]
    pending: list[str]
    offers: int
    held: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class Ticked:
    issued: int
    expired: int
    gone: int
    waiting: int
    room: int
    more: int
    tickets: list[str] = field(default_factory=list, compare=False)
    """User and ticket id in turn, in the order of their turns."""
    traces: list[str] = field(default_factory=list, compare=False)
    """Ticket id and context of the entry's span in turn, of those who were sampled."""


@dataclass(frozen=True, slots=True)
class NewsLost:
    pass


@dataclass(frozen=True, slots=True)
class Deposed:
    pass


@dataclass(frozen=True, slots=True)
class Synced:
    remaining: int
    """People of ended lives who are still to be let out."""
    absent: list[str]
    """Server id and life, in turn, of rows that the news did not name."""


@dataclass(frozen=True, slots=True)
class Seen:
    state: str
    """waiting, away, offered, inside, held, left; empty: nothing is known of them."""
    line: str
    rank: int
    away_ahead: int
    nickname: str
    server: str
    left_ms: int
    cause: str


Place = Waiting | Offered | Inside
Entered = Waiting | Offered | Inside | Held | Limited | Closed | Full
Found = Waiting | Offered | Inside | Held | Limited | NoPlace
Consumed = Admitted | Used | Expired | Unknown | ServerFull | ServerUnknown


_FOUND: dict[str, tuple[Callable[..., Found], tuple[Callable[[str], int | str], ...]]] = {
    "WAITING": (Waiting, (int, int, int, int, int, int, int, str, int)),
    "OFFERED": (Offered, (int, str, int)),
    "INSIDE": (Inside, (str,)),
    "HELD": (Held, (int,)),
    "LIMITED": (Limited, (int,)),
    "NO_PLACE": (NoPlace, (str,)),
}


def found_of(packed: str) -> Found:
    """One answer of `status`: a word and its fields."""
    word, *fields = packed.split("\t")
    answer, types = _FOUND[word]
    return answer(*[convert(field) for convert, field in zip(types, fields, strict=True)])


class WorldScripts:
    """Every script on one world; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys, world: Scope) -> None:
        of = world_keys(keys, world)

        def script(name: str, *answers: type[Any]) -> ScopedScript[Any]:
            return ScopedScript(library.script("waitingroom", name, *answers), of)

        self.enter: ScopedScript[Entered] = script(
            "enter", Waiting, Offered, Inside, Held, Limited, Closed, Full
        )
        self.status: ScopedScript[Statuses] = script("status", Statuses)
        self.touch: ScopedScript[Touched] = script("touch", Touched)
        self.leave: ScopedScript[Left | NoPlace | Inside] = script("leave", Left, NoPlace, Inside)
        self.admit: ScopedScript[Ticked | NewsLost | Deposed] = script("admit", Ticked, NewsLost, Deposed)
        self.sync: ScopedScript[Synced | Stale | Deposed] = script("sync", Synced, Stale, Deposed)
        self.consume: ScopedScript[Consumed] = script(
            "consume", Admitted, Used, Expired, Unknown, ServerFull, ServerUnknown
        )
        self.release: ScopedScript[Released | NotInside] = script("release", Released, NotInside)
        self.report: ScopedScript[Reported | Pending | Stale | Fenced] = script(
            "report", Reported, Pending, Stale, Fenced
        )
        self.drop: ScopedScript[Dropped] = script("drop", Dropped)
        self.govern: ScopedScript[Governed | Conflict] = script("govern", Governed, Conflict)
        self.board: ScopedScript[Board] = script("board", Board)
        self.look: ScopedScript[Seen] = script("look", Seen)
