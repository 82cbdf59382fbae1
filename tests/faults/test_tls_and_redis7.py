"""Debian's redis-server: the oldest version that we support, and TLS, which the wheel's server lacks."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roost.core.errors import InvalidInput, StoreUnavailable
from roost.core.lease import Tenure
from roost.store import scopes
from roost.store.leader import Held
from roost.store.store import Store
from roost.testing import RunningServer, eventually, free_port, run_valkey
from roost.waitingroom.scripts import Left
from tests.store.waitingroom.world import World, invariants

from .harness import PATIENT, clients_of, crowd, in_thread, opened, write_and_read


@contextlib.contextmanager
def run_redis(*options: str) -> Iterator[RunningServer]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed (make deps-ci)")
    with run_valkey(binary=Path(binary), options=options) as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[RunningServer]:
    with run_redis() as server:
        yield server


# -- Redis 7.0


async def test_redis_7_answers_calls_through_killed_connections(redis: RunningServer) -> None:
    assert b"redis_version:7." in redis.command_reply("INFO", "server")
    async with opened(redis.url, PATIENT) as store, crowd(store, write_and_read, allowed=()) as callers:
        await callers.progress()
        redis.command_reply("CLIENT", "KILL", "TYPE", "normal")
        await callers.progress()


async def test_redis_7_runs_the_leader_scripts(redis: RunningServer) -> None:
    async with opened(redis.url) as store:
        first, second = store.leader(scopes.world("sd"), "first"), store.leader(scopes.world("sd"), "second")
        tenure = await first.campaign()
        assert isinstance(tenure, Tenure)
        assert await second.campaign() == Held(first.holder, tenure.epoch)
        redis.command_reply("SCRIPT", "FLUSH")
        await first.resign()
        successor = await second.campaign()
        assert isinstance(successor, Tenure)
        assert successor.epoch > tenure.epoch


async def test_redis_7_runs_the_scripts_of_the_waiting_room(redis: RunningServer) -> None:
    async with opened(redis.url) as store:
        world = World(store, "seven")
        await world.tick(0)
        await world.report(cap=2)
        await world.gets_ticket("ann")
        await world.goes_in("ann")
        await world.gets_ticket("bob")
        await world.waits("carl")
        await world.report(cap=0, n=1, k=1)
        assert (await world.drop()).remaining == 0
        assert (await world.leave("bob")) == Left()
        assert [await world.number(name) for name in ("cap", "inside", "doubt")] == [0, 0, 0]
        await world.report("s2", cap=2)
        await world.waits("ann")
        assert (await world.tick()).issued == 2
        await invariants(world)


async def test_redis_7_rings_shard_channels(redis: RunningServer) -> None:
    async with opened(redis.url) as store:
        await _hears_its_bell(store)


async def _hears_its_bell(store: Store) -> None:
    rung: list[bytes] = []
    stop = store.listen(b"bell", rung.append)
    await eventually(lambda: rung == [b""], "the bell is hung")
    assert await store.call("SPUBLISH", "bell", "ding", key=b"bell") == 1
    await eventually(lambda: rung == [b"", b"ding"])
    stop()


# -- TLS


@dataclass(frozen=True)
class Paper:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._certificate = self._sign(_name(name), self._key, None)
        self.ca = self._write(f"{name}.crt", self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Paper:
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = self._sign(_name(name), key, address)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return Paper(self._write(f"{name}.crt", pem), self._write(f"{name}.key", secret))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        address: x509.SubjectAlternativeName | None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=address is None, path_length=None), critical=True)
        )
        if address is not None:
            builder = builder.add_extension(address, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, content: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content)
        return path


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@dataclass(frozen=True)
class TlsServer:
    server: RunningServer
    """Its plain port stays open: the test's own commands and its restart go there."""
    tls_port: int
    ca: Path
    other_ca: Path
    client: Paper

    def url(self, *, ca: Path | None = None, client: bool = True, verify: bool = True) -> str:
        options = [f"tls_ca={ca or self.ca}"] if verify else ["tls_verify=no"]
        if client:
            options += [f"tls_cert={self.client.cert}", f"tls_key={self.client.key}"]
        return f"rediss://127.0.0.1:{self.tls_port}?{'&'.join(options)}"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(folder, "authority"), Authority(folder, "other")
    paper, client = authority.issue("server"), authority.issue("client")
    port = free_port()
    files = ("--tls-ca-cert-file", str(authority.ca), "--tls-cert-file", str(paper.cert))
    with run_redis("--tls-port", str(port), *files, "--tls-key-file", str(paper.key)) as server:
        yield TlsServer(server, port, authority.ca, other.ca, client)


async def test_tls_with_a_client_certificate_carries_calls_scripts_and_bells(tls: TlsServer) -> None:
    async with opened(tls.url(), PATIENT, client_name="over-tls") as store:
        assert len(clients_of(tls.server, "over-tls")) == 1
        async with crowd(store, write_and_read, allowed=()) as callers:
            await callers.progress()
        assert isinstance(await store.leader(scopes.world("tls"), "m").campaign(), Tenure)
        await _hears_its_bell(store)
        large = b"x" * 1_000_000
        await store.call("SET", "large", large)
        assert await store.call("GET", "large", bulk=True, idempotent=True) == large


async def test_tls_calls_resume_after_killed_connections_and_a_killed_server(tls: TlsServer) -> None:
    async with opened(tls.url()) as store, crowd(store) as callers:
        await callers.progress()
        tls.server.command_reply("CLIENT", "KILL", "TYPE", "normal")
        await callers.progress()
        tls.server.kill()
        await callers.trouble()
        await in_thread(tls.server.start)
        await callers.progress()


async def test_a_server_of_another_authority_is_refused_with_a_clear_reason(tls: TlsServer) -> None:
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        async with opened(tls.url(ca=tls.other_ca), wait_s=None):
            pass


async def test_without_verification_any_certificate_will_do(tls: TlsServer) -> None:
    async with opened(tls.url(verify=False)) as store:
        assert await store.call("ECHO", "in") == b"in"


async def test_a_missing_client_certificate_is_refused(tls: TlsServer) -> None:
    # The alert that says why may be overtaken by the reset of the connection, so the reason varies.
    with pytest.raises(StoreUnavailable):
        async with opened(tls.url(client=False), wait_s=None):
            pass


async def test_plain_text_to_a_tls_port_and_tls_to_a_plain_port_are_refused(tls: TlsServer) -> None:
    for url in (f"redis://127.0.0.1:{tls.tls_port}", f"rediss://127.0.0.1:{tls.server.port}?tls_verify=no"):
        with pytest.raises(StoreUnavailable):
            async with opened(url, wait_s=None):
                pass


async def test_a_missing_certificate_file_is_named(tls: TlsServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="TLS files"):
        async with opened(tls.url(ca=tmp_path / "no-such-file")):
            pass
