"""Messages of discovery, as document 003 names their fields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from roost.api import Message
from roost.api.limits import (
    Count,
    Id,
    Labels,
    Name,
    Object,
    OptionalLife,
    OptionalName,
    Ports,
    Text,
    Ttl,
    Weight,
)

SelfStatus = Literal["initializing", "ready", "draining"]
"""What an instance may say of itself."""

Status = Literal["initializing", "ready", "draining", "suspect", "terminated", "no-response"]
"""What others see; `roost.discovery.rules` has a sentence for each and the table of transitions."""


class HealthCheck(Message):
    """How the instance can be probed, at its own address only."""

    kind: Literal["tcp", "http", "grpc", "udp"]
    port: Id
    """Name of one of its ports."""
    path: Text = "/"


EndCause = Literal["terminated", "crashed"]
"""Why an instance is taken out by those who ran it; an operator's act is `removed`."""


class Override(Message):
    """What an operator ordered for an instance; survives its re-registration."""

    drain: bool = False
    out_of_service: bool = False
    weight: Weight | None = None
    drain_life: OptionalLife = ""
    """The only life that `drain` is for, as a drain job orders it: a server that comes back takes users.
    Empty: every life, until it is lifted."""


class Record(Message):
    """What an instance says of itself that stays as it is while it lives. This is what the store keeps."""

    type: Name
    group: Name
    server_id: OptionalName = ""
    """Stable name such as 501, unique among the live instances of a type."""
    hostname: Text = ""
    public_ip: Text = ""
    """Taken from the connection when empty."""
    private_ip: Text = ""
    ports: Ports = {}
    capacity: Count = 0
    """Users it can take; 0: no limit."""
    version: Text = ""
    zone: Text = ""
    weight: Weight = 100
    labels: Labels = {}
    health: HealthCheck | None = None
    system_info: Object = {}


class RegisterInput(Record):
    """A record and the first beat with it."""

    instance_id: OptionalName = ""
    """Made by the server (ULID) when empty."""
    load: Count = 0
    performance: Object = {}
    status: SelfStatus = "ready"
    ttl_seconds: Ttl = 0.0
    """Silence after which it is dead; half of it makes it suspect. 0: what the profile says, 30 or 15 s."""
    former_life: OptionalLife = ""
    """Set when it registers again by itself after it was forgotten."""
    if not TYPE_CHECKING:  # taken in both forms, kept as an object
        system_info: Object | str = {}
        """An object, or the same as text: JSON in a string."""

    def __post_init__(self) -> None:
        if isinstance(self.system_info, str):
            self.system_info = _object_in(self.system_info)


def _object_in(text: str) -> dict[str, Any]:
    """The object that the text says; another text stays one, under `text`."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {"text": text}


class Registered(Message):
    instance_id: str
    life: str
    ttl_seconds: float
    heartbeat_interval_ms: int
    proof: str = ""
    """That this life is the caller's, for calls to a waiting room with a token that is bound to no server."""


class Beat(Message):
    """What rides on a heartbeat; what is left out stays as it was."""

    life: OptionalLife = ""
    status: SelfStatus | None = None
    load: Count | None = None
    performance: Object | None = None
    tick_age_ms: Count = 0
    """How long ago the main loop turned; a beat without progress does not renew."""
    proof: str = ""
    """Of this life, as it was given last: so a new one is given when the keys that sign are changed."""


class BeatReply(Message):
    status: Literal["OK", "DRAIN"]
    proof: str = ""
    """A new proof of this life, where the one that the beat showed is not by the key that signs now."""


class Probe(Message):
    """What a probe of an instance found."""

    ok: bool
    latency_ms: float
    error: str = ""
    asked: bool = True
    """Whether the instance was asked at all; if not, `error` says why, and nothing follows of its health."""


class Instance(Record, kw_only=True):
    """One instance as others see it."""

    instance_id: str
    life: str
    status: Status
    accepting: bool
    """Whether it takes a new user now: willing and not full. Discovery decides, all others read it."""
    last_heartbeat: str
    willing: bool = False
    """Accepting, whether full or not: it says it is ready, is not suspect (or its service is in panic), has a
    weight above 0, and no operator took it out. For those who count the seats themselves."""
    unhealthy: bool = False
    """The health checkers agree that it does not answer, whatever its beats say."""
    load: Count = 0
    performance: Object = {}
    override: Override | None = None
    probe: Probe | None = None

    def __post_init__(self) -> None:
        if self.accepting:  # also where a gateway of an older version left `willing` out
            self.willing = True


class InstanceList(Message):
    instances: list[Instance]
    revision: int
    revision_at: str = "0"
    """With the revision it names a point in one history; a watch goes on from it."""


class LifeEvent(Message):
    """One line of an instance's history."""

    at: str
    event: str
    life: str
    status: str


class CheckedServer(Message):
    """One server as a health checker sees it."""

    server_id: str
    instance_id: str
    life: str
    type: str
    group: str
    status: Status
    healthy: bool
    accepting: bool
    last_heartbeat: str
    votes: int
    """How many of the up to three checkers that judge it find it unhealthy."""
    probe: Probe | None = None
    """What it last answered; none if it declares no health check or was not asked yet."""


class HealthReport(Message):
    servers: list[CheckedServer]
    checkers: int
    """How many share the work; more than half of the up to three assigned to a server decide about it."""
    fell: int
    """Turns to unhealthy that this gateway has told since it runs."""
    rose: int


class InstanceDetail(Message):
    """One instance, living or gone, with its history."""

    instance: Instance | None
    status: Status | Literal["removed"]
    history: list[LifeEvent]


class Change(Message):
    """What a watcher sees. Snapshot and changes, applied in order, are what a list would say now.

    `added` for an instance id that is known under another life replaces it: the old life ended in the same
    write. The panic of a service that begins or ends comes as `changed` of everyone whose answer it changes;
    all but the last of these carry the revision before it, so that going on from a revision misses none.
    """

    event: Literal["snapshot", "added", "changed", "removed"]
    revision: int
    revision_at: str
    instance_id: str = ""
    life: str = ""
    server_id: str = ""
    status: str = ""
    instance: Instance | None = None
    """Of added and changed."""
    instances: list[Instance] | None = None
    """Of snapshot: the whole list, which replaces what the watcher had."""


class Watcher(Protocol):
    """A client, or discovery itself: `watch` yields a snapshot first, then every change."""

    def watch(self, type: str, group: str, /) -> AsyncIterator[Change]: ...  # noqa: A002
