"""Messages about moving users off servers while they play, and the errors of that."""

from __future__ import annotations

from typing import Annotated, Literal

from roost.api import Message
from roost.api.binding import ENTITY
from roost.api.limits import MAX_TEXT, Count, Id, Moment, Name, Text, shown
from roost.core import errors as e

Kind = Literal["drain", "rebalance"]
JobState = Literal["running", "paused", "cancelled", "rolling-back", "reconciling", "done", "failed"]
"""reconciling: no move is under way any more, the last counts of the gates are awaited. It is over if it has
`endedAt`; it goes on from there only by a rollback."""

MAX_SERVERS = 64
MAX_DRAIN_RATE = 10_000
MAX_BLOCK_MS = 60_000
MAX_DEADLINE_S = 86_400
MAX_JOBS = 100
RATE = 100
"""Users that leave one server in a second, at most, where nobody says otherwise; document 001 has it so."""

Servers = Annotated[list[Id], shown(maxItems=MAX_SERVERS)]


class UnknownJob(e.NotFound):
    """There is no such drain job."""

    code = "UNKNOWN_JOB"
    hint = "`roost drain status` lists the jobs; those that ended long ago are forgotten"


class WrongJobState(e.Conflict):
    """The drain job is not in a state that allows this."""

    code = "JOB_STATE"
    hint = "`roost drain status JOB` shows its state"


class LastServer(e.Conflict):
    """It is the last server that takes users of a version that others need."""

    code = "LAST_SERVER"
    hint = "start another server of that version first"


class NowhereToMove(e.Conflict):
    """No other server takes these users."""

    code = "NOWHERE_TO_MOVE"
    hint = "start the new servers first; `roost bindings servers` shows who takes users"


class SchemaPoint(e.Conflict):
    """The rows were written by a version that the target cannot read."""

    code = "SCHEMA_POINT"
    hint = "move them to a version that reads their rows (min_reader of the entity class)"


class InvalidServerList(e.InvalidInput):
    """invalid server list"""  # the words of document 001

    code = "INVALID_SERVER_LIST"
    hint = "name each server once, as nodes[]=501&nodes[]=502"


class DrainInput(Message):
    """What to empty, and how."""

    servers: Servers = []
    """Server ids to empty. A rebalance takes none: it finds the crowded ones itself."""
    type: Name = ENTITY
    kind: Kind = "drain"
    to: Servers = []
    """Server ids that may take them; empty: all that take users."""
    version: Text = ""
    """Only servers of this version may take them; empty: of any."""
    rate: Annotated[int, shown(minimum=0, maximum=MAX_DRAIN_RATE)] = 0
    """Users in a second and source server, at most; less where the database or the moves are slow. 0: as is
    set (`ROOST_BINDING__DRAIN_RATE`)."""
    canary: Annotated[int, shown(minimum=0, maximum=100)] = 0
    """So many percent move first, then the job pauses until it is resumed; 0: all at once."""
    users: Count = 0
    """Of a rebalance: how many may move; 0: as many as it takes."""
    emptiest: Annotated[int, shown(minimum=0, maximum=MAX_SERVERS)] = 0
    """Instead of `servers`: so many of those with the fewest users, when fewer servers are needed. If a drain
    of as many runs, of whichever servers, it is the answer: an order that is repeated empties no others."""
    max_block_ms: Annotated[int, shown(minimum=0, maximum=MAX_BLOCK_MS)] = 0
    """How long a user may be held up; who would be held longer stays and is tried later. 0: as is set."""
    deadline_seconds: Annotated[int, shown(minimum=0, maximum=MAX_DEADLINE_S)] = 0
    """When users who cannot move now (`can_move`) are moved all the same. 0: as is set."""
    by: Annotated[str, shown(maxLength=MAX_TEXT, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """Who asks, for the record; printable."""
    plan: bool = False
    """Only tell what would be done."""


class JobCounts(Message):
    """Users by what became of them. Those that are on their way are in none but `users`."""

    users: int
    """As many as there were to move."""
    moved: int
    returned: int
    """Tried, and went on at the source: they are tried again."""
    later: int
    """Cannot move just now, by their own word."""
    pinned: int
    released: int
    """Held, but not in memory: the next request places them anew."""
    gone: int
    """Had left by themselves."""
    forced: int
    """Of those that moved: though they said that they cannot, because the deadline was over."""
    back: int
    """Brought home by a rollback."""


class Pauses(Message):
    """How long users were held up, ms."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    bounds_ms: list[int] = []
    """Upper bounds of the buckets of `counts`; the last bucket has none."""
    counts: list[int] = []
    """Users by how long they were held up."""


class CertificateView(Message):
    """What the gates counted while the users moved."""

    job: str
    holds: bool
    """Whether it is complete and nothing was lost, doubled, reordered or disconnected."""
    is_complete: bool
    """Whether every gate has told all of its counts. If not, what is missing is unknown, not zero."""
    missing: list[str]
    """Gates that have not told their last counts."""
    users: int
    moved: int
    returned: int
    released: int
    forced: int
    """Moved though they said that they cannot: the deadline was over."""
    requests: int
    answered: int
    refused: int
    open: int
    """Without an outcome yet."""
    lost: int | None
    """Null: nobody knows, because a gate is missing. A number beside a missing gate is the least."""
    doubled: int | None
    reordered: int | None
    disconnected: int | None
    longest_pause_ms: int
    gates: int
    """That have told their last counts."""
    notes: list[str]
    """Why it is incomplete, a line for each gate."""
    lines: list[str]
    """The same for people."""


class JobView(Message):
    """A drain, or a rebalance."""

    id: str
    type: str
    kind: Kind
    servers: list[str]
    to: list[str]
    version: str
    rate: int
    canary: int
    state: JobState
    why: str
    """Why it is in this state; empty where nothing is to be said."""
    by: str
    made_at: Moment
    started_at: Moment
    ended_at: Moment
    counts: JobCounts
    rate_now: float
    """Users in a second, of all servers together."""
    rate_why: str
    """Why the rate is what it is."""
    pauses: Pauses
    pinned: dict[str, str]
    """User → why they cannot move; a hundred at most."""
    eta_seconds: int | None
    """Until everybody has moved, at the rate of now; null: nobody knows."""
    certificate: CertificateView | None
    """Null while users move."""


class JobList(Message):
    jobs: list[JobView]
    """Newest first."""


class PlannedServer(Message):
    server_id: str
    version: str
    users: int
    """That it holds now."""
    moves: int
    """How many would leave it, or come to it."""
    capacity: int
    """0: no limit."""


class PlanView(Message):
    """What a job would do."""

    type: str
    kind: Kind
    users: int
    sources: list[PlannedServer]
    targets: list[PlannedServer]
    seats: int | None
    """Free ones at the targets; null: without limit."""
    seconds: float
    """At the rate that was asked for."""
    pinned: dict[str, str]
    """User → why they cannot move just now; a hundred at most."""
    later: int
    """Users who cannot move just now, but soon."""
    schema_point: str
    """From where on a rollback is refused; empty: nowhere, as far as the servers say."""
    rollback_until: str
    """Until when there is somewhere to go back to, for people."""
    notes: list[str]
    """What else to know before it is started."""


class DrainReply(Message):
    """Of the two, what was asked for."""

    job: JobView | None = None
    """The job that was started, or the one that empties these servers already."""
    plan: PlanView | None = None


class HotfixReply(Message):
    """As document 001 has it, and the job that does it."""

    status: Literal["success"]
    message: str
    nodes: list[str]
    job: str
    """Its id, for /drain/v1/jobs."""


class MoveView(Message):
    """What became of one attempt to move a user."""

    at: Moment
    job: str
    source: str
    target: str
    outcome: str
    """moved, returned, later, pinned, released, gone."""
    why: str
    phases: dict[str, float]
    """Phase → ms; `total` is how long the user was held up."""


class MoveList(Message):
    moves: list[MoveView]
    """Newest first; the last twenty of seven days."""
