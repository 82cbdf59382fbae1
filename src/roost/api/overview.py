"""Everything at a glance. A number that cannot be known is null, never 0."""

from __future__ import annotations

from typing import Literal

from roost.api import Message
from roost.api.drain import JobState
from roost.api.events import Happening, Level
from roost.api.limits import Moment


class WorldNumbers(Message):
    """One waiting room."""

    world: str
    mode: str | None = None
    waiting: int | None = None
    """Who stands in the line and calls."""
    present: int | None = None
    """The same: who is there."""
    away: int | None = None
    """Who has a place and does not call just now; in none of the two above."""
    tickets: int | None = None
    held: int | None = None
    inside: int | None = None
    capacity: int | None = None
    free: int | None = None
    issued_per_second: float | None = None
    entered_per_second: float | None = None
    consumed_total: int | None = None
    expired_total: int | None = None
    issued_total: int | None = None
    eta_seconds: int | None = None
    """Of whoever comes now."""
    message: str | None = None


class TypeNumbers(Message):
    type: str
    total: int
    accepting: int
    load: int
    capacity: int
    """Of those that have a limit; 0: none has."""


class ServerNumbers(Message):
    """Live instances by what keeps them from taking users; one may be in several of these."""

    total: int | None = None
    accepting: int | None = None
    suspect: int | None = None
    draining: int | None = None
    full: int | None = None
    out_of_service: int | None = None
    unhealthy: int | None = None
    by_type: list[TypeNumbers] = []


class HomeNumbers(Message):
    users: int | None = None
    moving: int | None = None
    """Whom the drains that move users now have still to move."""
    moves_per_second: float | None = None
    placed_per_second: float | None = None
    """Who came to a server: for the first time, again, or because theirs was gone."""


class JobNumbers(Message):
    """A drain that has not ended, or ended within the last ten minutes."""

    id: str
    state: JobState
    servers: list[str]
    moved: int
    users: int
    rate_now: float
    eta_seconds: int | None


class OrderNumbers(Message):
    """Null where no order server has ever been."""

    shards: int | None = None
    owned: int | None = None
    depth: int | None = None
    accepted_per_second: float | None = None
    rejected_per_second: float | None = None
    violations: int | None = None


class PlatformHealth(Message):
    store: Literal["ok", "away"]
    loops_failing: list[str]
    """Of this gateway."""
    leader: dict[str, str | None]
    """What is led → by whom; null: by nobody."""


class Attention(Message):
    """Something that a person should look at."""

    level: Level
    what: str
    subject: str
    todo: str
    code: str = ""
    """Which of the things that may need a person it is, for readers that say it in their own words."""
    params: dict[str, str] = {}
    """What varies in them."""


class Overview(Message):
    at: Moment
    worlds: list[WorldNumbers]
    servers: ServerNumbers
    homes: HomeNumbers
    jobs: list[JobNumbers]
    orders: OrderNumbers
    health: PlatformHealth
    attention: list[Attention]
    recent: list[Happening]
    """The last fifty events, newest first."""
    event_id: str = ""
    """Of the first of them: as Last-Event-ID of /events/v1 it goes on from there."""
