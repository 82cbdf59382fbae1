"""Whatever repeats for ever goes through `core/loops.py`, which counts and restarts it."""

from __future__ import annotations

import ast

from tests.architecture.source import Module, modules, parse_module

SUPERVISOR = "roost.core.loops"

ENDS_BY_ITSELF = {
    "roost.store.feed.Feed.follow": "a generator: its reader decides how long it lasts",
    "roost.discovery.service.Discovery.watch": "a generator: its reader decides how long it lasts",
    "roost.binding.service.Bindings.follow": "a generator: its reader decides how long it lasts",
    "roost.waitingroom.desk.Desk.changes": "a generator: its reader decides how long it lasts",
    "roost.sdk.watching.Watch.changes": "a generator: its reader decides how long it lasts",
    "roost.gateway.live.live.Live.events": "a generator: its reader decides how long it lasts",
    "roost.web.stream.stream": "lasts as long as its reader stays",
    "roost.servers.newcomers.receive": "until a message comes; what is none is counted",
    "roost.discovery.reaper.Reaper.repair": "a cursor comes round",
    "roost.sdk.client.Client._register_when_free": "has a deadline",
    "roost.servers.hosting._players_url": "has a deadline",
    "roost.servers.hosting._registered": "has a deadline",
    "roost.drills.player.Player._ask": "has a deadline",
    "roost.drills.player.Player._get_in": "within the patience of the player",
    "roost.db.network.NetworkBackend._until_done": "within the time of the verb",
    "roost.db.network.walk": "a verb has a few statements",
}
"""Async functions with `while True` that are no background loops, and why they end."""


def endless_in(module: Module) -> list[str]:
    """Names of the async functions that hold a `while True`."""
    return sorted(
        {
            f"{module.name}.{name}"
            for name, function in _functions(module.tree)
            for node in ast.walk(function)
            if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value is True
        }
    )


def test_nothing_repeats_for_ever_outside_the_supervisor() -> None:
    found = [name for module in _product() for name in endless_in(module)]
    assert sorted(set(found) - ENDS_BY_ITSELF.keys()) == []


def _product() -> list[Module]:
    return [m for m in modules().values() if m.name != SUPERVISOR and m.group != "testing"]


def test_the_list_of_exceptions_is_no_longer_than_it_must_be() -> None:
    found = {name for module in modules().values() for name in endless_in(module)}
    assert sorted(ENDS_BY_ITSELF.keys() - found) == []


def test_a_loop_outside_the_supervisor_would_be_found() -> None:
    text = "class A:\n    async def run(self):\n        while True:\n            await x()\n"
    module = parse_module("roost.x", modules()["roost.core"].path, text, "roost")
    assert endless_in(module) == ["roost.x.A.run"]


def _functions(tree: ast.AST, prefix: str = "") -> list[tuple[str, ast.AsyncFunctionDef]]:
    found: list[tuple[str, ast.AsyncFunctionDef]] = []
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}{getattr(node, 'name', '')}"
        if isinstance(node, ast.AsyncFunctionDef):
            found.append((name, node))
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found += _functions(node, f"{name}.")
    return found
