"""Whether this server may serve its users, and what it does where it may not."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from roost.binding.model import Record
from roost.core.errors import RoostError
from roost.core.owner import Owner
from roost.db.database import Database
from roost.servers.entity.claims import Claims, Elsewhere
from roost.servers.entity.flusher import Flusher
from roost.servers.entity.journal import JournalWriter
from roost.servers.entity.lease import Lease
from roost.servers.entity.session import Session
from roost.wire.codes import Code
from roost.wire.server import Answer, refusal

log = logging.getLogger("roost.entity")

LAST_SAVE_S = 1.0
"""How long a user who is lost may take to be written, in case the row is still ours."""


class Residence:
    """The tenancy of every session. `ended` is told of each that ends, `lost` of each that is taken over."""

    def __init__(
        self,
        type_: str,
        me: Callable[[], Owner],
        leases: Sequence[Lease],
        claims: Claims,
        database: Database,
        *,
        ended: Callable[[Session], None],
        lost: Callable[[Session], None],
    ) -> None:
        self._type = type_
        self._me = me
        self._leases = leases
        self._claims = claims
        self._database = database
        self._ended = ended
        self._lost = lost
        self.flusher: Flusher
        self.journal: JournalWriter
        self.counts: Counter[str] = Counter()

    def is_held(self, partition: int) -> bool:
        return self._leases[partition].is_valid

    def has_ended(self, partition: int) -> bool:
        """Whether our life is over for good, as the store says."""
        return self._leases[partition].ended

    def is_current(self, session: Session) -> bool:
        return self._leases[session.partition].generation == session.generation

    async def make_current(self, session: Session, above: int = 0) -> bool:
        """Beat (its thread does), renew, claim, then serve: never again under an epoch from before (R3)."""
        lease = self._leases[session.partition]
        generation = lease.generation
        if not lease.is_valid:
            if lease.ended:
                await self.leave(session, None)
            return False
        found = await self._claims.renew(session.user, session.epoch, above)
        if isinstance(found, Elsewhere):
            await self._elsewhere(session, found)
            return False
        self.renewed(session, found.owner, found.epoch, generation)
        return session.is_open

    def generation(self, session: Session) -> int:
        """Of the lease as it is now: read it before what is claimed under it."""
        return self._leases[session.partition].generation

    def renewed(self, session: Session, owner: Owner, epoch: int, generation: int) -> None:
        """Map and row have it under this epoch."""
        self.counts["renewed"] += 1
        session.owner, session.epoch, session.generation = owner, epoch, generation
        session.in_doubt = False
        self.journal.look_at(session)

    async def _elsewhere(self, session: Session, found: Elsewhere) -> None:
        """Lost, if the map names somebody else; where it names us or nobody, our beat was not heard yet."""
        record = found.record
        if found.why == "stale":
            return self.lose(session)
        if found.why == "busy" or is_unheard(record, self._me()):
            return None
        return await self.leave(session, record)

    async def leave(self, session: Session, record: Record | None) -> None:
        """Give the user up, in a turn of it: the row may still be ours, then nothing is lost."""
        if await self.flusher.save_in_turn(session, LAST_SAVE_S) and session.is_open:
            await self._clear_row(session)
        self.lose(session, record)

    async def _clear_row(self, session: Session) -> None:
        try:
            await self._database.release(self._type, session.user, session.owner, session.epoch)
        except RoostError as error:
            log.info("row not cleared", extra={"userId": session.user, "reason": error.message})

    def lose(self, session: Session, record: Record | None = None) -> None:
        """The user is somebody else's: drop what is here, unsaved, and send those who wait away."""
        if not session.has_ended:
            self.counts["lost"] += 1
            log.warning(
                "lost a user to another server",
                extra={"userId": session.user, "epoch": session.epoch, "unsaved": session.unsaved.is_dirty},
            )
            self.end(session, moved(record))
            self._lost(session)

    def end(self, session: Session, farewell: Answer) -> None:
        if not session.has_ended:
            session.end(farewell)
            self._ended(session)

    def dismiss(self, session: Session) -> None:
        """Somebody gave the user free in the map: let go of it, written."""
        if session.is_open and not session.is_doubted:
            session.is_doubted = True
            session.line.add_first(LeaveTurn(self, session))

    def doubt(self, session: Session) -> None:
        """Something says that the epoch is not the map's: claim anew before anything else."""
        if session.is_open and not session.is_doubted:
            session.is_doubted = True
            session.line.add_first(RenewTurn(self, session))


class RenewTurn:
    """Claims anew, unless that was done since the epoch was doubted: each renewal fences what is under way,
    so a second one would be the reason for a third."""

    __slots__ = ("_epoch", "_residence", "_session")

    def __init__(self, residence: Residence, session: Session) -> None:
        self._residence = residence
        self._session = session
        self._epoch = session.epoch

    async def run(self) -> None:
        session = self._session
        try:
            if session.is_open and session.epoch == self._epoch:
                await self._act()
        except RoostError as error:
            log.info("not claimed anew", extra={"userId": session.user, "reason": error.message})
            self._residence.journal.look_at(session)  # which finds out again
        finally:
            session.is_doubted = False

    async def _act(self) -> None:
        await self._residence.make_current(self._session)

    def bounce(self) -> None:
        return None


class LeaveTurn(RenewTurn):
    async def _act(self) -> None:
        await self._residence.leave(self._session, None)


def is_unheard(record: Record | None, me: Owner) -> bool:
    """Whether who was refused has no other fault than that the store, which forgot it, waits for its beat."""
    return record is None or record.owner in (None, me)


def moved(record: Record | None, message: str = "the user is not on this server") -> Answer:
    """What a gate hears that should look the user up again."""
    if record is None or record.owner is None:
        return refusal(Code.MOVED, message)
    owner = record.owner
    return refusal(Code.MOVED, message, serverId=owner.server_id, life=owner.life, epoch=record.epoch)
