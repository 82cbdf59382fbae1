"""The store's side of lanes as typed functions: one per Lua file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roost.store.keys import Keys
from roost.store.keys.lanes import shard_keys
from roost.store.keys.placement import placement_keys
from roost.store.scopes import Scope
from roost.store.scripts import Library, ScopedScript, Script


@dataclass(frozen=True, slots=True)
class Leading:
    """The caller owns the shard under this epoch."""

    epoch: int
    now_us: int
    """The store's clock."""
    high_water_ms: int
    """Its ids lie above this time: up to it an earlier owner may have made some."""


@dataclass(frozen=True, slots=True)
class Held:
    holder: str
    epoch: int
    address: str
    server: str


@dataclass(frozen=True, slots=True)
class Resigned:
    pass


@dataclass(frozen=True, slots=True)
class NotLeading:
    pass


@dataclass(frozen=True, slots=True)
class Shard:
    """Who owns a shard; nobody: `holder` is empty. `left_ms` 0: the lease may be taken."""

    holder: str
    epoch: int
    address: str
    server: str
    status: str
    left_ms: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Who owns a shard, and for how long; `left_ms` 0: it may be taken."""

    holder: str
    epoch: int
    address: str
    server: str
    left_ms: int


@dataclass(frozen=True, slots=True)
class Saved:
    pass


@dataclass(frozen=True, slots=True)
class Staged:
    """Nothing of it is visible yet."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another owns the shard, by its log; epoch 0: the log is gone."""

    epoch: int


@dataclass(frozen=True, slots=True)
class OtherBase:
    """What is kept is not what the parts build on, or is later: send all parts. `at` is `<epoch>-<seq>`."""

    at: str


@dataclass(frozen=True, slots=True)
class Unstaged:
    """The parts that were sent first are not there any more."""


@dataclass(frozen=True, slots=True)
class Changed:
    version: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """It was so already."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The table is of this version, or does not allow it: look again."""

    version: int


@dataclass(frozen=True, slots=True)
class Indexed:
    count: int


Placing = Changed | Unchanged | Conflict
Saving = Saved | Staged | Fenced | OtherBase | Unstaged


class ShardScripts:
    """Every script on one shard; what each does is said in its Lua file."""

    def __init__(self, library: Library, keys: Keys, shard: Scope) -> None:
        of = shard_keys(keys, shard)

        def script(name: str, *answers: type[Any]) -> ScopedScript[Any]:
            return ScopedScript(library.script("lanes", name, *answers), of)

        self.campaign: ScopedScript[Leading | Held] = script("campaign", Leading, Held)
        self.resign: ScopedScript[Resigned | NotLeading] = script("resign", Resigned, NotLeading)
        self.shards: ScopedScript[Shard] = script("shards", Shard)
        self.look: ScopedScript[Seen] = script("look", Seen)
        self.snapshot: ScopedScript[Saving] = script("snapshot", Saved, Staged, Fenced, OtherBase, Unstaged)
        self.index_put: ScopedScript[Indexed] = script("index_put", Indexed)


class PlacementScripts:
    """The script on what all shards share."""

    def __init__(self, library: Library, keys: Keys) -> None:
        script: Script[Placing] = library.script("lanes", "placement", Changed, Unchanged, Conflict)
        self.placement = ScopedScript(script, placement_keys(keys))
