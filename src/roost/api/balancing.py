"""Messages about which server takes the next user."""

from __future__ import annotations

from typing import Annotated

from roost.api import Message
from roost.api.limits import (
    MAX_KEYS,
    MAX_PREVIEW_NODES,
    Name,
    SlowStart,
    Strategy,
    Text,
    Weight,
    shown,
)


class Selected(Message):
    """The server for a key, or why there is none."""

    key: str
    server_id: str | None
    refusal: str = ""
    host: str = ""
    ports: dict[str, int] = {}
    zone: str = ""
    candidates: list[str] = []
    """Who was chosen, then who else could be by the same strategy, best first, where they were asked for."""


class SelectInput(Message):
    type: Name
    keys: Annotated[list[str], shown(maxItems=MAX_KEYS)]
    group: Name = "*"
    strategy: Strategy = "consistent_hash"
    zone: Text = ""
    """Servers of this zone first; those of others where none of it takes users."""
    slow_start_seconds: SlowStart = 0
    """The weight of a server in a new life grows over so many seconds."""


class SelectedList(Message):
    selections: list[Selected]


class RingNode(Message):
    server_id: str
    weight: int
    share: float
    """Of all keys, exactly."""
    accepting: bool
    why_not: str = ""


class Ring(Message):
    """How keys spread over the servers of a service."""

    nodes: list[RingNode]
    points: list[int] = []
    """The circle at so many places as were asked for, evenly spread: whose it is there, by its number in
    `nodes`; -1: nobody's."""


class NodeInput(Message):
    server_id: Annotated[str, shown(minLength=1)]
    weight: Weight = 100


class PreviewInput(Message):
    """A change of the fleet that is only thought of."""

    type: Name
    group: Name = "*"
    add: Annotated[list[NodeInput], shown(maxItems=MAX_PREVIEW_NODES)] = []
    remove: Annotated[list[str], shown(maxItems=MAX_PREVIEW_NODES)] = []


class Move(Message):
    source: str | None
    target: str | None
    share: float


class Preview(Message):
    """What share of all keys would move, and from where to where."""

    moved: float
    moves: list[Move]


class Considered(Message):
    server_id: str
    why_not: str
    """Empty if it takes new users."""


class Explained(Message):
    key: str
    strategy: str
    chosen: str | None
    refusal: str
    considered: list[Considered]
    position: float = 0.0
    """Where the key lies on the circle of the default strategy, from 0 to 1."""
