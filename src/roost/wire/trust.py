"""Where the shared secret and the certificates come from."""

from __future__ import annotations

import os
import secrets
import ssl
from contextlib import suppress
from pathlib import Path

from roost.core.errors import StartFailed
from roost.wire.handshake import MIN_SECRET_BYTES

FILE = "wire-secret"
"""In the data folder, mode 0600: the secret of profile dev."""


def wire_secret(configured: str, dev_folder: Path | None) -> bytes:
    """The configured secret; without one that of profile dev, made on first use in `dev_folder`.

    `dev_folder` None: another profile, where the secret must be configured.
    """
    if configured:
        return _checked(configured, "ROOST_WIRE_SECRET")
    if dev_folder is None:
        raise StartFailed(
            "servers and gates need ROOST_WIRE_SECRET to know each other",
            hint="set the same secret of at least 16 characters for all of them",
        )
    path = dev_folder / FILE
    try:
        if not path.exists():
            _make(path)
        return _checked(path.read_text(encoding="ascii").strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise StartFailed(
            f"cannot use the secret file {path}: {reason}",
            hint="correct its permissions or set ROOST_WIRE_SECRET",
        ) from error


def _checked(secret: str, where: str) -> bytes:
    if len(secret.encode()) < MIN_SECRET_BYTES:
        raise StartFailed(f"the secret in {where} has less than {MIN_SECRET_BYTES} bytes")
    return secret.encode()


def _make(path: Path) -> None:
    """Write it whole under another name first: of two processes that start at once one wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ours = path.with_name(f"{FILE}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(ours, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    with suppress(FileExistsError):
        os.link(ours, path)
    ours.unlink()


def server_tls(cert: str, key: str) -> ssl.SSLContext | None:
    """What a server listens with; None: without TLS."""
    if not cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise StartFailed(f"cannot use the certificate {cert}: {error.strerror or error}") from error
    return context


def client_tls(ca: str) -> ssl.SSLContext | None:
    """What a client connects with; None: without TLS. The name is not checked: see `tls_ca`."""
    if not ca:
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise StartFailed(f"cannot use the authority {ca}: {error.strerror or error}") from error
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
