"""What happens, in one stream for people: the same events in the console, on the command line, over HTTP."""

from __future__ import annotations

from typing import Any, Literal, get_args

from roost.api import Message
from roost.api.limits import Moment

EventScope = Literal["discovery", "queue", "binding", "drain", "orders", "audit", "overview"]
EVENT_SCOPES: tuple[EventScope, ...] = get_args(EventScope)
Level = Literal["info", "warning", "error"]


class Happening(Message):
    """Something that happened, in one sentence and in parts."""

    scope: EventScope
    event: str
    """What happened, one word: with the scope it names a text in other languages."""
    at: Moment
    subject: str
    """What it happened to: `game/501`, `world/main`, `job/01J…`."""
    text: str
    """In English, for people."""
    level: Level = "info"
    details: dict[str, Any] = {}


class StreamGap(Message):
    """Something may have been missed: look at the overview again. The stream goes on from now."""

    scope: str
    """Of which; empty: of all."""
    at: Moment
