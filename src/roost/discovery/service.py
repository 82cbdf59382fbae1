"""The verbs of discovery."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Literal

import msgspec

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    InstanceDetail,
    InstanceList,
    Override,
    Registered,
    RegisterInput,
)
from roost.core.errors import FencedInstance, RemovedInstance, ServerIdTaken, UnknownInstance
from roost.core.events import Entry, Gap, Mark
from roost.core.ids import check_id, check_name, check_service, new_ulid
from roost.discovery import model, rules
from roost.discovery import scripts as answers
from roost.discovery.health import Tally
from roost.discovery.scripts import DiscoveryScripts
from roost.store.keys.discovery import discovery_keys
from roost.store.scopes import discovery
from roost.store.store import Store

log = logging.getLogger("roost.discovery")

BEATS_PER_TTL = 3
CHECKER_TTL_MS = 10_000
"""Silence after which a health checker does not count any more, in lease time."""
MAX_BALLOTS = 1000
DEFAULT_TTL_S = 30.0


class Discovery:
    """Who exists and who is alive, for one store."""

    def __init__(self, store: Store, default_ttl_s: float = DEFAULT_TTL_S) -> None:
        self._default_ttl_s = default_ttl_s
        self.scripts = DiscoveryScripts(store.library, store.keys)
        self.feed = store.feed(discovery())
        self._store = store
        self._on_write: list[Callable[[], None]] = []
        self._services = discovery_keys(store.keys)["services"]

    def on_write(self, callback: Callable[[], None]) -> None:
        """Call back after every write of this process that changes a list."""
        self._on_write.append(callback)

    def _wrote(self) -> None:
        for callback in self._on_write:
            callback()

    async def register(self, given: RegisterInput) -> Registered:
        """Give the instance a life; `InstanceRefused` says why not."""
        given.ttl_seconds = given.ttl_seconds or self._default_ttl_s
        rules.check_registration(given)
        instance_id = given.instance_id or new_ulid()
        ttl_ms = int(given.ttl_seconds * 1000)
        answer = await self.scripts.register(
            id=instance_id,
            service=rules.service_of(given.type, given.group),
            name=rules.name_of(given.type, given.server_id),
            record=model.encode(model.record_of(given)),
            status=given.status,
            load=given.load,
            capacity=given.capacity,
            performance=rules.check_object("performance", given.performance),
            ttl_ms=ttl_ms,
            nonce=secrets.token_hex(8),
            former_life=_number(given.former_life, "formerLife"),
        )
        self._wrote()
        match answer:
            case answers.Registered(life):
                interval_ms = ttl_ms // BEATS_PER_TTL
                return Registered(instance_id, str(life), given.ttl_seconds, interval_ms)
            case answers.Taken(holder, remaining_ms):
                raise ServerIdTaken(
                    f"serverId {given.server_id} is held by {holder}, for {remaining_ms} ms more"
                )
            case answers.Removed(cause):
                raise RemovedInstance(f"{instance_id} was {cause}")
            case answers.Fenced(life):
                raise FencedInstance(f"{instance_id} lives as life {life}")

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply:
        """Renew the lease and take over what the beat says."""
        check_id(instance_id, "instanceId")
        answer = await self.scripts.heartbeat(
            id=instance_id,
            life=_number(beat.life, "life"),
            status=beat.status or "",
            load="" if beat.load is None else _within(beat.load),
            performance=b""
            if beat.performance is None
            else rules.check_object("performance", beat.performance),
            tick_age_ms=_within(beat.tick_age_ms),
        )
        match answer:
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
        found = await self.scripts.snapshot(wanted_type=type_, wanted_group=group)
        instances = [i for i in model.instances_of(found) if rules.fits_labels(i.labels, labels)]
        return InstanceList(instances, found.rev, str(found.at))

    async def services(self) -> list[str]:
        """Every type:group with live instances."""
        members = await self._store.call("SMEMBERS", self._services, key=self._services, idempotent=True)
        return sorted(member.decode() for member in members)

    async def get(self, instance_id: str) -> InstanceDetail:
        check_id(instance_id, "instanceId")
        match await self.scripts.get(id=instance_id):
            case answers.Found() as found:
                instance = model.instance_of(instance_id, found)
                return InstanceDetail(instance, instance.status, model.history_of(found.history))
            case answers.Gone() as gone:
                return InstanceDetail(None, model.ended_status(gone.cause), model.history_of(gone.history))
            case _:
                raise UnknownInstance(f"nobody knows the instance {instance_id}")

    async def remove(
        self,
        instance_id: str,
        type_: str = "",
        group: str = "",
        *,
        life: str = "",
        cause: Literal["terminated", "removed"] = "terminated",
    ) -> None:
        """Take it out for good: its own clean stop, or an operator's act."""
        check_id(instance_id, "instanceId")
        service = (
            rules.service_of(check_name(type_, "type"), check_name(group, "group")) if type_ and group else ""
        )
        answer = await self.scripts.remove(
            id=instance_id, life=_number(life, "life"), service=service, cause=cause
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

    async def vote(self, checker: str, unhealthy: Sequence[tuple[str, str]], *, leave: bool = False) -> Tally:
        """A health checker's whole opinion: (id, life) of all it finds unhealthy. The majority decides."""
        ballots = "\n".join(f"{instance_id}\t{life}" for instance_id, life in sorted(unhealthy)[:MAX_BALLOTS])
        answer = await self.scripts.vote(
            checker=checker, ballots=ballots.encode(), ttl_ms=0 if leave else CHECKER_TTL_MS
        )
        return Tally(answer.live, dict(zip(answer.votes[::2], map(int, answer.votes[1::2]), strict=True)))

    async def watch(
        self, type_: str = "*", group: str = "*", labels: Sequence[str] = (), after: Mark | None = None
    ) -> AsyncIterator[Change]:
        """Every change there, in order; a `snapshot` first, and again whenever continuity cannot be proved.

        With `after` (the mark of a change that was seen before) it goes on from there without a snapshot.
        """
        check_service(type_, group)
        while True:
            if after is None:
                found = await self.discover(type_, group, labels)
                after = Mark(found.revision, int(found.revision_at))
                yield Change("snapshot", found.revision, found.revision_at, instances=found.instances)
            async with aclosing(self.feed.follow(after)) as entries:
                async for entry in entries:
                    if isinstance(entry, Gap):
                        break
                    if not _is_wanted(entry, type_, group):
                        continue
                    change = _decoded(entry)
                    if change is not None and _fits(change, labels):
                        yield change
            after = None


def _decoded(entry: Entry) -> Change | None:
    """The change, or None (and a line in the log) for an entry that nobody can read."""
    try:
        return model.change_of(entry)
    except (msgspec.DecodeError, ValueError, KeyError) as error:
        log.error("bad feed entry skipped", extra={"revision": entry.rev, "reason": str(error)})
        return None


def _fits(change: Change, labels: Sequence[str]) -> bool:
    return change.instance is None or rules.fits_labels(change.instance.labels, labels)


def _is_wanted(entry: Entry, type_: str, group: str) -> bool:
    service_type, _, service_group = entry.fields["service"].partition(":")
    return type_ in ("*", service_type) and group in ("*", service_group)


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
