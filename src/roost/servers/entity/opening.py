"""From a claim to an object that can be served: load, then replay what the row does not hold."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from roost.binding.partition import JournalEntry
from roost.binding.service import Bindings
from roost.core.errors import RoostError
from roost.core.owner import Owner
from roost.db.database import Database
from roost.db.model import Row
from roost.sdk.entity import Entity, Journal, LoginReason
from roost.servers.entity.claims import Claims, Elsewhere, Ours
from roost.servers.entity.execution import LAPSED, Executor
from roost.servers.entity.flusher import Flusher
from roost.servers.entity.journal import unpack
from roost.servers.entity.lease import Lease
from roost.servers.entity.ledger import Ledger, unwrap
from roost.servers.entity.replies import Replies
from roost.servers.entity.session import Entry, Phase, Session, digest_of
from roost.servers.entity.settings import EntitySettings
from roost.servers.entity.tenancy import moved
from roost.servers.entity.turns import limited
from roost.wire.codes import Code
from roost.wire.server import Answer, refusal

log = logging.getLogger("roost.entity")

LEASED_MS = 1000
"""How soon, at the latest, one whose owner carries on without the store is to be tried again."""


class Opener:
    def __init__(
        self,
        type_: str,
        entity: type[Entity],
        settings: EntitySettings,
        claims: Claims,
        bindings: Bindings,
        database: Database,
        executor: Executor,
        flusher: Flusher,
        leases: Sequence[Lease],
    ) -> None:
        self._type = type_
        self._entity = entity
        self._load_s = settings.load_ms / 1000
        self._claims = claims
        self._bindings = bindings
        self._database = database
        self._executor = executor
        self._flusher = flusher
        self._leases = leases
        self.trades: Callable[[Session, Ledger], None]
        """Told of each user whose row has a ledger."""

    async def open(self, session: Session) -> LoginReason | Answer:
        """Why the user came; an answer says why not. Raises what a store or database away raises."""
        lease = self._leases[session.partition]
        generation = lease.generation
        if not lease.is_valid:
            return LAPSED
        found = await self._claims.take(session.user)
        if isinstance(found, Elsewhere):
            if found.why == "moving":
                return refusal(Code.MIGRATING, "the user is on the move")
            if found.why == "leased":
                said = "the server before goes on with the user, without the store"
                return refusal(Code.OVERLOADED, said, retry_after_ms=min(found.leased_ms, LEASED_MS))
            return moved(found.record)
        if (fault := await self.load(session, found.row)) != "":
            await self._give_back(session, found)
            return refusal(Code.REFUSED, fault)
        self.take_up(session, found.owner, found.epoch, generation, found.row)
        if isinstance(self._entity.durability, Journal) or found.reason == "failover":
            await self._replay(session)
        session.phase = Phase.OPEN
        if session.unsaved.is_dirty:
            self._flusher.changed(session)
        return found.reason

    def take_up(self, session: Session, owner: Owner, epoch: int, generation: int, row: Row) -> None:
        """The object is loaded: what else the row says."""
        session.owner, session.epoch, session.generation = owner, epoch, generation
        session.last_sequence = session.unsaved.sequence = row.last_sequence
        session.replies = Replies.unpack(row.replies)
        session.unsaved.revision, session.unsaved.digest = row.revision, digest_of(row.state)
        session.trimmed = row.last_sequence

    def unreadable(self, row: Row) -> str:
        """Why the class cannot read the state; empty if it can."""
        if row.min_reader <= self._entity.schema_version:
            return ""
        return (
            f"the state needs a class of schema version {row.min_reader}, "
            f"this server's has {self._entity.schema_version}"
        )

    async def load(self, session: Session, row: Row) -> str:
        """Why the object could not be loaded; empty if it was."""
        if fault := self.unreadable(row):
            return fault
        session.entity.loaded_schema = row.schema_version if row.state is not None else 0
        try:
            ledger, state = unwrap(row.state)
            if ledger is not None:
                self.trades(session, ledger)
            await limited(session.entity.load(state), self._load_s)
        except Exception as error:
            fields = {"userId": session.user, "reason": type(error).__name__}
            log.error("load failed", exc_info=error, extra=fields)
            return "the user's state could not be loaded"
        return ""

    async def _give_back(self, session: Session, found: Ours) -> None:
        """Another server, of another version, may do better."""
        try:
            await self._database.release(self._type, session.user, found.owner, found.epoch)
            await self._bindings.release(self._type, session.user, found.owner, found.epoch)
        except RoostError as error:
            log.info("not given back", extra={"userId": session.user, "reason": error.message})

    async def _replay(self, session: Session) -> None:
        entries = await self._bindings.read_journal(self._type, session.user, session.last_sequence)
        session.is_replaying = True
        try:
            for entry in entries:
                await self._again(session, entry)
        finally:
            session.is_replaying = False
        if entries:
            log.info("replayed", extra={"userId": session.user, "messages": len(entries)})

    async def _again(self, session: Session, entry: JournalEntry) -> None:
        try:
            message = unpack(entry.sequence, entry.payload)
        except msgspec.DecodeError:
            fields = {"userId": session.user, "sequence": entry.sequence}
            log.error("an entry of the journal is unreadable and left out", extra=fields)
            return
        reply = await self._executor.handled(session, message)
        session.executed(message.sequence, reply, time.monotonic())
        self._executor.counts["replayed"] += 1
        session.tail.append(Entry(entry.sequence, entry.payload))
        session.appended = entry.sequence
