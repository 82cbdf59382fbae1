"""The same calls over TLS, with a certificate that the test makes."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roost.core.errors import NotSent
from roost.wire.limits import Limits
from roost.wire.trust import client_tls, server_tls
from tests.wire.serving import BUDGET_MS, ECHO, Town, listening


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """(certificate, key): it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roost test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(cert_file), str(key_file)


async def test_calls_over_tls(certificate: tuple[str, str]) -> None:
    one = Town(Limits())
    _, one.port = await one.server.start(listening(), ssl=server_tls(*certificate))
    peer = one.peer(ssl=client_tls(certificate[0]))
    answer = await peer.call(1, ECHO, bytes(300_000), budget_ms=BUDGET_MS)
    assert answer.payload == bytes(300_000)
    await peer.close()
    await one.server.close()


async def test_a_client_without_tls_is_not_let_in(certificate: tuple[str, str]) -> None:
    one = Town(Limits(wait_s=0.3, handshake_s=1.0))
    _, one.port = await one.server.start(listening(), ssl=server_tls(*certificate))
    peer = one.peer()
    with pytest.raises(NotSent):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    await peer.close()
    await one.server.close()


async def test_a_client_with_tls_does_not_talk_to_a_server_without(certificate: tuple[str, str]) -> None:
    one = Town(Limits(wait_s=0.3, handshake_s=1.0))
    _, one.port = await one.server.start(listening())
    peer = one.peer(ssl=client_tls(certificate[0]))
    with pytest.raises(NotSent):
        await peer.call(1, ECHO, b"", budget_ms=BUDGET_MS)
    await peer.close()
    await one.server.close()
