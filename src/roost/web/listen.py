"""The sockets that a process listens on: taken with a clear error, served by aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from aiohttp import web

from roost.core.errors import PortTaken, StartFailed
from roost.web.connections import ConnectionLimits, Connections
from roost.web.plain import PLAIN
from roost.web.plain_connection import PlainConnection

SHUTDOWN_GRACE_S = 1.0
BACKLOG = 1024
UNREAD_S = 30
"""How long somebody may leave what we sent unread before the kernel ends the connection."""

_LISTEN = "0A"


def bind(host: str, port: int, *, shared: bool = False, listens: bool = True) -> socket.socket:
    """A listening socket, or an error that says who holds the port.

    `shared`: other processes of this user may listen there too, and the kernel hands each connection to one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted ones inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_S * 1000)
    try:
        listener.bind((host, port))
        if listens:
            listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"port {port} is taken by {holder_of(port)}", hint="stop it, or choose another with --port"
            ) from None
        raise StartFailed(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="correct --host"
        ) from None
    except OverflowError:
        listener.close()
        raise StartFailed(f"{port} is not a port") from None
    listener.setblocking(False)
    return listener


def hold(host: str, port: int) -> socket.socket:
    """A socket that keeps a port for processes that share it; nothing is ever accepted by it.

    The port is tried alone first: two gateways that share one by mistake would answer by turns.
    """
    with bind(host, port, listens=False) as alone:
        taken = alone.getsockname()[1]
    return bind(host, taken, shared=True, listens=False)


class Site(web.SockSite):
    """The site of a listener whose connections are counted."""

    __slots__ = ("_connections", "_plain")

    def __init__(self, runner: web.AppRunner, listener: socket.socket, limits: ConnectionLimits) -> None:
        super().__init__(runner, listener, backlog=BACKLOG)
        self._connections = Connections(limits)
        self._plain = runner.app.get(PLAIN)

    async def start(self) -> None:
        await web.BaseSite.start(self)
        loop, manager = asyncio.get_running_loop(), self._runner.server
        assert manager is not None

        def connect() -> PlainConnection:
            return PlainConnection(self._plain, self._connections, manager, loop=loop, **_OPTIONS)

        self._server = await loop.create_server(connect, sock=self._sock, backlog=self._backlog)


_OPTIONS: dict[str, Any] = {
    "access_log": None,
    "lingering_time": SHUTDOWN_GRACE_S,
    "auto_decompress": False,
}


async def serve(
    app: web.Application, listener: socket.socket, limits: ConnectionLimits | None = None
) -> web.AppRunner:
    """Start answering on the socket; `await runner.cleanup()` ends it after a short grace."""
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=SHUTDOWN_GRACE_S, **_OPTIONS)
    await runner.setup()
    await Site(runner, listener, limits or ConnectionLimits()).start()
    return runner


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def holder_of(port: int) -> str:
    """Name and pid of the process that listens on a port, as far as we may know it."""
    for inode in _listening_inodes(port):
        if (pid := _owner(inode)) is not None:
            return f"{_name(pid)} (pid {pid})"
    if (lsof := shutil.which("lsof")) is not None:
        return _ask_lsof(lsof, port)
    return "another program"


def _listening_inodes(port: int) -> list[str]:
    inodes: list[str] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                    inodes.append(columns[9])
    return inodes


def _owner(inode: str) -> int | None:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return int(process.name)
    return None


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join([os.path.basename(words[0]), *words[1:4]]).strip()
    return "a program"


def _ask_lsof(lsof: str, port: int) -> str:
    command = [lsof, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        text = subprocess.run(command, capture_output=True, text=True, timeout=3, check=False).stdout
        if found := re.search(r"p(\d+)\nc(.+)", text):
            return f"{found[2]} (pid {found[1]})"
    return "another program"
