"""Who holds a TCP port on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

_LISTEN = "0A"


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
