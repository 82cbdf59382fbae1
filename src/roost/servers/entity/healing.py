"""After a store that may have forgotten: say again whom we hold.

A lost connection is a sign of a failover, and a failover may have lost the last grants and journal entries.
What the map lost is restored from what owners say; the slow round finds what no sign told of.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from roost.binding.partition import REASSERT_LIMIT, Kept, Lost
from roost.binding.service import Bindings
from roost.core.errors import Unavailable
from roost.core.owner import Owner
from roost.servers.entity.journal import JournalWriter
from roost.servers.entity.session import Session
from roost.servers.entity.tenancy import Residence

log = logging.getLogger("roost.entity")


class Healer:
    def __init__(
        self,
        bindings: Bindings,
        type_: str,
        me: Callable[[], Owner],
        sessions: Mapping[str, Session],
        residence: Residence,
        journal: JournalWriter,
    ) -> None:
        self._bindings = bindings
        self._type = type_
        self._me = me
        self._sessions = sessions
        self._residence = residence
        self._journal = journal
        self.connections: Callable[[], object] = lambda: None
        """What identifies the present connections to the store; None while one is missing."""
        self.beat: Callable[[], Awaitable[object]] | None = None
        """A beat at once: a store that forgot us restores nothing before it has heard one."""
        self._seen: object = None

    async def step(self) -> None:
        """Act on a new connection to the store, but for the first; on the end of our own life; and on a move
        that did not come about, of which nobody knows how far it went."""
        for session in self._overdue():
            self._residence.doubt(session)
        now = self.connections()
        if now is None or now == self._seen:
            return
        if self._seen is not None:
            log.info("the store was away: saying again whom we hold", extra={"users": len(self._sessions)})
            if self.beat is not None:
                await self.beat()
            await self.reassert_all()
            for session in list(self._sessions.values()):
                self._journal.again(session)
        self._seen = now

    async def reassert_all(self) -> None:
        held = [session for session in self._sessions.values() if self._is_settled(session)]
        for at in range(0, len(held), REASSERT_LIMIT):
            await self._reassert(held[at : at + REASSERT_LIMIT])

    async def _reassert(self, some: list[Session]) -> None:
        some = [session for session in some if self._is_settled(session)]
        asserted = [(session, session.epoch) for session in some]
        answers = await self._bindings.reassert(
            self._type, self._me(), [(session.user, epoch) for session, epoch in asserted]
        )
        for (session, epoch), answer in zip(asserted, answers, strict=True):
            if session.epoch == epoch and (isinstance(answer, Lost) or answer.epoch != epoch):
                self._differs(session, answer)

    def _differs(self, session: Session, answer: Kept | Lost) -> None:
        record = answer.record if isinstance(answer, Lost) else None
        if isinstance(answer, Lost) and (record is None or record.epoch < session.epoch):
            raise Unavailable("the store has not heard our beat yet")
        if record is not None and record.owner is None:
            self._residence.dismiss(session)
        else:
            self._residence.doubt(session)

    def _overdue(self) -> list[Session]:
        """Looks at everybody five times a second: so it asks once for each partition, and calls nothing."""
        partitions = range(len(self._bindings.partitions))
        over = frozenset(one for one in partitions if self._residence.has_ended(one))
        return [one for one in self._sessions.values() if one.in_doubt or one.partition in over]

    def _is_settled(self, session: Session) -> bool:
        """Of one that is being claimed the map hears anyway."""
        held = self._residence.is_held(session.partition) and self._residence.is_current(session)
        return session.is_open and held
