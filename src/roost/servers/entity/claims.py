"""Making a user ours: the map says who may, the row of the database is the judge.

A refused claim is not the end: the row may be ours from before, it may stand above what the map granted (then
we campaign above it, R8), or name another server, to which the map is given back if it lives (repair).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from roost.binding.model import Record
from roost.binding.partition import Kept
from roost.binding.scripts import Changed, Dead, NotOwner, Renewed, Repaired
from roost.binding.service import Bindings
from roost.core.owner import Owner
from roost.db.database import Database
from roost.db.model import Claimed, Refused, Row
from roost.sdk.entity import LoginReason

log = logging.getLogger("roost.entity")

ATTEMPTS = 8
"""Each follows a change that somebody else made meanwhile; more than a few are a fault of their own."""
NOBODYS = frozenset({"new", "return"})
"""Why the map named us where nobody held the user before."""
FUTURE_US = 86_400_000_000
"""An epoch so far ahead of the clock was made up."""


class Ours(NamedTuple):
    owner: Owner
    epoch: int
    row: Row
    reason: LoginReason


class Elsewhere(NamedTuple):
    """Not to be served here; `record` is what the map said last."""

    record: Record | None
    why: Literal["moved", "moving", "stale", "busy", "leased"]
    """Stale: the map may name us, but the row had another owner since. Busy: it changes too often.
    Leased: the row's owner has lost the store and carries on."""
    leased_ms: int = 0
    """For so long, if it does not prolong it."""


class Claims:
    def __init__(self, bindings: Bindings, database: Database, type_: str, me: Callable[[], Owner]) -> None:
        self._bindings = bindings
        self._database = database
        self._type = type_
        self._me = me

    async def take(self, user: str) -> Ours | Elsewhere:
        """For a user of whom nothing is here."""
        me = self._me()
        record = await self._bindings.read(self._type, user)
        if record is None or record.owner != me:
            return Elsewhere(record, "moved")
        if record.state == "M":
            return Elsewhere(record, "moving")
        return await self._claim(user, me, record)

    async def _claim(self, user: str, me: Owner, record: Record) -> Ours | Elsewhere:
        epoch, why = record.epoch, record.why
        # Of a user whom somebody held the row says who: a claim that judges its own epoch is refused, and
        # tells. The map may have lost our grant since, and a living owner have claimed under `previous`.
        judged = record.previous if why in NOBODYS else epoch
        for _ in range(ATTEMPTS):
            answer = await self._database.claim(
                self._type, user, me, epoch, judged=judged, unless_leased=True
            )
            if isinstance(answer, Claimed):
                return Ours(me, epoch, answer.row, _reason(answer.row, why))
            row = answer.row
            if row.owner is not None and row.owner != me:
                settled = await self._repair(user, me, epoch, row)
                if settled is not None:
                    return settled
                if answer.leased_ms:
                    return Elsewhere(None, "leased", answer.leased_ms)
                why = "failover"
            if row.epoch >= epoch:
                renewed = await self._bindings.renew(self._type, user, me, above=row.epoch)
                if isinstance(renewed, NotOwner):
                    return Elsewhere(renewed.record, "moved")
                epoch = renewed.epoch
            judged = row.epoch
        log.warning("the row changes too often to be claimed", extra={"userId": user})
        return Elsewhere(None, "busy")

    async def _repair(self, user: str, me: Owner, epoch: int, row: Row) -> Elsewhere | None:
        """The row names another; None: it is dead, the row may be claimed."""
        assert row.owner is not None
        answer = await self._bindings.repair(self._type, user, me, epoch, row.owner, above=row.epoch)
        match answer:
            case Dead():
                return None
            case Repaired():
                log.warning(
                    "given back to its owner", extra={"userId": user, "serverId": row.owner.server_id}
                )
                return Elsewhere(await self._bindings.read(self._type, user), "moved")
            case Changed(record):
                return Elsewhere(record, "moved")

    async def renew(self, user: str, epoch: int, above: int) -> Ours | Elsewhere:
        """For a user whom we hold under `epoch`: a new one above `above`, in map and row (R3, R6).

        Our memory is good only if nobody claimed the row meanwhile; else it is somebody else's. A map that
        names another under an earlier epoch than ours has lost our grant in a failover: it is told.
        """
        me, judged = self._me(), epoch
        for _ in range(ATTEMPTS):
            renewed = await self._bindings.renew(self._type, user, me, above=max(above, judged))
            if not isinstance(renewed, Renewed):
                if not await self._restored(user, me, epoch, renewed.record):
                    return Elsewhere(renewed.record, "moved")
                continue
            answer = await self._database.claim(self._type, user, me, renewed.epoch, judged=judged)
            match answer:
                case Claimed(row):
                    return Ours(me, renewed.epoch, row, "return")
                case Refused(row) if row.owner == me and row.epoch > judged:
                    judged = row.epoch  # an earlier attempt of ours whose answer was lost
                case Refused():
                    return Elsewhere(None, "stale")
        return Elsewhere(None, "busy")

    async def _restored(self, user: str, me: Owner, epoch: int, record: Record | None) -> bool:
        """Whether the map had gone back behind our epoch, and names us again."""
        if record is None or record.owner in (None, me) or record.epoch >= epoch:
            return False
        [answer] = await self._bindings.reassert(self._type, me, [(user, epoch)])
        return isinstance(answer, Kept)


def is_made_up(epoch: int) -> bool:
    """Whether no store can have granted it: one above it would lock the user for everybody."""
    return epoch > time.time() * 1_000_000 + FUTURE_US


def _reason(row: Row, why: str) -> LoginReason:
    if row.state is None and row.last_sequence == 0:
        return "new"
    return "failover" if why == "failover" else "return"
