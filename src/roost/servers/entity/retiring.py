"""RETIRE: a server that was emptied by plan sends whoever still comes on, and leaves when nobody does.

A map that has gone back by a failover may name it again for users who had left: they are opened, written and
given free at once, so that the map places them on a server that stays.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from roost.servers.entity.peering import BAD, refuse_role
from roost.servers.entity.visits import Release
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

log = logging.getLogger("roost.entity")

MOST_QUIET_MS = 3_600_000
_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode
_decode_back = msgspec.msgpack.Decoder(tuple[str]).decode


class Retiring:
    """`leave` is called once, when it holds nobody, nothing is under way and no call came for long."""

    def __init__(self, host: Host, now: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._now = now
        self._quiet_s = 0.0
        self._since = 0.0
        self.is_on = False
        self.leave: Callable[[], None] = lambda: None
        self.in_flight: Callable[[], int] = lambda: 0
        self.knocked_at = 0.0
        """When somebody came last for a user who is not here."""

    def retire(self, call: Call) -> Answer:
        """Method 8: `[type, quiet ms]` → `[]`; 0 ms: as the settings say."""
        if (refused := refuse_role(call, "manager")) is not None:
            return refused
        try:
            type_, quiet_ms = _decode(call.payload)
        except BAD as error:
            return refusal(Code.BAD_REQUEST, f"to retire is [type, quiet ms]: {error}")
        if type_ != self._host.type or not 0 <= quiet_ms <= MOST_QUIET_MS:
            return refusal(Code.BAD_REQUEST, f"0 to {MOST_QUIET_MS} ms, of users of {self._host.type}")
        if not self.is_on:
            log.info("retiring: whoever comes is sent on", extra={"users": len(self._host.sessions)})
            self._since = self._now()
        self.is_on, self._quiet_s = True, (quiet_ms / 1000 or self._host.settings.retire_quiet_seconds)
        return Answer()

    def unretire(self, call: Call) -> Answer:
        """Method 9: `[type]` → `[]`: it stays."""
        if (refused := refuse_role(call, "manager")) is not None:
            return refused
        try:
            _decode_back(call.payload)
        except BAD as error:
            return refusal(Code.BAD_REQUEST, f"to stay is [type]: {error}")
        self.is_on = False
        return Answer()

    def knock(self) -> None:
        self.knocked_at = self._now()

    async def step(self) -> None:
        """Let go of whoever is here all the same, and leave, if it is time."""
        host = self._host
        if not self.is_on or host.is_stopping:
            return
        for session in list(host.sessions.values()):
            if session.is_open and not session.line.busy:
                session.line.add(Release(host, session, "stopping"))
        if host.sessions or host.mover.under_way or self.in_flight():
            return
        if self._now() - max(self._since, self.knocked_at) >= self._quiet_s:
            host.is_stopping = True
            log.info("retired: nobody is here and nobody came for long", extra={"seconds": self._quiet_s})
            self.leave()
