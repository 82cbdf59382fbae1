"""The bindings of all users: each verb goes to the partition of its user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from roost.api.discovery import Watcher
from roost.binding.drain.model import MoveNote
from roost.binding.fleet import Fleet
from roost.binding.keeper import Keeper
from roost.binding.metrics import BindingMetrics
from roost.binding.model import BindingChange, Record, ServerRow
from roost.binding.notes import MoveNotes
from roost.binding.partition import (
    JournalAnswer,
    JournalEntry,
    Kept,
    Lost,
    Partition,
    RenewedWhy,
)
from roost.binding.rules import LEAST_LOADED, parse_types, partition_of
from roost.binding.scripts import (
    Beaten,
    Changed,
    Committed,
    Dead,
    Ended,
    Frozen,
    Gone,
    Moving,
    NoRoom,
    NoServer,
    NotOwner,
    Released,
    Renewed,
    Repaired,
    Resolved,
    Unknown,
)
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidInput, Unavailable
from roost.core.events import Gap
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.store.store import Store

UNPLACED = "unplaced"
JOURNAL_PAGE = 500
UNBIND_TRIES = 8
"""Each follows a change of hands that came in between."""


class Chooser(Protocol):
    """Chooses a server where the store does not: a strategy of balancing."""

    async def choose(self, type: str, user: str, /) -> Owner | None: ...  # noqa: A002


class Bindings:
    """Which server holds a user. Verbs of owners need a lease in the partition: see `beat`."""

    def __init__(
        self,
        store: Store,
        settings: BindingSettings,
        discovery: Watcher,
        *,
        loops: Loops | None = None,
        chooser: Chooser | None = None,
    ) -> None:
        """`discovery` says which servers there are; `chooser` is asked if the settings name a strategy."""
        self.settings = settings
        self.types = parse_types(settings.types)
        self.partitions = [Partition(store, number, settings) for number in range(settings.partitions)]
        self._notes = MoveNotes(store, self.partitions)
        self._store = store
        self._discovery = discovery
        self._loops = loops or Loops()
        self._changed = [asyncio.Event() for _ in self.partitions]
        self.keepers = [self._keeper(one) for one in self.partitions]
        self._chooser = chooser if settings.strategy != LEAST_LOADED else None

    @property
    def metrics(self) -> BindingMetrics:
        return BindingMetrics(self)

    def _keeper(self, partition: Partition) -> Keeper:
        fleets = [self._fleet(partition, type_) for type_ in self.types]
        return Keeper(partition, fleets, self._changed[partition.number], self._loops)

    def _fleet(self, partition: Partition, type_: str) -> Fleet:
        return Fleet(partition, self._discovery, type_, self._changed[partition.number], self._loops)

    def add_type(self, type_: str) -> None:
        """Servers of one more type hold users, as far as this process leads."""
        if type_ not in self.types:
            self.types = (*self.types, type_)
            for keeper in self.keepers:
                keeper.add(self._fleet(keeper.partition, type_))

    def remove_type(self, type_: str) -> None:
        """This process looks after servers of the type no more; what the store holds of them stays."""
        self.types = tuple(one for one in self.types if one != type_)
        for keeper in self.keepers:
            keeper.remove(type_)

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """What a process runs for the bindings: a manager leads partitions, a gateway only reads."""
        return [self._keep(keeper) for keeper in self.keepers] if "manager" in roles else []

    async def _keep(self, keeper: Keeper) -> None:
        await self._store.leader(keeper.partition.scope, "manager").lead(keeper.run)

    def partition_of(self, type_: str, user: str) -> int:
        return partition_of(type_, user, len(self.partitions))

    def _of(self, type_: str, user: str) -> Partition:
        return self.partitions[partition_of(type_, user, len(self.partitions))]

    # -- who holds a user

    def read(self, type_: str, user: str) -> Coroutine[Any, Any, Record | None]:
        """What the map says, in one plain read; whether the owner is alive is not asked."""
        return self._of(type_, user).read(type_, user)

    async def resolve(self, type_: str, user: str, *, seen: int = 0) -> Resolved:
        """Who holds a user; places whoever has no living owner. A grant is above `seen`."""
        partition = self._of(type_, user)
        if self._chooser is None:
            return await partition.resolve(type_, user, seen=seen)
        found = await partition.resolve(type_, user, seen=seen, place=False)
        if found != NoServer(UNPLACED):
            return found
        owner = await self._chooser.choose(type_, user)
        placed = await partition.bind(type_, user, owner, seen=seen) if owner else found
        if isinstance(
            placed, NoServer
        ):  # it filled up or ended, or its version is wrong: the store knows one
            return await partition.resolve(type_, user, seen=seen)
        return placed

    async def bind(self, type_: str, user: str, owner: Owner, *, seen: int = 0) -> Resolved:
        """Place a user who has no living owner onto this life of a server."""
        return await self._of(type_, user).bind(type_, user, owner, seen=seen)

    # -- what owners say

    async def release(self, type_: str, user: str, owner: Owner, epoch: int) -> Released | NotOwner:
        """The owner gives a user up; a tombstone keeps the epoch."""
        return await self._of(type_, user).release(type_, user, owner, epoch)

    async def renew(
        self, type_: str, user: str, owner: Owner, *, above: int, why: RenewedWhy = "renewed"
    ) -> Renewed | NotOwner:
        """A new epoch above `above` for the owner, or for one that claims a user whom nobody holds. A mark of
        a move ends with it.

        `NotOwner` with a record that names the caller: its lease is over. Beat first.
        """
        return await self._of(type_, user).renew(type_, user, owner, above=above, why=why)

    def freeze(
        self, type_: str, user: str, owner: Owner, epoch: int, move: str, target: Owner, *, ttl_ms: int
    ) -> asyncio.Future[Frozen | NotOwner | NoRoom]:
        """The owner marks a user as on the move, with a seat at the target; renews if that does not come
        about, and whenever it does not know (see `move`)."""
        return self._of(type_, user).freeze(type_, user, owner, epoch, move, target, ttl_ms=ttl_ms)

    def commit(
        self, type_: str, user: str, move: str, target: Owner, epoch: int
    ) -> asyncio.Future[Committed | Gone]:
        """The target of a move, which has claimed the row under `epoch`, holds the user from now on."""
        return self._of(type_, user).commit(type_, user, move, target, epoch)

    async def reassert(self, type_: str, owner: Owner, held: Sequence[tuple[str, int]]) -> list[Kept | Lost]:
        """Say again whom this owner holds and under which epochs; what the store lost is restored."""
        by_partition: dict[int, list[int]] = {}
        for at, (user, _) in enumerate(held):
            by_partition.setdefault(self.partition_of(type_, user), []).append(at)
        answers: dict[int, Kept | Lost] = {}
        for number, places in by_partition.items():
            told = await self.partitions[number].reassert(type_, owner, [held[at] for at in places])
            answers.update(zip(places, told, strict=True))
        return [answers[at] for at in range(len(held))]

    async def repair(
        self, type_: str, user: str, wrong: Owner, epoch: int, right: Owner, *, above: int
    ) -> Repaired | Dead | Changed:
        """The row names `right`, the map `wrong` under `epoch`: give the user back to `right` if it lives."""
        return await self._of(type_, user).repair(type_, user, wrong, epoch, right, above=above)

    async def beat(
        self,
        type_: str,
        owner: Owner,
        *,
        capacity: int,
        version: str = "",
        partition: int = 0,
        active: Sequence[str] = (),
    ) -> Beaten | Unknown | Ended:
        """This life is alive in the partition; `active` are its users there that were used lately."""
        return await self._numbered(partition).beat(
            type_, owner, capacity=capacity, version=version, active=active
        )

    async def bury(self, type_: str, owner: Owner) -> int:
        """End a life for good, in every partition; returns how many users it held."""
        return sum(await asyncio.gather(*(one.bury(type_, owner) for one in self.partitions)))

    async def unbind(self, type_: str, user: str) -> Record | None:
        """An operator takes a user away from whoever holds them; the record as it was. What the owner has not
        saved is lost if another takes them before it notices. `Unavailable` while the user is on the move."""
        partition = self._of(type_, user)
        for _ in range(UNBIND_TRIES):
            record = await partition.read(type_, user)
            if record is None or record.owner is None:
                return None
            if record.state == "M":  # ends a mark whose time is over, unless the owner's is over too
                found = await partition.resolve(type_, user, place=False)
                if isinstance(found, Moving):
                    break
                if not isinstance(found, NoServer):
                    continue
            answer = await partition.release(type_, user, record.owner, record.epoch, why="unbound")
            if isinstance(answer, Released):
                return record
        raise Unavailable("the user is on the move", hint="try again in a few seconds")

    async def history(self, type_: str, user: str, limit: int) -> list[BindingChange]:
        """The last changes of a user, newest first, as far back as the feed reaches."""
        return await self._of(type_, user).history(type_, user, limit)

    # -- the journal

    async def append(
        self, type_: str, partition: int, entries: Sequence[JournalEntry | tuple[str, int, int, bytes]]
    ) -> list[JournalAnswer]:
        """Append messages of users of this partition, each if its epoch holds; true answers are in it."""
        return await self._numbered(partition).append(type_, [JournalEntry(*entry) for entry in entries])

    async def read_journal(self, type_: str, user: str, after: int) -> list[JournalEntry]:
        """Every entry after the sequence."""
        partition, found = self._of(type_, user), list[JournalEntry]()
        page = await partition.read_journal(type_, user, after, JOURNAL_PAGE)
        while page:
            found += page
            page = await partition.read_journal(type_, user, page[-1].sequence, JOURNAL_PAGE)
        return found

    async def trim(self, type_: str, user: str, up_to: int) -> int:
        """Forget what the row of the database holds."""
        return await self._of(type_, user).trim(type_, user, up_to)

    # -- what became of moves

    async def note_moves(self, type_: str, notes: Sequence[tuple[str, MoveNote]]) -> None:
        """Keep what became of attempts to move users, for seven days."""
        await self._notes.add(type_, notes)

    async def moves(self, type_: str, user: str) -> list[MoveNote]:
        """The last attempts to move a user, newest first."""
        return await self._notes.of(type_, user)

    # -- who is there

    async def follow(self, partition: int = 0) -> AsyncIterator[BindingChange | Gap]:
        """Every change of hands in a partition, for ever. A `Gap` comes first, and whenever continuity cannot
        be proved: forget what was known, all that comes after it is told."""
        feed = self._numbered(partition).feed
        while True:
            after = await feed.head()
            yield Gap(after)
            async with aclosing(feed.follow(after)) as entries:
                async for entry in entries:
                    if isinstance(entry, Gap):
                        break
                    try:
                        yield BindingChange.of(entry)
                    except (KeyError, ValueError):  # not one of ours
                        yield Gap(entry.mark)

    async def binders(
        self, type_: str, owner: Owner, cursor: str = "", count: int = 100, *, partition: int = 0
    ) -> list[str]:
        """Users of one life in a partition, in the order of their names, those behind `cursor`."""
        return await self._numbered(partition).binders(type_, owner, cursor, count)

    async def servers(self, type_: str) -> list[ServerRow]:
        """Every server of a type, with its users in all partitions; alive and open where it is so in all."""
        rows: dict[str, ServerRow] = {}
        for board in await asyncio.gather(*(one.board(type_) for one in self.partitions)):
            for row in board.servers:
                rows[row.server_id] = _joined(rows.get(row.server_id), row)
        return sorted(rows.values())

    def _numbered(self, partition: int) -> Partition:
        if not 0 <= partition < len(self.partitions):
            raise InvalidInput(f"there is no partition {partition}, there are {len(self.partitions)}")
        return self.partitions[partition]


def _joined(known: ServerRow | None, row: ServerRow) -> ServerRow:
    if known is None:
        return row
    return known._replace(
        capacity=known.capacity + row.capacity,
        users=known.users + row.users,
        open=known.open and row.open,
        known=known.known and row.known,
        alive=known.alive and row.alive,
        closed=known.closed and row.closed,
    )
