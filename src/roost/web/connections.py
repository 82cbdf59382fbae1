"""Who may hold a connection open: how many from one address, how many at all, and how long without a request.

A listener takes no more connections than the process has files for, so accepting never fails for the want of
one. When all are taken, those that have not asked for anything make room, the oldest first: whoever opens
sockets and is silent crowds out nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from roost.core.errors import TooManyRequests
from roost.core.networks import Network, network_of
from roost.web.errors import body_of, headers_of
from roost.web.plain import Asked

log = logging.getLogger("roost.web")

HEAD_S = 10.0
"""From the connection to the end of its first request's headers, however slowly they come."""
IDLE_S = 75.0
"""Between a response and the end of the next request's headers."""
PROXY_IDLE_S = 3630.0
"""The same for a load balancer of ours: it must be the one that closes, or it sends into a closed line."""
CROWDED_IDLE_S = 5.0
"""Silence after which a connection makes room while all are taken."""
SWEEP_S = 1.0
FEW_FILES = 4096
"""Below so many files a server for players is told to allow more."""

UPGRADED_BYTES_PER_S = 128 * 1024
UPGRADED_BURST_BYTES = 512 * 1024
"""What may come in over one WebSocket, whatever its frames are."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    per_address: int = 0
    """Connections from one address (of IPv6: one /64) that is no proxy of ours; 0: as many as there are."""
    total: int = 0
    """Connections of this listener; 0: what the process's files allow."""
    proxies: Sequence[Network] = ()
    head_s: float = HEAD_S


def most_connections() -> int:
    """How many connections the file limit of this process allows beside what it opens itself."""
    try:
        import resource
    except ImportError:
        return 8192
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return 1_000_000
    return max(16, files - min(1024, max(64, files // 8)))


def raise_file_limit() -> None:
    """Let this process hold as many connections as the system allows it; few are said in the log."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if most != resource.RLIM_INFINITY and most < FEW_FILES:
            log.warning("few open files are allowed", extra={"limit": most, "wanted": FEW_FILES})


class Connections:
    """The connections of one listener."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.refused = 0
        """Turned away at the door, or cut to make room."""
        self._total = limits.total or most_connections()
        self._open: set[Connection] = set()
        self._silent: dict[Connection, None] = {}
        """Those that may not have asked for anything yet, oldest first; none is older than `head_s`."""
        self._from: Counter[str] = Counter()
        self._swept_at = 0.0
        self._told_at = -60.0

    def __len__(self) -> int:
        return len(self._open)

    def take(self, connection: Connection, peer: str) -> bool:
        """Count a connection in; False: it has to go."""
        capped = bool(self.limits.per_address) and not connection.from_proxy
        source = network_of(peer) if capped else ""
        if capped and self._from[source] >= self.limits.per_address:
            return self._refuse(f"address {source} holds {self.limits.per_address} connections")
        if len(self._open) >= self._total and not self._make_room():
            return self._refuse(f"{self._total} connections are open and busy")
        connection.source = source
        self._open.add(connection)
        self._silent[connection] = None
        if capped:
            self._from[source] += 1
        return True

    def give_back(self, connection: Connection) -> None:
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._silent.pop(connection, None)
        self.uncount(connection)

    def uncount(self, connection: Connection) -> None:
        """Not one of its address's any more."""
        source, connection.source = connection.source, ""
        if source:
            self._from[source] -= 1
            if not self._from[source]:
                del self._from[source]

    def past_deadline(self, connection: Connection) -> None:
        self._silent.pop(connection, None)

    def _make_room(self) -> bool:
        """Cut the oldest that has asked for nothing; else those that have been idle, once in a second."""
        while self._silent:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            if not oldest.asked:
                self._cut(oldest)
                return True
        now = time.monotonic()
        if now - self._swept_at >= SWEEP_S:
            self._swept_at = now
            for idle in [one for one in self._open if one.idle_s() > CROWDED_IDLE_S]:
                self._cut(idle)
        return len(self._open) < self._total

    def _cut(self, connection: Connection) -> None:
        self.give_back(connection)
        self._refuse("all connections are taken")
        connection.abort()

    def _refuse(self, why: str) -> bool:
        self.refused += 1
        if time.monotonic() - self._told_at > 60:  # one line a minute, not one for each of a flood
            self._told_at = time.monotonic()
            log.warning("connections refused", extra={"reason": why, "refused": self.refused})
        return False

    def trusts(self, peer: str) -> bool:
        try:
            ip = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        return any(ip in network for network in self.limits.proxies)


class Connection(RequestHandler):
    """One connection, as aiohttp handles it, counted from its first byte to its last."""

    __slots__ = ("_all", "_late", "_left_bytes", "_read_at", "from_proxy", "source")

    def __init__(self, connections: Connections, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._all = connections
        self._late: asyncio.TimerHandle | None = None
        self._left_bytes = float(UPGRADED_BURST_BYTES)
        self._read_at = 0.0
        self.from_proxy = False
        self.source = ""

    @property
    def asked(self) -> bool:
        """Whether the headers of a request have arrived whole."""
        return self._request_count > 0

    def idle_s(self) -> float:
        """How long it has been waiting for its next request; 0 while one is answered."""
        if self._current_request is not None or not self.asked:
            return 0.0
        return max(0.0, self._loop.time() - (self._next_keepalive_close_time - self._keepalive_timeout))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        line = cast(asyncio.Transport, transport)  # which uvloop's is not by inheritance
        peer = line.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        self.from_proxy = self._all.trusts(address)
        if not self._all.take(self, address):
            line.write(_REFUSAL)
            line.close()
            return
        self._keepalive_timeout = PROXY_IDLE_S if self.from_proxy else IDLE_S
        super().connection_made(transport)
        self._late = self._loop.call_later(self._all.limits.head_s, self._end_if_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._late is not None:
            self._late.cancel()
        self._all.give_back(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._payload_parser is not None and not self._may_read(len(data)):
            log.info("client cut", extra={"reason": "it sends more than one connection may"})
            self.abort()
            return
        super().data_received(data)

    def abort(self) -> None:
        """Cut the line, whatever is on its way."""
        if self.transport is not None:
            self.transport.abort()

    def vouched(self) -> None:
        """Who asks has shown a good token: a thousand servers behind one address are no crowd."""
        if self.source:
            self._all.uncount(self)

    def _end_if_silent(self) -> None:
        self._all.past_deadline(self)
        if not self.asked:
            self.abort()

    def _may_read(self, count: int) -> bool:
        now = self._loop.time()
        gained = (now - self._read_at) * UPGRADED_BYTES_PER_S
        self._left_bytes = min(UPGRADED_BURST_BYTES, self._left_bytes + gained) - count
        self._read_at = now
        return self._left_bytes >= 0


def vouch(http: Asked) -> None:
    """The request came with a good token: its connection is not counted by address any more."""
    if isinstance(http.protocol, Connection):
        http.protocol.vouched()


def _refusal_bytes() -> bytes:
    """What somebody reads who is turned away before anything of theirs is read."""
    error = TooManyRequests("too many connections", retry_after_s=5.0)
    body = body_of(error, "none")
    lines = ["HTTP/1.1 429 Too Many Requests", "Content-Type: application/json", "Connection: close"]
    lines += [f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers_of(error).items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


_REFUSAL = _refusal_bytes()
