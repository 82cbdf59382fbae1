"""While the store does not answer: a lease in the database, so that this server goes on with whom it holds.

It is kept from the thread that beats, over a connection of its own, so a busy main loop does not end it and
one that hangs does. It ends `limit_s` after the store last answered: where others reach the store and we do
not, our users wait for it.

When the store answers again our users may have been granted to others, who were refused by that lease. It
stays until everything that was acknowledged under it is in the rows; then they may have them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from roost.core.errors import RoostError
from roost.core.owner import Owner
from roost.db.database import Database
from roost.sdk.entity import Durability, WriteBack
from roost.servers.entity.lease import Lease
from roost.servers.entity.session import Session
from roost.servers.entity.tenancy import Residence

log = logging.getLogger("roost.entity")

CLOSE_S = 1.0

OpenDatabase = Callable[[], AbstractAsyncContextManager[Database]]
"""Called in the thread of the beat, on its loop."""


class Carrying:
    """The lease of one server in the database."""

    def __init__(
        self,
        type_: str,
        leases: Sequence[Lease],
        open_database: OpenDatabase,
        *,
        ttl_ms: int,
        patience_s: float,
        limit_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now`: the clock of the leases."""
        self._type = type_
        self._leases = leases
        self._open = open_database
        self._ttl_ms = ttl_ms
        self._patience_s = patience_s
        self._limit_s = limit_s
        self._now = now
        self._stack = contextlib.AsyncExitStack()
        self._database: Database | None = None
        self._is_prepared = False
        self._kept: Owner | None = None
        """Whose lease may stand."""
        self._settling_since: float | None = None
        self.round = 0
        """Rises whenever the store has begun to answer again."""
        self.settled = 0
        """The round of which the main loop says that everything is written."""
        self.kept = 0
        """How often it was kept."""

    @property
    def is_on(self) -> bool:
        return self._kept is not None

    async def carry_on(self, me: Owner) -> None:
        """The store has not taken a beat: prolong what may be prolonged."""
        self._settling_since = None
        if any(lease.may_be_carried(self._limit_s) for lease in self._leases):
            if self._kept is None:
                log.warning("the store does not answer: carrying on by a lease in the database")
            sent_at = self._now()
            if await self._keep(me):
                for lease in self._leases:
                    lease.carried(sent_at, self._ttl_ms, self._limit_s)

    async def settle(self) -> bool:
        """Every beat was taken; whether no lease in the database is needed any more."""
        await self._prepare()
        if self._kept is None:
            return True
        if self._settling_since is None:
            self._settling_since = self._now()
            self.round += 1
        is_late = self._now() > self._settling_since + self._limit_s
        if self.settled != self.round and not is_late:
            await self._keep(self._kept)
            return False
        if is_late:
            log.error("not everything could be written in time: users may be taken over without it")
        await self._drop()
        return True

    async def close(self) -> None:
        """After everybody was written and released, or nobody could be: it is of no use any more."""
        if self._kept is not None:
            await self._drop()
        with contextlib.suppress(RoostError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._stack.aclose()

    async def _prepare(self) -> None:
        """Open the database while there is time, once; what fails is tried again when it is needed."""
        if not self._is_prepared:
            self._is_prepared = True
            with contextlib.suppress(RoostError, TimeoutError):
                async with asyncio.timeout(self._patience_s):
                    await self._opened()

    async def _keep(self, owner: Owner) -> bool:
        self._kept = owner  # also if no answer comes
        try:
            async with asyncio.timeout(self._patience_s):
                await (await self._opened()).keep_lease(self._type, owner, self._ttl_ms)
        except (RoostError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            log.warning("no lease in the database", extra={"reason": reason})
            return False
        self.kept += 1
        return True

    async def _drop(self) -> None:
        assert self._kept is not None
        owner, self._kept, self._settling_since = self._kept, None, None
        try:
            async with asyncio.timeout(CLOSE_S):
                await (await self._opened()).drop_lease(self._type, owner)
        except (RoostError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            log.info("the lease in the database is left to run out", extra={"reason": reason})

    async def _opened(self) -> Database:
        if self._database is None:
            self._database = await self._stack.enter_async_context(self._open())
        return self._database


class Settler:
    """In the main loop: whether whatever was acknowledged before the store answered again is in the rows.

    With a journal it is there or in the store, and with write-through it was there before.
    """

    def __init__(
        self,
        carrying: Carrying,
        residence: Residence,
        sessions: Mapping[str, Session],
        durability: Durability,
    ) -> None:
        self._carrying = carrying
        self._residence = residence
        self._sessions = sessions
        self._looks = isinstance(durability, WriteBack)

    async def step(self) -> None:
        number = self._carrying.round
        if number != self._carrying.settled and not any(map(self._is_behind, self._sessions.values())):
            self._carrying.settled = number

    def _is_behind(self, session: Session) -> bool:
        """Whether its row lacks something, and may be claimed by another as soon as our lease is over."""
        if not self._looks or not session.is_open or not session.unsaved.is_dirty:
            return False
        return not (self._residence.is_held(session.partition) and self._residence.is_current(session))
