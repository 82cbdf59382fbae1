"""A transport without network and store, for tests of what is built on the SDK.

    transport = FakeTransport()
    async with transport.client() as client:
        transport.script.refuse("register", StoreUnavailable(), times=1)
        transport.script.lose("consume")                   # done, but the reply gets lost
        gates = transport.script.hold("consume")           # done, but the reply waits: gates["ann"].open()
        ...
    assert transport.script.count("register") == 2

It keeps what its own verbs were told and knows nothing of leases, lines or tickets: for those run a store.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from roost.api.binding import Home, UnknownBinding
from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    EndCause,
    Instance,
    InstanceDetail,
    InstanceList,
    Record,
    Registered,
    RegisterInput,
)
from roost.api.queue import (
    Asking,
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.core.errors import (
    FencedInstance,
    RemovedInstance,
    ServerIdTaken,
    ServerNotReported,
    TicketUsed,
    UnknownInstance,
)
from roost.core.events import Mark
from roost.core.loops import Loops
from roost.core.passes import peek_user
from roost.sdk.client import Client
from roost.testing.script import ALL, Gate, Script


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The question of a list or a watch; of labels only `name=value` is understood."""

    type: str
    group: str
    labels: Sequence[str]

    def fits(self, one: Instance) -> bool:
        pairs = [label.partition("=") for label in self.labels]
        return (
            self.type in (ALL, one.type)
            and self.group in (ALL, one.group)
            and all(one.labels.get(name) == value for name, _, value in pairs)
        )


@dataclass
class _Watcher:
    wanted: _Wanted
    waiting: list[Change | Exception] = field(default_factory=list)
    news: Gate = field(default_factory=Gate)

    def hear(self, change: Change | Exception) -> None:
        self.waiting.append(change)
        gate, self.news = self.news, Gate()
        gate.open()


class FakeRegistry:
    """Instances as they registered, until they are removed; nothing dies here by itself."""

    def __init__(self, script: Script | None = None, ttl_seconds: float = 30.0) -> None:
        self.script = script or Script()
        self.instances: dict[str, Instance] = {}
        self.removed: set[str] = set()
        """Who may not come back by themselves."""
        self.draining: set[str] = set()
        """Whom the operator wants empty; told with their next heartbeat."""
        self._ttl_seconds = ttl_seconds
        self._numbers = itertools.count(1)
        self._history: list[tuple[Instance, Change]] = []
        """Changes in the order of their revisions, from 1, and whose they are."""
        self._watchers: list[_Watcher] = []

    async def register(self, given: RegisterInput) -> Registered:
        self.script.arrive("register", given.instance_id or given.server_id, given)
        number = next(self._numbers)
        instance_id = given.instance_id or f"instance-{number}"
        if given.former_life and instance_id in self.removed:
            raise RemovedInstance
        holders = [one for one in self.instances.values() if one.server_id and one.type == given.type]
        if any(o.server_id == given.server_id and o.instance_id != instance_id for o in holders):
            raise ServerIdTaken
        self.removed.discard(instance_id)
        record = {name: getattr(given, name) for name in Record.__struct_fields__}
        self._put(
            "added",
            Instance(
                **record,
                instance_id=instance_id,
                life=str(number),
                status=given.status,
                accepting=given.status == "ready",
                last_heartbeat="",
                load=given.load,
                performance=given.performance,
            ),
        )
        ttl = given.ttl_seconds or self._ttl_seconds
        reply = Registered(instance_id, str(number), ttl, max(1, int(ttl * 1000 / 3)))
        return await self.script.reply("register", instance_id, reply)

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        self.script.arrive("heartbeat", instance_id, beat)
        found = self._known(instance_id, beat.life)
        told = {"status": beat.status, "load": beat.load, "performance": beat.performance}
        fresh = {name: value for name, value in told.items() if value is not None}
        changed = beat.status not in (None, found.status)
        self.instances[instance_id] = msgspec.structs.replace(found, **fresh)
        if changed:
            self._put("changed", self.instances[instance_id])
        reply = BeatReply("DRAIN" if instance_id in self.draining else "OK")
        return await self.script.reply("heartbeat", instance_id, reply)

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList:
        """`verify` probes nobody."""
        self.script.arrive("discover", f"{type_}:{group}")
        reply = InstanceList(
            self._listed(_Wanted(type_, group, labels)), len(self._history), str(len(self._history))
        )
        return await self.script.reply("discover", f"{type_}:{group}", reply)

    async def get(self, instance_id: str) -> InstanceDetail:
        self.script.arrive("get", instance_id)
        reply = InstanceDetail(None, "removed", [])
        if instance_id not in self.removed:
            found = self._known(instance_id, "")
            reply = InstanceDetail(found, found.status, [])
        return await self.script.reply("get", instance_id, reply)

    async def remove(
        self, instance_id: str, type_: str, group: str, life: str, cause: EndCause = "terminated"
    ) -> None:
        self.script.arrive("remove", instance_id)
        found = self._known(instance_id, life)
        del self.instances[instance_id]
        if cause == "terminated":
            self.removed.add(instance_id)
        self._publish("removed", found, None)
        await self.script.reply("remove", instance_id, None)

    async def watch(
        self, type_: str, group: str, labels: Sequence[str], after: Mark | None
    ) -> AsyncGenerator[Change, None]:
        self.script.arrive("watch", f"{type_}:{group}", after)
        watcher = _Watcher(_Wanted(type_, group, labels))
        if after is None:
            rev, listed = len(self._history), self._listed(watcher.wanted)
            watcher.waiting.append(Change("snapshot", rev, str(rev), instances=listed))
        else:
            missed = self._history[after.rev :]
            watcher.waiting.extend(change for one, change in missed if watcher.wanted.fits(one))
        self._watchers.append(watcher)
        try:
            while True:
                gate = watcher.news
                while watcher.waiting:
                    change = watcher.waiting.pop(0)
                    if isinstance(change, Exception):
                        raise change
                    yield change
                await gate.wait()
        finally:
            self._watchers.remove(watcher)

    def forget(self, instance_id: str) -> None:
        """As a store does that lost its last writes: the next heartbeat is of nobody."""
        self.instances.pop(instance_id, None)

    def interrupt(self, error: Exception) -> None:
        """Every open watch raises it."""
        for watcher in self._watchers:
            watcher.hear(error)

    def _known(self, instance_id: str, life: str) -> Instance:
        if instance_id in self.removed:
            raise RemovedInstance
        found = self.instances.get(instance_id)
        if found is None:
            raise UnknownInstance
        if life and life != found.life:
            raise FencedInstance
        return found

    def _listed(self, wanted: _Wanted) -> list[Instance]:
        return [one for one in self.instances.values() if wanted.fits(one)]

    def _put(self, event: Literal["added", "changed"], instance: Instance) -> None:
        self.instances[instance.instance_id] = instance
        self._publish(event, instance, instance)

    def _publish(
        self, event: Literal["added", "changed", "removed"], of: Instance, instance: Instance | None
    ) -> None:
        rev = len(self._history) + 1
        change = Change(event, rev, str(rev), of.instance_id, of.life, of.server_id, of.status, instance)
        self._history.append((of, change))
        for watcher in self._watchers:
            if watcher.wanted.fits(of):
                watcher.hear(change)


@dataclass(frozen=True, slots=True)
class Inside:
    """With what somebody was let in."""

    life: str
    connection: str
    number: int


class FakeAdmission:
    """The ledger of one world; every ticket is good, and is the user's name or a signed one."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.consumed: dict[str, int] = {}
        """Life → the number of its last consume."""
        self.inside: dict[str, Inside] = {}
        """By user."""
        self.unanswered: set[str] = set()
        """Users who were let in, and whose server has no reply yet."""
        self.reports: list[ReportInput] = []
        self.released: list[tuple[str, str]] = []
        """(user, how)."""
        self.asking: list[Asking] = []
        """People who are inside and ask to come in; told with the next report."""
        self.is_known = True
        """Whether the leader has heard of the server."""

    async def consume(self, given: ConsumeInput) -> ConsumeReply:
        user = peek_user(given.ticket_id) or given.ticket_id
        self.script.arrive("consume", user, given)
        if given.life not in self.consumed:
            raise ServerNotReported
        if user not in self.inside:
            self.consumed[given.life] += 1
            self.inside[user] = Inside(given.life, given.connection, self.consumed[given.life])
            self.unanswered.add(user)
        elif not self._is_inside(user, given.life, given.connection):
            raise TicketUsed
        number = self.inside[user].number
        reply = await self.script.reply("consume", user, ConsumeReply(user, user, "", number, 1000))
        self.unanswered.discard(user)
        return reply

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply:
        self.script.arrive("release", given.user_id, given)
        if self._is_inside(given.user_id, given.life, given.connection):
            del self.inside[given.user_id]
        self.released.append((given.user_id, given.how))
        return await self.script.reply("release", given.user_id, ReleaseReply(0))

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply:
        self.script.arrive("report", server_id, given)
        self.consumed[given.life] = max(given.counted, self.consumed.get(given.life, 0))
        self.reports.append(given)
        asking, self.asking = self.asking, []
        return await self.script.reply(
            "report", server_id, ReportReply(self.consumed[given.life], asking=asking, known=self.is_known)
        )

    def forget(self, user: str) -> None:
        """As a store does that lost its last writes: they were never let in."""
        lost = self.inside.pop(user)
        self.consumed[lost.life] = lost.number - 1

    def _is_inside(self, user: str, life: str, connection: str) -> bool:
        found = self.inside.get(user)
        return found is not None and (found.life, found.connection) == (life, connection)


class FakeHomes:
    """Homes as the test puts them there."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.homes: dict[tuple[str, str], Home] = {}
        """By type and user."""

    async def home_of(self, type_: str, user: str) -> Home:
        self.script.arrive("home_of", user)
        if (type_, user) not in self.homes:
            raise UnknownBinding
        return await self.script.reply("home_of", user, self.homes[type_, user])


class FakeTransport:
    """Every port of the SDK, by one script. Any number of clients may share it, their hearts too."""

    def __init__(self, *, ttl_seconds: float = 30.0) -> None:
        self.script = Script()
        self.registry = FakeRegistry(self.script, ttl_seconds)
        self.admission = FakeAdmission(self.script)
        self.homes = FakeHomes(self.script)
        self.opened = 0
        self.closed = 0

    async def open(self) -> FakeTransport:
        """Recorded as verb `open`, so that it can be refused."""
        self.script.arrive("open", "")
        self.opened += 1
        return self

    async def close(self) -> None:
        self.closed += 1

    def client(self, *, heartbeat_interval_ms: int | None = None, loops: Loops | None = None) -> Client:
        """A client on this transport; it keeps no lists on disk."""
        return Client("fake:", self.open, self.open, loops=loops, heartbeat_interval_ms=heartbeat_interval_ms)
