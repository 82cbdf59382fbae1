"""Messages of the waiting room, as document 002 names their fields."""

from __future__ import annotations

from typing import Annotated, Literal

from roost.api import Message
from roost.api.limits import (
    Announcement,
    Count,
    Id,
    Life,
    Limit,
    Moment,
    Nickname,
    Number,
    OptionalName,
    PartySize,
    Rate,
    Url,
    WorldName,
    shown,
)

WORLD = "main"
RECEIPT_HEADER = "X-Queue-Receipt"
"""Proof of a place, towards the gateway."""
SIGNATURE_HEADER = "X-Queue-Signature"
"""The login service's word, where there is no receipt yet."""
TICKET_HEADER = "X-Queue-Ticket"
"""The ticket, towards a game server."""
Mode = Literal["auto", "hold", "closing", "queue-all", "off"]
How = Literal["clean", "dropped", "failed"]
"""How somebody left a game server: by intent, by a lost connection, or the hand-off never came about."""


class EntryInput(Message):
    user_id: Id
    nickname: Nickname = ""
    signature: str = ""
    """Of the login service; see `roost.sign_entry`."""
    region: Nickname = ""
    world: WorldName = WORLD
    party: OptionalName = ""
    """Whom they come with; believed without a signature in profile dev only."""
    party_size: PartySize = 1


class PlaceReply(Message):
    """What a person has. `rank` 1 is next; 0 means that there is nothing to wait for."""

    status: Literal["WAITING", "PROMOTED", "ENTERED", "NONE"]
    rank: int = 0
    world: str = WORLD
    ahead: int = 0
    """People before them who are there."""
    away_ahead: int = 0
    """People before them who are not there just now."""
    next_poll_ms: int = 0
    was_away: bool = False
    eta_seconds: int | None = None
    eta_high_seconds: int | None = None
    receipt: str = ""
    ticket_id: str = ""
    expires_in_ms: int = 0
    opens_in_ms: int = 0
    """Until the world opens; before that the order is not drawn, and rank is how many take part."""
    server_url: str = ""
    message: str = ""


class ConsumeInput(Message):
    ticket_id: str
    server_id: Id
    life: Life
    """Of this server, as discovery gave it."""
    connection: Id
    """Which connection asks; a retry of the same one gets the same answer."""
    world: WorldName = WORLD
    proof: str = ""
    """Of the server's life, as its registration returned it; not needed with a token bound to the server."""


class ConsumeReply(Message):
    user_id: str
    nickname: str
    region: str
    number: int
    """Ordinal of the consume in this life of the server; goes into its reports."""
    left_ms: int
    traceparent: str = ""
    """Context of the trace that the entry began, for spans of the server; empty: it was not sampled."""


class ReleaseInput(Message):
    user_id: Id
    life: Life
    connection: str
    how: How = "clean"
    proof: str = ""
    """Of the server's life, as its registration returned it; not needed with a token bound to the server."""


class ReleaseReply(Message):
    held_ms: int
    """How long the place is kept; 0: it is given up."""


class ReportInput(Message):
    life: Life
    number: Number
    """Of this report; a later one of the same life is larger."""
    capacity: Count
    users: Count
    counted: Count
    """The last consume that `users` counts."""
    url: Url = ""
    proof: str = ""
    """Of the server's life, as its registration returned it; not needed with a token bound to the server."""


class Asking(Message):
    user_id: str
    connection: str


class ReportReply(Message):
    consumed: int
    known: bool = True
    """Whether the waiting room knows this life of the server; until then it brings no capacity."""
    asking: list[Asking] = []
    """Who is inside by what the waiting room knows, and asks to come in: release whom you do not have."""


class ClassView(Message):
    name: str
    share: float
    """Of the tickets, while people of every class wait."""
    waiting: int
    away: int
    per_second: float


class ServerView(Message):
    server_id: str
    life: str
    capacity: int
    users: int
    """The most that may be on it."""
    url: str
    in_doubt: bool
    open: bool
    """Whether it takes new users, by what discovery says of it."""


class WorldView(Message):
    """A world as an operator sees it."""

    world: str
    server_type: str
    """Service type of its servers in discovery."""
    mode: Mode
    message: str
    revision: int
    waiting: int
    away: int
    tickets: int
    held: int
    inside: int
    capacity: int
    free: int
    limit: int | None
    rate: float | None
    opens_at: str | None
    draw_digest: str
    """SHA-256 of the seed by which places before the opening are drawn, known before anybody comes."""
    draw_seed: str
    """The seed itself, once the world is open: everybody can check their place."""
    classes: list[ClassView]
    servers: list[ServerView]
    pending: list[str]
    """Servers that report, and that discovery does not show as this world's: they count for nothing."""
    counters: dict[str, int]


class WorldList(Message):
    worlds: list[WorldView]


class WorldPatch(Message):
    """What is left out stays as it is; null takes a limit, a rate or a message away."""

    mode: Mode | None = None
    message: Announcement | None = ""
    limit: Limit | None = -1
    rate: Rate | None = -1.0
    opens_at: Moment | None = ""
    """ISO 8601; null opens it now."""
    revision: int | None = None
    """Refuse if it is another one by now."""


PersonState = Literal["waiting", "away", "offered", "inside", "held", "left", "unknown"]
"""offered: has a ticket. held: dropped out, the place inside is kept. left: had a place, `cause` says how it
was lost. unknown: nothing is known of them here."""


class PersonView(Message):
    """What somebody has in a world, as an operator sees it. Looking is no call of theirs."""

    user_id: str
    world: str
    state: PersonState
    class_name: str = ""
    nickname: str = ""
    rank: int = 0
    """1 is next; 0: none."""
    away_ahead: int = 0
    eta_seconds: int | None = None
    eta_high_seconds: int | None = None
    server_id: str = ""
    """Where they are inside."""
    left_ms: int = 0
    """Until their ticket ends, or the place that is held for them."""
    cause: str = ""


class ForecastInput(Message):
    """A change of a world that is only thought of; what is left out stays as it is."""

    limit: Limit | None = -1
    """People inside, at most; null: no limit but the servers'."""
    rate: Rate | None = -1.0
    """Tickets a second; null: no limit."""
    waiting: Count | None = None
    """How many would wait; null: as many as do."""
    leaving_per_second: Annotated[float, shown(minimum=0)] | None = None
    """How many leave the servers in a second; null: as the line has moved lately."""


class Forecast(Message):
    """How long people would wait. What cannot be known is null: nobody leaves, and no place is free."""

    waiting: int
    free: int
    """Places inside that would be free at once."""
    leaving_per_second: float
    issue_per_second: float
    """Tickets that can be issued in a second, at most."""
    median_seconds: float | None
    """For whoever is in the middle of the line."""
    last_seconds: float | None
    """For the last in the line."""
