"""The names of the demo: nothing else has them, so that it can be told apart and taken out again."""

from __future__ import annotations

from pathlib import Path

PREFIX = "demo-"
"""Types, servers, users and accounts of the demo begin with it."""
WORLD = "demo"
ENTITY = "demo-entity"
GATE = "demo-gate"
GAME = "demo-game"
ORDERS = "demo-orders"
TYPES = (ENTITY, GATE, GAME, ORDERS)
GROUP = "demo"
SYMBOL = "DEMO-"
OTHERS_ORDERS = "orders"
"""The service type of order servers that are not the demo's."""

GAME_CAPACITY = 12
CROWD = 120
"""People that one flood sends."""

FIRST_SERVER = 501
"""`demo-501` is the first entity server; those that come after it count on."""


def entity_id(number: int) -> str:
    """The server id of the n-th entity server, from 0."""
    return f"{PREFIX}{FIRST_SERVER + number}"


def entity_version(number: int) -> str:
    return f"1.{number}"


def folder_of(data: Path) -> Path:
    """Where the demo keeps its database and what it must take out again; gone when it is."""
    return data / "demo"


def is_demo(name: object) -> bool:
    return isinstance(name, str) and (name == WORLD or name.startswith(PREFIX))
