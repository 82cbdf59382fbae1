"""Free ports for tests that run beside each other: each process chooses among ports of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import tempfile
from collections import deque
from functools import cache
from pathlib import Path

_WAYS = 40
"""Processes beside each other choose among different ports; it divides 1000."""
_given: deque[int] = deque(maxlen=400)


def free_port() -> int:
    """A loopback port that is free and stays so, as is the one 1000 above, where a role has its metrics.

    The kernel gives none this low to outgoing connections, and what was given is not given again soon:
    whoever asked for it may not listen yet.
    """
    while True:
        port = 10_000 + _WAYS * secrets.randbelow(21_600 // _WAYS) + _way_of(os.getpid())
        if port not in _given and _is_free(port) and _is_free(port + 1000):
            _given.extend((port, port + 1000))
            return port


@cache
def _way_of(pid: int) -> int:
    """Locked for as long as the process, or one that was forked from it, lives."""
    folder = Path(tempfile.gettempdir()) / f"roost-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for way in range(_WAYS):
        lock = os.open(folder / str(way), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            return way
    return pid % _WAYS


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
