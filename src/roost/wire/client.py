"""The client: one multiplexed connection to one address, and every call with an honest end.

answered                                             the Answer, refusals included
not written, or refused as OVERLOADED or CLOSING     NotSent: certainly not executed
written, then the connection or the time was lost    OutcomeUnknown
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections.abc import Callable

from roost.wire.answer import Answer
from roost.wire.calls import Calls, Done
from roost.wire.dialing import Dialer, Link
from roost.wire.frame import Frame
from roost.wire.limits import DEFAULTS, Limits

__all__ = ["Answer", "Done", "Frame", "Peer"]

log = logging.getLogger("roost.wire.client")


class Peer(Calls):
    """The way to one server. It connects when somebody wants something of it, and again with backoff.

    `secret` None: the server asks for no handshake. `expects`: roles that the server may have; empty: any.
    `on_push` gets each push in order; `on_lost` is called when an open connection ends (pushes may be missing
    from then on), `on_open` when one is there.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        secret: bytes | None,
        role: str,
        version: str = "",
        ssl: tls.SSLContext | None = None,
        expects: frozenset[str] = frozenset(),
        on_push: Callable[[Frame], None] | None = None,
        on_open: Callable[[], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        super().__init__(f"{host}:{port}", limits)
        self._on_push = on_push
        self._on_open = on_open
        self._on_lost = on_lost
        self._dialer = Dialer(self, host, port, secret, role, version, ssl, expects, limits)

    @property
    def is_open(self) -> bool:
        return self._link is not None

    @property
    def last_fault(self) -> str:
        """Why the last attempt to connect failed; empty after one that did not."""
        return self._dialer.last_fault

    @property
    def peer_version(self) -> str:
        """What the server said of itself; empty while there is no connection."""
        return self._link.terms.version if self._link is not None else ""

    async def connect(self, timeout_s: float | None = None) -> None:
        """Wait until there is a connection; `NotSent` says why there is none."""
        await self._dialer.opened(self._limits.handshake_s if timeout_s is None else timeout_s)

    async def call(
        self,
        service: int,
        method: int,
        payload: bytes,
        *,
        epoch: int = 0,
        sequence: int | None = None,
        oldest: int | None = None,
        budget_ms: int,
        traceparent: bytes | None = None,
    ) -> Answer:
        """One request and its answer. A caller that is cancelled does not take its request back."""
        future: asyncio.Future[Answer] = self._loop.create_future()

        def done(answer: Answer | Exception) -> None:
            if future.done():
                return
            if isinstance(answer, Answer):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        self.send(
            service,
            method,
            payload,
            epoch=epoch,
            sequence=sequence,
            oldest=oldest,
            budget_ms=budget_ms,
            traceparent=traceparent,
            done=done,
        )
        return await future

    def cut(self, why: str) -> None:
        """End the connection now, as if the network had; the next call makes a new one."""
        if self._link is not None:
            self._link.cut(why)

    async def close(self) -> None:
        """End the connection; calls in flight end with `OutcomeUnknown`, waiting ones with `NotSent`."""
        self._is_closed = True
        await self._dialer.close()
        self._give_up("the peer was closed")
        self._sweeper.stop()

    # -- what the dialer and its link say

    def wants_connection(self) -> bool:
        return bool(self._waiting) and not self._is_closed

    def opened(self, link: Link) -> None:
        self._link = link
        terms, limits = link.terms, self._limits
        self._most_in_flight = min(limits.max_in_flight, terms.max_in_flight or limits.max_in_flight)
        self._largest = min(limits.max_frame_bytes, terms.max_frame_bytes or limits.max_frame_bytes)
        self._wait_for_room()
        if self._on_open is not None:
            _hear(self._on_open)
        self.pump()

    def lost(self, link: Link, why: str) -> None:
        if self._link is not link:
            return  # it was never open
        self._link = None
        self._lose_pending(link.written_request, why)
        self._wait_for_connection()
        if self._on_lost is not None:
            _hear(self._on_lost, why)

    def refused(self, why: str) -> None:
        """The server does not want us: waiting longer would not help."""
        self._give_up(why)

    def _want_connection(self) -> None:
        self._dialer.want()

    def _fault(self) -> str:
        return self._dialer.last_fault

    def _pushed(self, frame: Frame) -> None:
        if self._on_push is not None and frame.is_push:
            _hear(self._on_push, frame)


def _hear(callback: Callable[..., None], *what: object) -> None:
    """Whatever the owner's callback does, the connection goes on."""
    try:
        callback(*what)
    except Exception:
        log.exception("wire: a callback failed")
