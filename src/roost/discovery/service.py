"""The verbs of discovery."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Literal

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    InstanceDetail,
    InstanceList,
    Order,
    Registered,
    RegisterInput,
)
from roost.core.errors import FencedInstance, RemovedInstance, ServerIdTaken, UnknownInstance
from roost.core.events import Entry, Gap, Mark
from roost.core.ids import check_id, check_name, new_ulid
from roost.discovery import model, rules
from roost.discovery import scripts as answers
from roost.discovery.health import Tally
from roost.discovery.scripts import DiscoveryScripts
from roost.store.keys.discovery import discovery_keys
from roost.store.scopes import discovery
from roost.store.store import Store

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
        self._services = discovery_keys(store.keys)["services"]

    async def register(self, given: RegisterInput) -> Registered:
        """Give the instance a life; `InstanceRefused` says why not."""
        given.ttl_seconds = given.ttl_seconds or self._default_ttl_s
        rules.check_registration(given)
        instance_id = given.instance_id or new_ulid()
        ttl_ms = int(given.ttl_seconds * 1000)
        answer = await self.scripts.register(
            id=instance_id,
            place=rules.place_of(given.type, given.group),
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
        match answer:
            case answers.Registered(life):
                interval_ms = ttl_ms // BEATS_PER_TTL
                return Registered(instance_id, str(life), given.ttl_seconds, interval_ms)
            case answers.Taken(holder, remaining_ms):
                raise ServerIdTaken(
                    f"serverId {given.server_id} is borne by {holder}, for {remaining_ms} ms more"
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
        _check_wanted(type_, group)
        found = await self.scripts.snapshot(wanted_type=type_, wanted_group=group)
        instances = [i for i in model.instances_of(found) if rules.fits_labels(i.labels, labels)]
        return InstanceList(instances, found.rev, str(found.at))

    async def places(self) -> list[str]:
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
        place = (
            rules.place_of(check_name(type_, "type"), check_name(group, "group")) if type_ and group else ""
        )
        match await self.scripts.remove(id=instance_id, life=_number(life, "life"), place=place, cause=cause):
            case answers.Unknown():
                raise UnknownInstance(
                    f"nobody knows the instance {instance_id}" + (f" in {place}" if place else "")
                )
            case answers.Fenced(later):
                raise FencedInstance(f"{instance_id} lives as life {later}")
            case answers.Left():
                return

    async def override(self, instance_id: str, order: Order | None) -> None:
        """Keep an operator's order for the instance, or lift it."""
        check_id(instance_id, "instanceId")
        word = _order_word(order)
        packed = model.encode(order) if order is not None and word != "lifted" else b""
        if isinstance(await self.scripts.override(id=instance_id, order=packed, word=word), answers.Unknown):
            raise UnknownInstance(f"nobody knows the instance {instance_id}")

    async def vote(self, checker: str, ill: Sequence[tuple[str, str]], *, leave: bool = False) -> Tally:
        """A health checker's whole opinion: (id, life) of all it finds unhealthy. The majority decides."""
        ballots = "\n".join(f"{instance_id}\t{life}" for instance_id, life in sorted(ill)[:MAX_BALLOTS])
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
        _check_wanted(type_, group)
        while True:
            if after is None:
                found = await self.discover(type_, group, labels)
                after = Mark(found.revision, int(found.revision_at))
                yield Change("snapshot", found.revision, found.revision_at, instances=found.instances)
            async with aclosing(self.feed.follow(after)) as entries:
                async for entry in entries:
                    if isinstance(entry, Gap):
                        break
                    if _is_wanted(entry, type_, group):
                        change = model.change_of(entry)
                        if change.instance is None or rules.fits_labels(change.instance.labels, labels):
                            yield change
            after = None


def _is_wanted(entry: Entry, type_: str, group: str) -> bool:
    place_type, _, place_group = entry.fields["place"].partition(":")
    return type_ in ("*", place_type) and group in ("*", place_group)


def _check_wanted(type_: str, group: str) -> None:
    for what, value in (("type", type_), ("group", group)):
        if value != "*":
            check_name(value, what)


def _number(text: str, what: str) -> str:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise UnknownInstance(f"{what} {text[:20]!r} was never given out")
    return text


def _within(number: int) -> int:
    return max(0, min(number, 2**31))


def _order_word(order: Order | None) -> str:
    if order is None or not (order.drain or order.out_of_service or order.weight is not None):
        return "lifted"
    if order.out_of_service:
        return "out-of-service"
    return "drain" if order.drain else f"weight {order.weight}"
