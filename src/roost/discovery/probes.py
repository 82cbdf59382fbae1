"""Asking an instance itself whether it is there: bounded, and only at the address it declared.

A probe follows no redirect and returns no byte of what it read. Outside profile dev it does not go to
loopback, link-local or other special addresses, so that a registration cannot aim us at ourselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from roost.api.discovery import Instance, Probe

TIMEOUT_S = 2.0
MAX_PARALLEL = 64
CACHE_S = 1.0
REFUSED = "connection refused"
"""The one answer that proves a death: its own host says that nobody listens there."""

_UDP_PING = b"roost-probe"


@dataclass(frozen=True, slots=True)
class Target:
    kind: str
    host: str
    port: int
    path: str


class ProbeFailed(Exception):
    """The probe got no good answer; the text says why."""


class Prober:
    """Probes instances in parallel, at most 64 at once, and remembers each result for a second."""

    def __init__(self, *, allow_local: bool, timeout_s: float = TIMEOUT_S) -> None:
        self._allow_local = allow_local
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(MAX_PARALLEL)
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
        try:
            async with asyncio.timeout(self._timeout_s):
                address = await self._resolve(target)
                await KINDS[target.kind](address, target)
            error = ""
        except TimeoutError:
            error = f"no answer within {self._timeout_s:g} s"
        except ConnectionRefusedError:
            error = REFUSED
        except UnicodeError:
            error = f"{target.host[:40]!r} is not the name of a host"
        except (OSError, ProbeFailed) as problem:
            error = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        return Probe(not error, round((time.perf_counter() - started) * 1000, 3), error)

    async def _resolve(self, target: Target) -> str:
        """One address of the host that we may talk to. The probe goes to this very address."""
        found = await asyncio.get_running_loop().getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM
        )
        address = str(found[0][4][0])
        if not self._allow_local and _is_special(address):
            raise ProbeFailed(f"{address} is not probed: loopback and special addresses are for profile dev")
        return address


def target_of(instance: Instance) -> Target | None:
    """Where the instance wants to be probed: its own address and one of its own ports."""
    check = instance.health
    host = instance.private_ip or instance.public_ip or instance.hostname
    if check is None or not host or check.port not in instance.ports:
        return None
    return Target(check.kind, host, instance.ports[check.port], check.path)


def _is_special(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved


async def _tcp(address: str, target: Target) -> None:
    _, writer = await asyncio.open_connection(address, target.port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _http(address: str, target: Target) -> None:
    """GET the path; below 400 is well. Only the status line is read."""
    path = target.path if target.path.startswith("/") else f"/{target.path}"
    if any(ord(c) <= 32 or ord(c) > 126 for c in path):
        raise ProbeFailed("the health path holds characters that no path has")
    reader, writer = await asyncio.open_connection(address, target.port, limit=4096)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {target.host}\r\nConnection: close\r\n\r\n".encode())
        line = await reader.readline()
    except ValueError:
        raise ProbeFailed("the answer is not HTTP") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ProbeFailed("the answer is not HTTP")
    if int(words[1]) >= 400:
        raise ProbeFailed(f"HTTP {int(words[1])}")


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
        raise ProbeFailed("gRPC probes need the extra: pip install 'roost[grpc]'") from None
    host = f"[{address}]" if ":" in address else address
    async with grpc.aio.insecure_channel(f"{host}:{target.port}") as channel:
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
