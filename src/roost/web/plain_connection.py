"""A connection that answers plain requests itself, and leaves everything else to aiohttp.

It begins with us. The first request that is not plain goes to aiohttp along with all that comes after it, so
nobody ever reads from the middle of what the other has begun.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from roost.web.connections import Connection
from roost.web.plain import Answer, Known, PlainRequest, PlainRoutes, Reply, rendered

log = logging.getLogger("roost.web")

MAX_UNREAD_BYTES = 65536
"""Behind a request that is being answered; who sends more waits."""


class PlainConnection(Connection):
    """One connection, with aiohttp's own task, deadlines and shutdown."""

    __slots__ = ("_is_held", "_plain", "_remote", "_unread")

    def __init__(self, plain: PlainRoutes | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._plain = plain
        """None: it is aiohttp's."""
        self._unread = b""
        self._is_held = False
        """Whether nothing more is read for now."""
        self._remote = ""

    def idle_s(self) -> float:
        return 0.0 if self._request_in_progress else super().idle_s()

    def data_received(self, data: bytes) -> None:
        if self._plain is None:
            super().data_received(data)
        elif not (self._close or self._force_close):
            self._unread += data
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            elif len(self._unread) > MAX_UNREAD_BYTES and not self._is_held and self.transport is not None:
                self._is_held = True
                self.transport.pause_reading()

    async def start(self) -> None:
        """Answer what is plain; then, unless the connection has ended, aiohttp goes on."""
        plain, last = self._plain, None
        peer = self.peername
        self._remote = str(peer[0]) if isinstance(peer, tuple) else str(peer or "")
        while plain is not None and not self._force_close:
            if not self._unread:
                await self._wait()
            last = known = plain.known(self._unread, last)
            if known is None:
                self._hand_over()
                break
            if not await self._answered(self._request(known), known.answer):
                return
            if self._unread:
                await asyncio.sleep(0)  # others have their turn before who asks many things at once
        if not self._force_close:
            await super().start()

    def _request(self, known: Known) -> PlainRequest:
        head, end, unread = known.head, known.end, self._unread
        body, self._unread = unread[len(head.raw) : end], unread[end:]
        given = (head.method, head.path, known.match_info, head.query, head.headers)
        return PlainRequest(*given, body, self, self._remote)

    async def _wait(self) -> None:
        """Until something comes. Who ends the connection, by aiohttp's deadlines too, cancels the wait."""
        self._read_on()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _hand_over(self) -> None:
        unread, self._unread, self._plain = self._unread, b"", None
        self._read_on()
        super().data_received(unread)

    def _read_on(self) -> None:
        if self._is_held and self.transport is not None:
            self._is_held = False
            self.transport.resume_reading()

    async def _answered(self, request: PlainRequest, answer: Answer) -> bool:
        """Answer one request; whether the connection goes on."""
        self._request_count += 1
        self._request_in_progress = True
        try:
            reply = await answer(request)
            if not isinstance(reply, Reply):
                raise TypeError(f"{request.path} answers with more than JSON")
            if self.transport is not None and not self.transport.is_closing():
                self.transport.write(rendered(reply))
            if self._paused:
                await self._drain_helper()
        except ConnectionError:
            return False
        except Exception:
            log.exception("a plain request was not answered")
            self.force_close()
            return False
        finally:
            self._request_in_progress = False
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)
        if (reply.closes or self._close) and self.transport is not None:
            self.transport.close()
            return False
        self._begin_idle_time()
        return True

    def _begin_idle_time(self) -> None:
        """As aiohttp does it: one timer, which looks again where it comes too early."""
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None and not self._force_close:
            self._keepalive_handle = self._loop.call_at(
                self._next_keepalive_close_time, self._process_keepalive
            )
