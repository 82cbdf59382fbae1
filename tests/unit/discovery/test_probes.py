"""Probes against real servers on the loopback: bounded, honest, and never aimed at ourselves."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from roost.api.discovery import HealthCheck, Instance, Probe
from roost.discovery import probes
from roost.discovery.probes import MAX_PARALLEL, REFUSED, Prober
from roost.testing import eventually, free_port

Kind = Literal["tcp", "http", "grpc", "udp"]
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def instance(port: int, kind: Kind = "tcp", *, path: str = "/", **fields: Any) -> Instance:
    health = HealthCheck(kind, "main", path)
    given = {"private_ip": "127.0.0.1", "ports": {"main": port}, "health": health, **fields}
    seen: dict[str, Any] = {"instance_id": "a", "life": "7", "status": "ready", "accepting": True}
    return Instance("game", "eu", last_heartbeat="", **seen, **given)


async def ask(target: Instance, *, timeout_s: float = 5.0) -> Probe:
    found = await Prober(allow_local=True, timeout_s=timeout_s).probe(target)
    assert found is not None
    return found


@contextlib.asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[int]:
    """A TCP server that answers each connection in its own way; the port."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError):
                await answer(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks)


def saying(text: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        await writer.drain()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


class UdpServer(asyncio.DatagramProtocol):
    def __init__(self, *, answers: bool) -> None:
        self.answers = answers
        self.got: list[bytes] = []
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.got.append(data)
        if self.answers and self.transport is not None:
            self.transport.sendto(data, addr)


@contextlib.asynccontextmanager
async def udp_server(*, answers: bool) -> AsyncIterator[tuple[int, UdpServer]]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: UdpServer(answers=answers), local_addr=("127.0.0.1", 0)
    )
    try:
        yield transport.get_extra_info("sockname")[1], protocol
    finally:
        transport.close()


# -- tcp


async def test_an_open_port_answers() -> None:
    async with serving(silent) as port:
        found = await ask(instance(port))
    assert (found.ok, found.error) == (True, "")
    assert 0 < found.latency_ms < 5000


@pytest.mark.parametrize("kind", ["tcp", "http", "udp"])
async def test_a_closed_port_is_a_refusal(kind: Kind) -> None:
    found = await ask(instance(free_port(), kind))
    assert (found.ok, found.error) == (False, REFUSED)


# -- http


@pytest.mark.parametrize("status", [b"200 OK", b"204 No Content", b"200", b"301 Moved", b"399 Odd"])
async def test_a_status_below_400_is_well(status: bytes) -> None:
    async with serving(saying(b"HTTP/1.1 " + status + b"\r\n\r\n")) as port:
        assert (await ask(instance(port, "http"))).ok


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_a_status_from_400_on_is_not(status: int) -> None:
    async with serving(saying(b"HTTP/1.1 %d No\r\n\r\nsecret" % status)) as port:
        found = await ask(instance(port, "http"))
    assert (found.ok, found.error) == (False, f"HTTP {status}")


async def test_a_redirect_is_not_followed() -> None:
    async with serving(silent) as elsewhere:
        visited: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visited.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\n\r\n" % elsewhere)

        async with serving(answer) as port:
            assert (await ask(instance(port, "http", path="/up"))).ok
    assert len(visited) == 1
    assert visited[0].startswith(b"GET /up HTTP/1.1\r\nHost: 127.0.0.1\r\n")


async def test_an_address_of_ipv6_stands_in_brackets() -> None:
    """A strict server (Tomcat is one) answers 400 to any other Host, and would be judged unhealthy."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async with serving(answer) as port:
        assert (await ask(instance(port, "http", private_ip="::ffff:127.0.0.1"))).ok
    assert b"\r\nHost: [::ffff:127.0.0.1]\r\n" in heads[0]


@pytest.mark.parametrize(
    "garbage",
    [b"hello\r\n", b"\r\n", b"", b"HTTP/1.1\r\n", b"HTTP/1.1 abc\r\n", b"\xff\xfe\x00\n", b"x" * 100_000],
    ids=["text", "empty line", "nothing", "no status", "no number", "binary", "endless line"],
)
async def test_what_is_not_http_is_not_well_and_is_not_repeated(garbage: bytes) -> None:
    async with serving(saying(garbage)) as port:
        found = await ask(instance(port, "http"))
    assert found.ok is False
    assert found.error in ("the answer is not HTTP", "Connection reset by peer")


async def test_a_server_that_accepts_and_is_silent_runs_into_the_timeout() -> None:
    async with serving(silent) as port:
        found = await ask(instance(port, "http"), timeout_s=0.05)
    assert (found.ok, found.error) == (False, "no answer within 0.05 s")


async def test_a_server_that_sends_byte_by_byte_runs_into_the_timeout() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"H")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(drip) as port:
        assert (await ask(instance(port, "http"), timeout_s=0.1)).error == "no answer within 0.1 s"


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX-Evil: 1", "/ü", "/\x00"])
async def test_a_path_that_would_change_the_request_is_not_sent(path: str) -> None:
    async with serving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        found = await ask(instance(port, "http", path=path))
    assert (found.ok, found.error) == (False, "the health path holds characters that no path has")


async def test_a_path_without_its_slash_gets_one() -> None:
    lines: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async with serving(answer) as port:
        await ask(instance(port, "http", path="up"))
    assert lines == [b"GET /up HTTP/1.1\r\n"]


# -- udp


async def test_an_echo_is_well() -> None:
    async with udp_server(answers=True) as (port, server):
        assert (await ask(instance(port, "udp"))).ok
        assert len(server.got) == 1


async def test_silence_is_not() -> None:
    async with udp_server(answers=False) as (port, server):
        found = await ask(instance(port, "udp"), timeout_s=0.1)
        assert (found.ok, found.error) == (False, "no answer within 0.1 s")
        assert len(server.got) == 1


# -- grpc


@contextlib.asynccontextmanager
async def grpc_health(**services: str) -> AsyncIterator[int]:
    """A real gRPC server with the health protocol; the port."""
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    server, servicer = grpc.aio.server(), health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for service, status in services.items():
        name = "" if service == "all" else service
        await servicer.set(name, health_pb2.HealthCheckResponse.ServingStatus.Value(status))
    try:
        yield port
    finally:
        await server.stop(None)


async def test_a_grpc_server_that_serves_is_well() -> None:
    async with grpc_health(all="SERVING", chat="NOT_SERVING") as port:
        assert (await ask(instance(port, "grpc"))).ok
        ill = await ask(instance(port, "grpc", path="/chat"))
        assert (ill.ok, ill.error) == (False, "gRPC health says NOT_SERVING")
        unknown = await ask(instance(port, "grpc", path="/nobody"))
        assert (unknown.ok, unknown.error) == (False, "gRPC NOT_FOUND")


async def test_a_grpc_port_where_nobody_listens_is_refused() -> None:
    assert (await ask(instance(free_port(), "grpc"))).error == REFUSED


async def test_without_the_extra_a_grpc_probe_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    found = await ask(instance(free_port(), "grpc"))
    assert (found.ok, found.error) == (False, "gRPC probes need the extra: pip install 'roost[grpc]'")
    assert not found.asked


# -- where it may go


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "127.1",
        "0x7f.1",
        "2130706433",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "240.0.0.1",
        "localhost",
    ],
)
async def test_special_addresses_are_not_probed(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(address: str, target: probes.Target) -> None:
        raise AssertionError("it was probed")

    monkeypatch.setitem(probes.KINDS, "tcp", never)
    found = await Prober(allow_local=False).probe(instance(80, private_ip=address))
    assert found is not None
    assert (found.ok, found.asked) == (False, False)
    assert "is not probed: loopback and special addresses are for profile dev" in found.error


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "::ffff:10.0.0.1", "192.168.1.1", "172.16.0.1", "8.8.8.8", "fd00::1", "2606::1"]
)
async def test_private_and_public_addresses_are_probed(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def note(address: str, target: probes.Target) -> None:
        asked.append(address)

    monkeypatch.setitem(probes.KINDS, "tcp", note)
    found = await Prober(allow_local=False).probe(instance(80, private_ip=address))
    assert found is not None
    assert found.ok
    assert asked == [address]


async def test_the_probe_goes_to_the_address_that_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to another address the second time gains nothing."""
    asked: list[str] = []

    async def note(address: str, target: probes.Target) -> None:
        asked.append(address)

    async def resolve(*args: object, **more: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.1.2.3", 80))]

    monkeypatch.setitem(probes.KINDS, "tcp", note)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    await Prober(allow_local=False).probe(instance(80, private_ip="", hostname="rebind.example"))
    assert asked == ["10.1.2.3"]


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "..", "a..b"])
async def test_a_host_that_is_no_host_is_an_answer_not_a_fault(host: str) -> None:
    """One such registration must not spoil the verification of everybody else."""
    found = await ask(instance(80, private_ip="", hostname=host))
    assert (found.ok, found.asked) == (False, False)
    assert "is not the name of a host" in found.error


async def test_a_name_that_our_resolver_does_not_know_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*args: object, **more: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    found = await ask(instance(80, private_ip="", hostname="game-7.example"))
    assert (found.ok, found.asked, found.error) == (False, False, "Temporary failure in name resolution")


@pytest.mark.parametrize(("number", "asked"), [(errno.EMFILE, False), (errno.EHOSTUNREACH, True)])
async def test_a_fault_of_our_own_machine_is_no_evidence(
    number: int, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(address: str, target: probes.Target) -> None:
        raise OSError(number, "it failed")

    monkeypatch.setitem(probes.KINDS, "tcp", fail)
    found = await ask(instance(80))
    assert (found.ok, found.asked) == (False, asked)


# -- which target


async def test_without_a_health_check_nothing_is_asked() -> None:
    assert await Prober(allow_local=True).probe(instance(1, health=None)) is None


async def test_without_an_address_nothing_is_asked() -> None:
    assert await Prober(allow_local=True).probe(instance(1, private_ip="")) is None


async def test_a_health_port_that_it_does_not_have_is_not_asked() -> None:
    assert await Prober(allow_local=True).probe(instance(1, ports={"other": 1})) is None


def test_the_private_address_goes_before_the_public_and_that_before_the_name() -> None:
    fields: dict[str, Any] = {"private_ip": "10.0.0.1", "public_ip": "8.8.8.8", "hostname": "h"}
    hosts = []
    for empty in ("", "private_ip", "public_ip"):
        if empty:
            fields[empty] = ""
        target = probes.target_of(instance(80, **fields))
        assert target is not None
        hosts.append(target.host)
    assert hosts == ["10.0.0.1", "8.8.8.8", "h"]


# -- bounds


class Counting:
    """A kind of probe that lasts until it is let go, and counts how many last at once."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self.go = asyncio.Event()

    async def __call__(self, address: str, target: probes.Target) -> None:
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        await self.go.wait()
        self.now -= 1


def many(count: int) -> list[Instance]:
    crowd = [instance(80) for _ in range(count)]
    for n, one in enumerate(crowd):
        one.instance_id = f"i{n}"
    return crowd


async def test_no_more_than_the_bound_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    monkeypatch.setitem(probes.KINDS, "tcp", counting)
    crowd = many(MAX_PARALLEL + 100)
    verifying = asyncio.create_task(Prober(allow_local=True).verify(crowd))
    await eventually(lambda: counting.now == MAX_PARALLEL, "as many as may run")
    counting.go.set()
    await verifying
    assert (counting.most, counting.total) == (MAX_PARALLEL, MAX_PARALLEL + 100)
    assert all(one.probe is not None and one.probe.ok for one in crowd)


async def test_verification_leaves_alone_who_declares_no_check() -> None:
    crowd = [instance(free_port()), instance(1, health=None)]
    await Prober(allow_local=True).verify(crowd)
    assert crowd[0].probe is not None
    assert crowd[1].probe is None


async def test_a_result_is_remembered_for_a_second_per_life(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    counting.go.set()
    monkeypatch.setitem(probes.KINDS, "tcp", counting)
    now = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now, perf_counter=time.perf_counter)
    monkeypatch.setattr(probes, "time", clock)
    prober = Prober(allow_local=True)
    target = instance(80)

    first = await prober.probe(target)
    now += 0.99
    assert await prober.probe(target) is first
    assert counting.total == 1
    now += 0.02
    await prober.probe(target)
    assert counting.total == 2
    target.life = "8"
    await prober.probe(target)
    assert counting.total == 3


async def test_what_is_remembered_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    counting.go.set()
    monkeypatch.setitem(probes.KINDS, "tcp", counting)
    now = 100.0
    monkeypatch.setattr(probes, "time", SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now))
    prober = Prober(allow_local=True)
    target = instance(80)
    for n in range(10_001):
        target.instance_id = f"old{n}"
        await prober.probe(target)
    assert prober.remembered == 10_001
    now += 2.0
    target.instance_id = "a"
    await prober.probe(target)
    assert prober.remembered == 1
