"""A drain job: what was asked for, how far it is, and what it may become.

A job is kept in two parts: the order, written once, and the progress, which only the controller writes under
its lease. The state stands beside both, because operators change it too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from roost.api.drain import JobState, Kind
from roost.core.owner import Owner

ENTITY = "entity"
PAUSE_MS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2500, 5000)
"""Upper bounds of the histogram of pauses; what is longer is in the last bucket, which has none."""
MAX_PINNED = 100
MAX_GATES = 1000

ENDED: frozenset[JobState] = frozenset({"cancelled", "done", "failed"})
"""Nobody is moved any more; a job in one of these goes on only by a rollback."""
MOVES_NOBODY: frozenset[JobState] = ENDED | {"reconciling"}
"""But for whom a cancelled one had begun to move."""
COUNTS = ("users", "moved", "returned", "later", "pinned", "released", "gone", "forced", "back")


class DrainRequest(msgspec.Struct, kw_only=True):
    """What an operator asks for."""

    servers: list[str] = []
    """Server ids to empty; of a rebalance those that may give users away, empty: any."""
    emptiest: int = 0
    """Instead of `servers`: so many of those with the fewest users; 0: none."""
    type: str = ENTITY
    kind: Kind = "drain"
    to: list[str] = []
    """Server ids that may take them; empty: all that take users."""
    version: str = ""
    """Only servers of this version may take them; empty: of any."""
    rate: int = 0
    """Users in a second and source server, at most. 0, here and below: as is set."""
    canary: int = 0
    """So many percent first, then it pauses by itself; 0: no canary."""
    users: int = 0
    """Of a rebalance: how many may move; 0: as many as it takes."""
    max_block_ms: int = 0
    deadline_s: float = 0.0
    """When `can_move` does not count any more, after the start."""
    by: str = ""


class Pauses(msgspec.Struct):
    """How long users were held up."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(PAUSE_MS) + 1))
    """By the bounds of `PAUSE_MS`; the last has none."""
    max_ms: float = 0.0
    total_ms: float = 0.0

    def observe(self, ms: float) -> None:
        self.counts[bisect_left(PAUSE_MS, ms)] += 1
        self.max_ms = max(self.max_ms, ms)
        self.total_ms += ms

    def quantile(self, share: float) -> float:
        """The bound below which this share of the pauses is; of the last bucket the longest pause."""
        wanted, seen = share * sum(self.counts), 0
        for bound, count in zip(PAUSE_MS, self.counts, strict=False):
            seen += count
            if count and seen >= wanted:
                return min(float(bound), self.max_ms)
        return self.max_ms


class Order(msgspec.Struct, kw_only=True):
    """What a job is to do: written once, when it starts."""

    id: str
    type: str
    kind: Kind
    sources: list[str]
    lives: dict[str, str]
    """Server id → its life at the start: another life of it is another server."""
    to: list[str]
    version: str
    rate: int
    canary: int
    max_block_ms: int
    deadline_s: float
    quota: dict[str, int]
    """Of a rebalance: how many users each source gives away."""
    by: str


class Progress(msgspec.Struct, kw_only=True):
    """How far it is: written by the controller only."""

    started_at: float = 0.0
    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    rate_now: float = 0.0
    rate_why: str = ""
    pauses: Pauses = msgspec.field(default_factory=Pauses)
    pinned: dict[str, str] = {}
    """User → why; a hundred at most."""
    pending: dict[str, list[str]] = {}
    """User → source, then server id and life of where they are and of where they go, of a move that was sent
    and has not been answered. Whoever takes the job over looks in the map what became of them."""
    unheard: dict[str, list[str]] = {}
    """User → source, then server id and life of where they were, and of each server to which they were sent
    without an answer: such a move may come about after the map was asked."""
    given: dict[str, int] = {}
    """Source → how many have left it by this job."""
    totals: dict[str, int] = {}
    """Source → how many there were to move."""
    over: dict[str, str] = {}
    """Source → how its part ended: empty, gone (its life is over)."""
    overridden: list[str] = []
    """Sources whose override `drain` is this job's."""
    retired: list[str] = []
    """Sources that were empty: saved before they are told to leave."""
    canary_done: bool = False
    lives: dict[str, str] = {}
    """Source → its life now, where it registered again by itself while it was drained."""
    gates: list[str] = []
    """Names of the gates that were there while users moved."""
    late: list[str] = []
    """Of these, who had told nothing yet when the first user was moved."""
    outcome: JobState = "done"
    """What it becomes after `reconciling`, and why."""
    outcome_why: str = ""
    certificate: dict[str, object] | None = None


class Job(msgspec.Struct, kw_only=True):
    """A job as its readers see it."""

    id: str
    type: str
    kind: Kind
    sources: list[str]
    lives: dict[str, str]
    to: list[str]
    version: str
    rate: int
    canary: int
    max_block_ms: int
    deadline_s: float
    quota: dict[str, int]
    by: str
    state: JobState
    why: str
    made_at: float
    """Seconds since 1970, as are the others; 0: not yet."""
    started_at: float
    ended_at: float
    counts: Mapping[str, int]
    """By the names of `COUNTS`. `returned` counts attempts; `later` and `pinned` are those of the last look;
    `back` are those whom a rollback brought home."""
    last_rate: float
    """At which users moved when any did."""
    rate_why: str
    pauses: Pauses
    pinned: dict[str, str]
    certificate: dict[str, object] | None
    """None before it is over: also of one that goes on by a rollback."""

    @property
    def is_moving(self) -> bool:
        return self.state in ("running", "rolling-back")

    @property
    def rate_now(self) -> float:
        """Users in a second; 0 where nobody is to be moved just now."""
        return self.last_rate if self.is_moving else 0.0

    @property
    def left(self) -> int:
        """Users that are still to be moved; of a rollback, to be moved back."""
        if self.state == "rolling-back":
            return max(0, self.counts.get("moved", 0) - self.counts.get("back", 0))
        done = sum(self.counts.get(name, 0) for name in ("moved", "released", "gone"))
        return max(0, self.counts.get("users", 0) - done)

    @property
    def eta_s(self) -> float | None:
        """At the rate of now; None: it does not move anybody just now."""
        return self.left / self.rate_now if self.rate_now > 0 else None

    @property
    def is_over(self) -> bool:
        return self.ended_at > 0


class RunningJob(NamedTuple):
    """What gates ask for every second."""

    id: str
    type: str
    sources: tuple[Owner, ...]
    state: JobState
    epoch: int
    """When it began, µs of the store's clock."""
    to: tuple[str, ...] = ()
    version: str = ""

    @property
    def moves_nobody(self) -> bool:
        return self.state in MOVES_NOBODY

    @property
    def is_settled(self) -> bool:
        """No move is under way any more: the last reports of the gates are awaited."""
        return self.moves_nobody and self.state != "cancelled"


class PlannedServer(msgspec.Struct):
    server_id: str
    version: str
    users: int
    moves: int
    """How many would leave it, or come to it."""
    capacity: int
    """0: no limit."""


class Plan(msgspec.Struct, kw_only=True):
    """What a job would do."""

    type: str
    kind: Kind
    users: int
    """That would move."""
    sources: list[PlannedServer]
    targets: list[PlannedServer]
    seats: int | None
    """Free ones at the targets; None: without limit."""
    seconds: float
    """At the rate that was asked for."""
    pinned: dict[str, str]
    """User → why they cannot move just now; a hundred at most."""
    later: int
    schema_point: str
    """From where on a rollback is refused; empty: nowhere, as far as can be known."""
    rollback_until: str
    """Until when there is somewhere to go back to."""
    notes: list[str]
    """What else to know before it is started."""


class MoveNote(msgspec.Struct, kw_only=True):
    """What became of one attempt to move one user, kept for seven days."""

    at: float
    job: str
    source: str
    target: str
    outcome: str
    why: str = ""
    phases: dict[str, float] = {}
    epoch: int = 0


def job_of(order: Order, progress: Progress, state: JobState, why: str, made_us: int, ended_us: int) -> Job:
    shared = {name: getattr(order, name) for name in Order.__struct_fields__}
    names = ("started_at", "counts", "rate_why", "pauses", "pinned")
    told = {name: getattr(progress, name) for name in names}
    told["certificate"] = progress.certificate if ended_us else None  # a rollback's is not of the way there
    shared["lives"] = order.lives | progress.lives
    told["last_rate"] = progress.rate_now
    return Job(**shared, **told, state=state, why=why, made_at=made_us / 1e6, ended_at=ended_us / 1e6)
