"""The verbs of discovery."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Literal

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    EndCause,
    Instance,
    InstanceDetail,
    InstanceList,
    Override,
    Registered,
    RegisterInput,
)
from roost.core.errors import FencedInstance, RemovedInstance, ServerIdTaken, UnknownInstance
from roost.core.events import Gap, Mark
from roost.core.ids import check_id, check_name, check_service, new_ulid
from roost.discovery import model, rules
from roost.discovery import scripts as answers
from roost.discovery.assignment import assigned_checkers
from roost.discovery.batches import Batches
from roost.discovery.decoded import Decoded
from roost.discovery.scripts import (
    BeatAnswer,
    DiscoveryScripts,
    GivenBeat,
    GivenRegistration,
    RegisterAnswer,
    beat_answer,
    register_answer,
)
from roost.discovery.unreadable import Unreadable
from roost.discovery.voting import Checkers, Vote
from roost.discovery.watched import Unknowable, Watched, in_turns, read_entry
from roost.store.keys.discovery import discovery_keys
from roost.store.scopes import discovery
from roost.store.store import Store

BEATS_PER_TTL = 3
CHECKER_TTL_MS = 10_000
"""Silence after which a health checker does not count any more, in lease time."""
DEFAULT_TTL_S = 30.0
CHANGES_PER_TURN = 100
MAX_REGISTRATIONS = 50
"""In one call of the store, which they hold for some 4 ms."""
MAX_BEATS = 100
GATHER_BEATS_S = 0.02
"""How long a beat waits for others: a thousand a second wake the store fifty times."""
ENOUGH_BEATS = 32


class Discovery:
    """Who exists and who is alive, for one store."""

    def __init__(self, store: Store, default_ttl_s: float = DEFAULT_TTL_S) -> None:
        self._default_ttl_s = default_ttl_s
        self.scripts = DiscoveryScripts(store.library, store.keys)
        self.feed = store.feed(discovery())
        self.unreadable = Unreadable()
        self._registrations: Batches[GivenRegistration, RegisterAnswer] = Batches(
            self.scripts.register, register_answer, limit=MAX_REGISTRATIONS
        )
        self._beats: Batches[GivenBeat, BeatAnswer] = Batches(
            self.scripts.heartbeat,
            beat_answer,
            limit=MAX_BEATS,
            gather_s=GATHER_BEATS_S,
            enough=ENOUGH_BEATS,
        )
        self._store = store
        self._read_entry = Decoded(partial(read_entry, unreadable=self.unreadable)).of
        self._on_write: list[Callable[[], None]] = []
        keys = discovery_keys(store.keys)
        self._services, self._votes, self._checkers = keys["services"], keys["votes"], keys["checkers"]

    def on_write(self, callback: Callable[[], None]) -> None:
        """Call back after every write of this process that changes a list."""
        self._on_write.append(callback)

    def _wrote(self) -> None:
        for callback in self._on_write:
            callback()

    async def register(self, given: RegisterInput, *, decoded: bool = False) -> Registered:
        """Give the instance a life; `InstanceRefused` says why not.

        `decoded`: the message was read by its type already, as one over HTTP is.
        """
        given = given if decoded else rules.as_sent(given)
        given.ttl_seconds = given.ttl_seconds or self._default_ttl_s
        rules.check_registration(given)
        entropy = os.urandom(18)  # once: the call costs more than the bytes
        instance_id = given.instance_id or new_ulid(entropy=entropy[:10])
        ttl_ms = int(given.ttl_seconds * 1000)
        registration = GivenRegistration(
            instance_id,
            service=rules.service_of(given.type, given.group),
            name=rules.name_of(given.type, given.server_id),
            record=model.encode(model.record_of(given)),
            status=given.status,
            load=given.load,
            capacity=given.capacity,
            performance=rules.check_object("performance", given.performance),
            ttl_ms=ttl_ms,
            nonce=entropy[10:].hex(),
            former_life=_number(given.former_life, "formerLife"),
        )
        answer = await self._registrations.send(registration)
        self._wrote()
        match answer:
            case answers.Registered(life):
                interval_ms = ttl_ms // BEATS_PER_TTL
                return Registered(instance_id, str(life), given.ttl_seconds, interval_ms)
            case answers.Taken(holder, remaining_ms):
                name = given.server_id or instance_id
                raise ServerIdTaken(f"serverId {name} is held by {holder}, for {remaining_ms} ms more")
            case answers.Removed(cause):
                raise RemovedInstance(f"{instance_id} was {cause}")
            case answers.Fenced(life):
                raise FencedInstance(f"{instance_id} lives as life {life}")

    async def heartbeat(self, instance_id: str, beat: Beat, *, decoded: bool = False) -> BeatReply:
        """Renew the lease and take over what the beat says; `decoded` as in `register`."""
        check_id(instance_id, "instanceId")
        beat = beat if decoded else rules.as_sent(beat)
        performance = beat.performance
        given = GivenBeat(
            instance_id,
            life=_number(beat.life, "life"),
            status=beat.status or "",
            load="" if beat.load is None else _within(beat.load),
            performance=b"" if performance is None else rules.check_object("performance", performance),
            tick_age_ms=_within(beat.tick_age_ms),
        )
        match await self._beats.send(given):
            case answers.Ok():
                return BeatReply("OK")
            case answers.Drain():
                return BeatReply("DRAIN")
            case answers.Unknown():
                raise UnknownInstance(f"nobody knows the instance {instance_id}")
            case answers.Removed(cause):
                raise RemovedInstance(f"{instance_id} was {cause}")
            case answers.Fenced(life):
                raise FencedInstance(f"{instance_id} lives as life {life}")

    async def discover(self, type_: str = "*", group: str = "*", labels: Sequence[str] = ()) -> InstanceList:
        """Every live instance there, in one round trip."""
        check_service(type_, group)
        found = await self._snapshot(type_, group)
        instances = await in_turns(
            i for i in model.instances_of(found, self.unreadable) if rules.fits_labels(i.labels, labels)
        )
        return InstanceList(instances, found.rev, str(found.at))

    async def _snapshot(self, type_: str, group: str) -> answers.Snapshot:
        return await self.scripts.snapshot(wanted_type=type_, wanted_group=group)

    async def services(self) -> list[str]:
        """Every type:group with live instances."""
        members = await self._store.call("SMEMBERS", self._services, key=self._services, idempotent=True)
        return sorted(member.decode(errors="replace") for member in members)

    async def get(self, instance_id: str) -> InstanceDetail:
        check_id(instance_id, "instanceId")
        match await self.scripts.get(id=instance_id):
            case answers.Found() as found:
                instance = self._read(instance_id, found)
                return InstanceDetail(instance, instance.status, model.history_of(found.history))
            case answers.Gone() as gone:
                return InstanceDetail(None, model.ended_status(gone.cause), model.history_of(gone.history))
            case _:
                raise UnknownInstance(f"nobody knows the instance {instance_id}")

    def _read(self, instance_id: str, found: answers.Found) -> Instance:
        try:
            return model.instance_of(instance_id, found, self.unreadable)
        except model.UNREADABLE as error:
            self.unreadable.note("record", instance_id, error)
            raise UnknownInstance(
                f"the record of {instance_id} cannot be read",
                hint=f"it registers again by itself if it lives; else `roost instances remove {instance_id}`",
            ) from error

    async def remove(
        self,
        instance_id: str,
        type_: str = "",
        group: str = "",
        *,
        life: str = "",
        cause: EndCause | Literal["removed"] = "terminated",
    ) -> None:
        """Take it out: its own clean stop, an operator's act, or a crash that somebody saw.

        A crash ends it as the end of its lease would, only at once: its server id is free.
        """
        check_id(instance_id, "instanceId")
        service = (
            rules.service_of(check_name(type_, "type"), check_name(group, "group")) if type_ and group else ""
        )
        answer = await self.scripts.remove(
            id=instance_id,
            life=_number(life, "life"),
            service=service,
            cause="no-response" if cause == "crashed" else cause,
        )
        self._wrote()
        match answer:
            case answers.Unknown():
                raise UnknownInstance(
                    f"nobody knows the instance {instance_id}" + (f" in {service}" if service else "")
                )
            case answers.Fenced(later):
                raise FencedInstance(f"{instance_id} lives as life {later}")
            case answers.Left():
                return

    async def override(self, instance_id: str, override: Override | None) -> None:
        """Keep an operator's override for the instance, or lift it."""
        check_id(instance_id, "instanceId")
        rules.check_override(override)
        word = _override_word(override)
        packed = model.encode(override) if override is not None and word != "lifted" else b""
        answer = await self.scripts.override(id=instance_id, override=packed, word=word)
        self._wrote()
        if isinstance(answer, answers.Unknown):
            raise UnknownInstance(f"nobody knows the instance {instance_id}")

    async def vote(self, checker: str, votes: Sequence[Vote], *, leave: bool = False) -> Checkers:
        """What a checker newly finds, of at most `MAX_VOTES`; the majority of those assigned decides."""
        ballots = "\n".join(map("\t".join, votes))
        answer = await self.scripts.vote(
            checker=checker, ballots=ballots.encode(), ttl_ms=0 if leave else CHECKER_TTL_MS
        )
        return Checkers(tuple(answer.live), bool(answer.joined))

    async def votes(self) -> dict[str, int]:
        """Instance id → how many of its checkers find it unhealthy, where one does."""
        (kept, live) = await asyncio.gather(
            self._store.call("HGETALL", self._votes, key=self._votes, idempotent=True),
            self._store.call("ZRANGE", self._checkers, 0, -1, key=self._checkers, idempotent=True),
        )
        checkers = sorted(name.decode() for name in live)
        found = {}
        for key, packed in zip(kept[::2], kept[1::2], strict=True):
            instance_id, said = key.decode(), set(packed.decode().split("\t")[1:])
            assigned = assigned_checkers(checkers, instance_id)
            found[instance_id] = sum(f"{checker}=unhealthy" in said for checker in assigned)
        return {instance_id: count for instance_id, count in found.items() if count}

    async def watch(
        self, type_: str = "*", group: str = "*", labels: Sequence[str] = (), after: Mark | None = None
    ) -> AsyncIterator[Change]:
        """Every change there, in order; a `snapshot` first, and again whenever continuity cannot be proved.

        With `after` (the mark of a change that was seen before) it goes on from there without a snapshot.
        """
        check_service(type_, group)
        while True:
            watched = Watched(type_, group, labels, self.unreadable, self._read_entry)
            if after is None:
                change = await watched.snapshot(await self._snapshot(type_, group))
                after = Mark(change.revision, int(change.revision_at))
                yield change
            async with aclosing(self.feed.follow(after)) as entries:
                async for entry in entries:
                    if isinstance(entry, Gap):
                        break
                    try:
                        changes = watched.readable_changes(entry)
                    except Unknowable:
                        break
                    for count, change in enumerate(changes, start=1):
                        yield change
                        if count % CHANGES_PER_TURN == 0:  # a panic of thousands must not hold up the process
                            await asyncio.sleep(0)
            after = None


def _number(text: str, what: str) -> str:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise UnknownInstance(f"{what} {text[:20]!r} must be the number that register returned")
    return text


def _within(number: int) -> int:
    return max(0, min(number, 2**31))


def _override_word(override: Override | None) -> str:
    if override is None or not (override.drain or override.out_of_service or override.weight is not None):
        return "lifted"
    if override.out_of_service:
        return "out-of-service"
    return "drain" if override.drain else f"weight {override.weight}"
