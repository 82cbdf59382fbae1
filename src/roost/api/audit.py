"""Messages about what operators did."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from roost.api import Message
from roost.api.limits import Moment

Outcome = Literal["done", "refused"]
Via = Literal["http", "console", "cli"]
MAX_ENTRIES = 500


class AuditEntry(Message):
    """One act of an operator."""

    id: str
    at: Moment
    name: str
    """Of the token that was shown."""
    token_id: str
    scopes: list[str]
    """What the token allowed."""
    source: str = msgspec.field(name="from")
    """Address that the request came from."""
    action: str
    """What was done: `drain.start`."""
    target: str
    """To what: `job/01J…`."""
    before: Any
    """How it was, as far as that is known; null: not known."""
    after: Any
    """How it was left, or what was ordered."""
    outcome: Outcome
    code: str
    """Why it was refused."""
    request_id: str
    via: Via


class AuditPage(Message):
    entries: list[AuditEntry]
    """Newest first."""
    next: str = ""
    """The `before` of the page after this one; empty: there is none."""
