"""Who is on a game server, and who left it, until the waiting room knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from roost.api.queue import How
from roost.core.errors import CURABLE, Forbidden, NotAuthenticated, RoostError

log = logging.getLogger("roost.sdk.door")

TOLD_AT_ONCE = 32
"""Leaves that are on their way to the waiting room at the same time."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody who was let in."""

    user_id: str
    nickname: str
    region: str
    connection: str
    life: str
    traceparent: str = field(default="", compare=False)
    """Context of the trace that their entry began, for spans of your own; empty: it was not sampled."""


class Leaves:
    """Who left, until the waiting room knows it. Of a life before the present one it holds nothing."""

    def __init__(self, release: Callable[[Guest, How], Awaitable[None]], life: Callable[[], str]) -> None:
        """`life` is the server's present one."""
        self._release = release
        self._life = life
        self._untold: dict[str, tuple[Guest, How]] = {}
        """By connection."""
        self._telling = asyncio.Lock()

    def __contains__(self, connection: str) -> bool:
        return connection in self._untold

    def add(self, guest: Guest, how: How) -> None:
        self._untold[guest.connection] = (guest, how)

    @property
    def dropped(self) -> int:
        """Whose place inside is to be held, which the waiting room does not know yet."""
        life = self._life()
        return sum(how == "dropped" and guest.life == life for guest, how in self._untold.values())

    @property
    def telling(self) -> bool:
        return self._telling.locked()

    async def tell(self) -> None:
        """Tell of all, of each once; what cannot be told now stays."""
        async with self._telling:
            tried: set[str] = set()
            while part := [self._untold[one] for one in self._untold if one not in tried][:TOLD_AT_ONCE]:
                tried.update(guest.connection for guest, _ in part)
                if not all(await asyncio.gather(*(self._tell(guest, how) for guest, how in part))):
                    return

    async def _tell(self, guest: Guest, how: How) -> bool:
        """Whether others may be told now."""
        try:
            await self._release(guest, how)
        except (*CURABLE, NotAuthenticated, Forbidden) as error:
            if isinstance(error, Forbidden) and guest.life != self._life():
                self._untold.pop(guest.connection, None)  # no key will prove that life again
                return True
            log.warning("leave not told yet", extra={"userId": guest.user_id, "reason": error.message})
            return isinstance(error, Forbidden)  # of the proof of one life, not of everybody's
        except RoostError as error:
            log.error("leave refused", extra={"userId": guest.user_id, "reason": error.message})
        self._untold.pop(guest.connection, None)
        return True
