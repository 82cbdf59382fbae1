"""The verbs of one partition: the users whose records share a hash tag."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any, Literal, NamedTuple

from roost.api.limits import MAX_COUNT, MAX_NUMBER, MAX_TEXT
from roost.binding.gathering import Gathered
from roost.binding.model import FIELDS, BindingChange, PartitionBoard, Record
from roost.binding.rules import (
    capacity_share,
    check_epoch,
    check_owner,
    check_user,
    check_version,
    parse_types,
    parse_versions,
)
from roost.binding.scripts import (
    Beaten,
    Changed,
    Committed,
    Dead,
    Ended,
    Frozen,
    Gone,
    NoRoom,
    NotOwner,
    PartitionScripts,
    Released,
    Renewed,
    Repaired,
    Resolved,
    Unknown,
)
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidInput
from roost.core.ids import check_id, check_name
from roost.core.lease import MAX_STEP_MS
from roost.core.owner import Owner
from roost.store.feed import parse_entry
from roost.store.keys.binding import partition_keys
from roost.store.scopes import partition as partition_scope
from roost.store.scripts import ScopedScript
from roost.store.store import Store

REASSERT_LIMIT = 500
APPEND_LIMIT = 500
ACTIVE_LIMIT = 1000
FEED_PAGE = 1000
DRAW_BITS = 48
MIN_MARK_MS = 10
MAX_MARK_MS = 60_000

RenewedWhy = Literal["renewed", "returned", "move-expired"]
"""The last one only ends a mark whose time is over."""


class JournalEntry(NamedTuple):
    user: str
    epoch: int
    sequence: int
    payload: bytes
    after: int = 0
    """The sequence that the owner appended before it and has not flushed; 0: none, or it does not ask."""


class JournalAnswer(Enum):
    """What became of an entry; true only if it is in the journal."""

    OK = "ok"
    FENCED = "fenced"
    """Another grant was made: the owner does not hold this user any more."""
    BEHIND = "behind"
    """The store lost what was appended before it: append the tail again."""

    def __bool__(self) -> bool:
        return self is JournalAnswer.OK


class Kept(NamedTuple):
    """The owner holds the user, under this epoch: its own, or a later one that it has not claimed yet."""

    user: str
    epoch: int


class Lost(NamedTuple):
    """Somebody else holds the user, or nobody does, by a later grant; or the owner has no lease."""

    user: str
    record: Record | None


class Partition:
    """One partition. Names and sizes are checked here, so also for callers on the store itself."""

    def __init__(self, store: Store, number: int, settings: BindingSettings) -> None:
        self.number = number
        self.scope = partition_scope(number)
        self.scripts = PartitionScripts(store.library, store.keys, self.scope)
        self.feed = store.feed(self.scope)
        self.settings = settings
        self._freezes = Gathered(
            partial(self._send, self.scripts.freeze),
            lambda reply: self.scripts.freeze.answer_of(reply).each(),
        )
        self._commits = Gathered(
            partial(self._send, self.scripts.commit),
            lambda reply: self.scripts.commit.answer_of(reply).each(),
        )
        keys = partition_keys(store.keys, self.scope)
        self._types = frozenset(parse_types(settings.types))
        self._versions = parse_versions(settings.versions)
        self._store = store
        self._feed = store.keys.feed(self.scope)
        self._users = keys["users"]
        self._binders = keys["binders"]
        self._journal = keys["journal"]

    # -- who holds a user

    async def read(self, type_: str, user: str) -> Record | None:
        """The hot read: one plain HMGET."""
        check_id(user, "userId")
        if type_ not in self._types:
            check_name(type_, "type")
        key = self._users + f"{type_}:{user}".encode()
        return Record.read(await self._store.call("HMGET", key, *FIELDS, key=key, idempotent=True))

    def version_of(self, type_: str) -> str:
        """That a server must have to get users of this type; empty: any."""
        return self._versions.get(type_, "")

    async def resolve(self, type_: str, user: str, *, seen: int = 0, place: bool = True) -> Resolved:
        check_user(type_, user)
        return await self.scripts.resolve(
            type=type_,
            user=user,
            above=check_epoch(seen, "seen"),
            version=self.version_of(type_),
            place=int(place),
            draw=random.getrandbits(DRAW_BITS),
            slow_ms=self.settings.slow_start_seconds * 1000,
            max_step_ms=MAX_STEP_MS,
        )

    async def bind(self, type_: str, user: str, owner: Owner, *, seen: int = 0) -> Resolved:
        check_user(type_, user)
        check_owner(owner)
        return await self.scripts.bind(
            type=type_,
            user=user,
            server=owner.server_id,
            life=owner.life,
            above=check_epoch(seen, "seen"),
            version=self.version_of(type_),
            max_step_ms=MAX_STEP_MS,
        )

    # -- what owners say

    async def release(
        self, type_: str, user: str, owner: Owner, epoch: int, *, why: str = "released"
    ) -> Released | NotOwner:
        check_user(type_, user)
        check_owner(owner)
        return await self.scripts.release(
            type=type_, user=user, server=owner.server_id, life=owner.life, epoch=check_epoch(epoch), why=why
        )

    async def renew(
        self, type_: str, user: str, owner: Owner, *, above: int, why: RenewedWhy = "renewed"
    ) -> Renewed | NotOwner:
        check_user(type_, user)
        check_owner(owner)
        return await self.scripts.renew(
            type=type_,
            user=user,
            server=owner.server_id,
            life=owner.life,
            above=check_epoch(above, "above"),
            why=why,
            max_step_ms=MAX_STEP_MS,
        )

    def freeze(
        self, type_: str, user: str, owner: Owner, epoch: int, move: str, target: Owner, *, ttl_ms: int
    ) -> asyncio.Future[Frozen | NotOwner | NoRoom]:
        """With all others that are asked for in this turn of the loop."""
        check_user(type_, user)
        check_owner(owner)
        check_owner(target)
        if target == owner:
            raise InvalidInput("a user is moved to another server than their own")
        if not MIN_MARK_MS <= ttl_ms <= MAX_MARK_MS:
            raise InvalidInput(f"a mark holds {MIN_MARK_MS} to {MAX_MARK_MS} ms, not {ttl_ms}")
        common = (type_, *owner, *target, ttl_ms)
        return self._freezes.ask(common, (user, check_epoch(epoch), check_id(move, "move")))

    def commit(
        self, type_: str, user: str, move: str, target: Owner, epoch: int
    ) -> asyncio.Future[Committed | Gone]:
        """With all others that are asked for in this turn of the loop."""
        check_user(type_, user)
        check_owner(target)
        return self._commits.ask((type_, *target), (user, check_id(move, "move"), check_epoch(epoch)))

    def _send(
        self, script: ScopedScript[Any], common: tuple[str | int, ...], asked: Sequence[tuple[str | int, ...]]
    ) -> asyncio.Future[Any]:
        return script.send(*common, MAX_STEP_MS, "", *(part for one in asked for part in one))

    async def reassert(self, type_: str, owner: Owner, held: Sequence[tuple[str, int]]) -> list[Kept | Lost]:
        check_owner(owner)
        _check_count("users", len(held), REASSERT_LIMIT)
        for user, epoch in held:
            check_user(type_, user)
            check_epoch(epoch)
        if not held:
            return []
        answer = await self.scripts.reassert(
            type=type_,
            server=owner.server_id,
            life=owner.life,
            held=[part for user, epoch in held for part in (user, str(epoch))],
            max_step_ms=MAX_STEP_MS,
        )
        return [
            Kept(user, record.epoch)
            if record is not None and record.owner == owner and record.epoch >= epoch
            else Lost(user, record)
            for (user, epoch), record in zip(held, answer.records(), strict=True)
        ]

    async def repair(
        self, type_: str, user: str, wrong: Owner, epoch: int, right: Owner, *, above: int
    ) -> Repaired | Dead | Changed:
        check_user(type_, user)
        check_owner(wrong)
        check_owner(right)
        return await self.scripts.repair(
            type=type_,
            user=user,
            wrong_server=wrong.server_id,
            wrong_life=wrong.life,
            epoch=check_epoch(epoch),
            right_server=right.server_id,
            right_life=right.life,
            above=check_epoch(above, "above"),
            max_step_ms=MAX_STEP_MS,
        )

    async def beat(
        self, type_: str, owner: Owner, *, capacity: int, version: str = "", active: Sequence[str] = ()
    ) -> Beaten | Unknown | Ended:
        check_name(type_, "type")
        check_owner(owner)
        _check_count("capacity", capacity, MAX_COUNT)
        _check_count("active users", len(active), ACTIVE_LIMIT)
        return await self.scripts.beat(
            type=type_,
            server=owner.server_id,
            life=owner.life,
            capacity=capacity_share(capacity, self.settings.partitions),
            version=check_version(version, MAX_TEXT),
            ttl_ms=self.settings.lease_ms,
            max_step_ms=MAX_STEP_MS,
            active=active,
        )

    async def bury(self, type_: str, owner: Owner) -> int:
        """End a life for good; returns how many users it held."""
        check_name(type_, "type")
        check_owner(owner)
        answer = await self.scripts.bury(
            type=type_, server=owner.server_id, life=owner.life, max_step_ms=MAX_STEP_MS
        )
        return answer.users

    # -- the journal

    async def append(self, type_: str, entries: Sequence[JournalEntry]) -> list[JournalAnswer]:
        _check_count("entries", len(entries), APPEND_LIMIT)
        if not entries:
            return []
        flat: list[str | bytes | int] = []
        for user, epoch, sequence, payload, after in entries:
            check_user(type_, user)
            flat += (user, check_epoch(epoch), _sequence(sequence, 1), _sequence(after, 0), payload)
        answer = await self.scripts.append(type=type_, entries=flat)
        return [JournalAnswer(word) for word in answer.answers]

    async def read_journal(self, type_: str, user: str, after: int, count: int) -> list[JournalEntry]:
        check_user(type_, user)
        key, first = self._journal + f"{type_}:{user}".encode(), f"{_sequence(after, 0) + 1}-0"
        found = await self._store.call(
            "XRANGE", key, first, "+", "COUNT", count, key=key, idempotent=True, bulk=True
        )
        return [
            JournalEntry(user, int(flat[1]), int(entry_id.partition(b"-")[0]), flat[3])
            for entry_id, flat in found
        ]

    async def trim(self, type_: str, user: str, up_to: int) -> int:
        check_user(type_, user)
        return (await self.scripts.trim(type=type_, user=user, up_to=_sequence(up_to, 0))).count

    # -- who is there

    async def binders(self, type_: str, owner: Owner, after: str, count: int) -> list[str]:
        """Users of one life in the order of their names, those behind `after`."""
        check_name(type_, "type")
        check_owner(owner)
        key = self._binders + f"{type_}:{owner.server_id}:{owner.life}".encode()
        start = b"(" + after.encode() if after else b"-"
        found = await self._store.call(
            "ZRANGE", key, start, "+", "BYLEX", "LIMIT", 0, count, key=key, idempotent=True
        )
        return [user.decode() for user in found]

    async def history(self, type_: str, user: str, limit: int) -> list[BindingChange]:
        """The last changes of a user, newest first. Reads the whole feed, page by page: for operators."""
        check_user(type_, user)
        found, last = list[BindingChange](), "+"
        while len(found) < limit and (page := await self._feed_before(last)):
            entries = [entry for raw in page if (entry := parse_entry(raw)).fields.get("user") == user]
            found += [BindingChange.of(entry) for entry in entries if entry.fields.get("type") == type_]
            last = f"({page[-1][0].decode()}"
        return found[:limit]

    async def _feed_before(self, last: str) -> list[Any]:
        found: list[Any] = await self._store.call(
            "XREVRANGE", self._feed, last, "-", "COUNT", FEED_PAGE, key=self._feed, idempotent=True, bulk=True
        )
        return found

    async def board(self, type_: str) -> PartitionBoard:
        found = await self.scripts.board(type=check_name(type_, "type"))
        return PartitionBoard.read(found.numbers, found.bindings, found.servers)


def _check_count(what: str, count: int, most: int) -> None:
    if not 0 <= count <= most:
        raise InvalidInput(f"{what} is {count}, must be 0 to {most}")


def _sequence(number: int, least: int) -> int:
    if not least <= number <= MAX_NUMBER:
        raise InvalidInput(f"sequence is {number}, must be {least} to {MAX_NUMBER}")
    return number
