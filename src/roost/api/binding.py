"""Messages about which server holds a user, and the errors of binding."""

from __future__ import annotations

from typing import Literal

from roost.api import Message
from roost.core import errors as e

ENTITY = "entity"
"""Service type of the servers that hold users, where nobody names one."""

HomeState = Literal["held", "moving", "released"]
"""moving: to another server, for milliseconds. released: nobody holds them until they come again."""


class UnknownBinding(e.NotFound):
    """No server holds this user."""

    code = "UNKNOWN_BINDING"
    hint = "a user is placed by their first request; `roost bindings servers` shows who takes users"


class UnknownHolder(e.NotFound):
    """No server of this id holds users."""

    code = "UNKNOWN_HOLDER"
    hint = "`roost bindings servers` shows those that do"


class Home(Message):
    """Who holds a user."""

    user_id: str
    type: str
    state: HomeState
    server_id: str
    """Empty if they were released."""
    life: str
    epoch: int
    """The number of this grant, µs; it only rises."""
    since: str
    why: str
    """new, return, failover, seen, move-expired, renewed, reasserted, repaired; released, unbound, idle."""


class HomeList(Message):
    homes: list[Home]
    """Empty where nobody holds the user."""


class HomeChange(Message):
    """One line of a user's history."""

    at: str
    why: str
    server_id: str
    life: str
    epoch: int
    source: str
    """Server id of who held them before; empty if nobody did."""


class HomeHistory(Message):
    changes: list[HomeChange]
    """Newest first, as far back as the feed reaches."""


class Holder(Message):
    """A server that holds users."""

    server_id: str
    life: str
    accepting: bool
    """Whether a new user may be placed on it now."""
    open: bool
    """Whether discovery says that it takes new users, were it not for its seats."""
    alive: bool
    """Whether its lease holds: without it its users are placed anew."""
    users: int
    capacity: int
    """0: no limit."""
    version: str


class HolderList(Message):
    servers: list[Holder]
    available_entities: dict[str, bool]
    """Server id → whether it takes new users, as document 001 has it."""
    binders: dict[str, int]
    """Server id → how many users it holds."""


class HeldUsers(Message):
    users: list[str]
    cursor: str
    """Where the next page begins; empty after the last one."""
