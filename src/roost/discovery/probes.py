"""Asking an instance itself whether it is there: bounded, and only at the address it declared.

A probe follows no redirect and returns no byte of what it read. Outside profile dev it does not go to
loopback, link-local or other special addresses, so that a registration cannot aim us at ourselves. Where the
instance could not be asked at all, for a reason on our side, the probe says so: that is no evidence.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from roost.api.discovery import Instance, Probe

TIMEOUT_S = 2.0
MAX_PARALLEL = 256
ASKED_PARALLEL = 64
"""Of those that a request asked for: a mute fleet must not keep the health checker waiting."""
CACHE_S = 1.0
MAX_LINE = 4096
REFUSED = "connection refused"
"""The one answer that proves a death: its own host says that nobody listens there."""

_UDP_PING = b"roost-probe"
_OURS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM}
)
"""Failures of our own machine: out of files, memory or ports, or not allowed to connect."""


@dataclass(frozen=True, slots=True)
class Target:
    kind: str
    host: str
    port: int
    path: str


class ProbeFailed(Exception):
    """The probe got no good answer; the text says why."""


class NotProbed(Exception):
    """The instance could not be asked, for a reason that says nothing of it."""


class Prober:
    """Probes instances in parallel, at most `places` at once, and remembers each result for a second."""

    def __init__(
        self, *, allow_local: bool, timeout_s: float = TIMEOUT_S, places: int = MAX_PARALLEL
    ) -> None:
        self._allow_local = allow_local
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(places)
        self._recent: dict[tuple[str, str], tuple[float, Probe]] = {}

    @property
    def remembered(self) -> int:
        """Answers that are kept; they are used for `CACHE_S`."""
        return len(self._recent)

    async def verify(self, instances: Iterable[Instance]) -> None:
        """Set `probe` on every instance that declares a health check."""
        await asyncio.gather(*map(self._verify_one, instances))

    async def _verify_one(self, instance: Instance) -> None:
        instance.probe = await self.probe(instance)

    async def probe(self, instance: Instance) -> Probe | None:
        """What the instance answers; None if it declares no health check."""
        target = target_of(instance)
        if target is None:
            return None
        key = (instance.instance_id, instance.life)
        at, known = self._recent.get(key, (0.0, None))
        if known is not None and time.monotonic() - at < CACHE_S:
            return known
        async with self._places:
            found = await self._ask(target)
        self._remember(key, found)
        return found

    def _remember(self, key: tuple[str, str], found: Probe) -> None:
        now = time.monotonic()
        if len(self._recent) > 10_000:
            self._recent = {k: kept for k, kept in self._recent.items() if now - kept[0] < CACHE_S}
        self._recent[key] = (now, found)

    async def _ask(self, target: Target) -> Probe:
        started = time.perf_counter()
        asked, error = True, ""
        try:
            async with asyncio.timeout(self._timeout_s):
                address = await self._resolve(target)
                await KINDS[target.kind](address, target)
        except TimeoutError:
            error = f"no answer within {self._timeout_s:g} s"
        except ConnectionRefusedError:
            error = REFUSED
        except NotProbed as reason:
            asked, error = False, str(reason)
        except (OSError, ProbeFailed) as problem:
            asked = getattr(problem, "errno", None) not in _OURS
            error = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        return Probe(not error, round((time.perf_counter() - started) * 1000, 3), error, asked)

    async def _resolve(self, target: Target) -> str:
        """One address of the host that we may talk to. The probe goes to this very address."""
        address = target.host if _is_address(target.host) else await _look_up(target)
        if not self._allow_local and _is_special(address):
            raise NotProbed(f"{address} is not probed: loopback and special addresses are for profile dev")
        return address


async def _look_up(target: Target) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM
        )
    except UnicodeError:
        raise NotProbed(f"{target.host[:40]!r} is not the name of a host") from None
    except socket.gaierror as error:  # our resolver's word; its beats say whether it lives
        raise NotProbed(error.strerror or str(error)) from None
    return str(found[0][4][0])


@lru_cache(4096)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def declares_check(instance: Instance) -> bool:
    """Whether it wants to be probed: at its own address and one of its own ports."""
    check = instance.health
    return (
        check is not None
        and check.port in instance.ports
        and bool(instance.private_ip or instance.public_ip or instance.hostname)
    )


def target_of(instance: Instance) -> Target | None:
    """Where the instance wants to be probed."""
    check = instance.health
    if check is None or not declares_check(instance):
        return None
    host = instance.private_ip or instance.public_ip or instance.hostname
    return Target(check.kind, host, instance.ports[check.port], check.path)


@lru_cache(4096)
def _is_special(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved


class _Asked(asyncio.Protocol):
    """One connection: says its line, if any, and takes the first line of the answer.

    A protocol and no stream: a fleet of probes costs two thirds.
    """

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._heard = b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._line:
            cast(asyncio.Transport, transport).write(self._line)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        if b"\n" in self._heard or len(self._heard) > MAX_LINE:
            self._end()

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, OSError) and not self._heard and not self.answer.done():
            self.answer.set_exception(error)
        else:
            self._end()

    def _end(self) -> None:
        if not self.answer.done():
            self.answer.set_result(self._heard)


async def _tcp(address: str, target: Target) -> None:
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: _Asked(b""), address, target.port
    )
    transport.abort()


async def _http(address: str, target: Target) -> None:
    """GET the path; below 400 is well. Only the status line is read."""
    line = _get(target)
    transport, asked = await asyncio.get_running_loop().create_connection(
        lambda: _Asked(line), address, target.port
    )
    try:
        answer = await asked.answer
    finally:
        transport.abort()
    words = answer.partition(b"\n")[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ProbeFailed("the answer is not HTTP")
    if int(words[1]) >= 400:
        raise ProbeFailed(f"HTTP {int(words[1])}")


def _get(target: Target) -> bytes:
    path = target.path if target.path.startswith("/") else f"/{target.path}"
    if not (path.isascii() and path.isprintable()) or " " in path:
        raise NotProbed("the health path holds characters that no path has")
    return f"GET {path} HTTP/1.1\r\nHost: {_in_brackets(target.host)}\r\nConnection: close\r\n\r\n".encode()


def _in_brackets(host: str) -> str:
    """An IPv6 address as URLs and `Host` have it: strict servers answer 400 to any other."""
    return f"[{host}]" if ":" in host else host


class _Echo(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:
        if not self.answered.done():
            self.answered.set_result(None)

    def error_received(self, error: Exception) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)


async def _udp(address: str, target: Target) -> None:
    """Send one datagram; any answer is well."""
    transport, echo = await asyncio.get_running_loop().create_datagram_endpoint(
        _Echo, remote_addr=(address, target.port)
    )
    try:
        transport.sendto(_UDP_PING)
        await echo.answered
    finally:
        transport.close()


async def _grpc(address: str, target: Target) -> None:
    """The gRPC health protocol; the path, without its slash, names the service."""
    try:
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc
    except ImportError:
        raise NotProbed("gRPC probes need the extra: pip install 'roost[grpc]'") from None
    async with grpc.aio.insecure_channel(f"{_in_brackets(address)}:{target.port}") as channel:
        request = health_pb2.HealthCheckRequest(service=target.path.strip("/"))
        try:
            reply = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE and "refused" in (error.details() or "").lower():
                raise ConnectionRefusedError from None
            raise ProbeFailed(f"gRPC {error.code().name}") from None
    if reply.status != health_pb2.HealthCheckResponse.SERVING:
        raise ProbeFailed(
            f"gRPC health says {health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)}"
        )


KINDS: dict[str, Callable[[str, Target], Awaitable[None]]] = {
    "tcp": _tcp,
    "http": _http,
    "udp": _udp,
    "grpc": _grpc,
}
