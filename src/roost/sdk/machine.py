"""What a registration says of the machine without being told."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
from typing import Any
from urllib.parse import urlsplit

import msgspec

from roost.api.discovery import RegisterInput
from roost.core.errors import InvalidInput


def filled(fields: dict[str, Any], url: str) -> RegisterInput:
    """The fields as a checked message; hostname, private_ip and system_info are filled in where not given.

    Raises InvalidInput for a field that is unknown or of the wrong type.
    """
    own = {
        "hostname": socket.gethostname(),
        "private_ip": own_address(url),
        "system_info": system_info(),
    }
    try:
        given = RegisterInput(**{**own, **fields})
        return msgspec.json.decode(msgspec.json.encode(given), type=RegisterInput)
    except (TypeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"cannot register: {error}") from None


def system_info() -> dict[str, Any]:
    """What the machine is, for the record."""
    info: dict[str, Any] = {
        "os": platform.system().lower(),
        "arch": platform.machine(),
        "cpu": os.cpu_count() or 0,
    }
    with contextlib.suppress(ValueError, OSError, AttributeError):
        info["memoryMb"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return info


def own_address(url: str) -> str:
    """Our address on the way to the other side; no packet is sent to learn it. Empty if there is none."""
    try:
        parts = urlsplit(url.partition(",")[0] if url.startswith("http") else url)
        host, port = parts.hostname, parts.port or 80
        if not host or "," in host:
            return ""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return str(probe.getsockname()[0])
    except (OSError, ValueError):
        return ""
