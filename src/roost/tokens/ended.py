"""Sessions that were ended before their time: a copy of their cookie is worth nothing any more.

Kept in the store until the cookie would have ended by itself, and read by every gateway as often as the
tokens are. While the store is away a gateway goes by what it knew last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from roost.core.errors import StoreError
from roost.store.keys.tokens import ENDED_SESSIONS
from roost.store.store import Store
from roost.tokens.sessions import Session

log = logging.getLogger("roost.tokens")

REFRESH_S = 2.0
MOST = 10_000
"""That are kept; more than that many logouts in 12 hours and the soonest to end by themselves go first."""


class EndedSessions:
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._key = store.keys.plain(ENDED_SESSIONS)
        self._known: set[str] = set()
        """As the store said last."""
        self._own: dict[str, None] = {}
        """Ended here, the earliest first: whatever the store says, for as long as the cookie could live."""
        self._read_at = -REFRESH_S
        self._reading = asyncio.Lock()

    async def add(self, session: Session) -> None:
        """Here at once, elsewhere within two seconds. `StoreError`: here only."""
        self._own[session.nonce] = None
        if len(self._own) > MOST:
            del self._own[next(iter(self._own))]
        call, key = self._store.call, self._key
        await call("ZADD", key, session.expires_at, session.nonce, key=key, idempotent=True)
        await call("ZREMRANGEBYSCORE", key, "-inf", int(time.time()), key=key, idempotent=True)
        await call("ZREMRANGEBYRANK", key, 0, -MOST - 1, key=key, idempotent=True)

    async def has(self, session: Session) -> bool:
        if session.nonce not in self._own and self._is_due:
            await self._refresh()
        return session.nonce in self._own or session.nonce in self._known

    @property
    def _is_due(self) -> bool:
        return self._clock() - self._read_at > REFRESH_S

    async def _refresh(self) -> None:
        """One read for all who wait for it; nobody goes by what was known before it ended."""
        async with self._reading:
            if not self._is_due:
                return
            try:
                found = await self._store.call("ZRANGE", self._key, 0, -1, key=self._key, idempotent=True)
            except StoreError as error:
                log.warning("ended sessions not read", extra={"reason": error.message})
            else:
                self._known = {nonce.decode() for nonce in found}
            self._read_at = self._clock()
