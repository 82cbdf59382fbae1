"""`roost` in processes of their own that are forked from one which has loaded the program already.

Loading takes most of a command's processor time, and the tests start hundreds of commands. A forked process
has its own pid, environment, folder, output and exit code; only its name in `ps` is another. Where the start
itself is asked about (`python -m roost`, limits, rights) it is started as users do, with `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol

import roost
from roost.cli import main

ROOT = Path(__file__).parents[1]
REQUEST_BYTES = 128 * 1024


class Process(Protocol):
    """What tests need of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ForkedProcess:
    """A running `roost`; its end is told through `ending` by the process that forked it."""

    def __init__(self, pid: int, ending: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ending = ending

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            poll = (
                select.poll()
            )  # `select` takes no descriptor above 1023, and a crowd of players has thousands
            poll.register(self._ending, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("roost", timeout or 0.0)
            self.returncode = int(self._ending.recv(32))
            self._ending.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forker:
    """This side of the process that forks: one for each process of tests, ended with it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()

    def start(
        self, args: tuple[str, ...], env: Mapping[str, str], cwd: Path, out: IO[Any], err: IO[Any]
    ) -> ForkedProcess:
        """Start `roost` with these arguments."""
        ending, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps({"args": args, "env": dict(env), "cwd": str(cwd)}).encode()
        socket.send_fds(self._requests, [request], [out.fileno(), err.fileno(), theirs.fileno()])
        theirs.close()
        return ForkedProcess(int(ending.recv(32)), ending)

    def run(
        self, args: tuple[str, ...], env: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with what it wrote."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = self.start(args, env, cwd, out, err)
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            for stream in (out, err):
                stream.seek(0)
            return subprocess.CompletedProcess(["roost", *args], code, out.read(), err.read())


_forkers: dict[int, Forker] = {}


def forker() -> Forker:
    """That of this process."""
    if os.getpid() not in _forkers:
        _forkers[os.getpid()] = Forker()
    return _forkers[os.getpid()]


# -- the process that forks


def serve(requests: socket.socket) -> list[str]:
    """Fork for every request until nobody can ask any more. Returns in a child only, with its arguments."""
    waker, wakes = socket.socketpair()
    for end in (waker, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, waker], [], [])
        if waker in ready:
            waker.recv(4096)
            tell_ends(running)
        if requests in ready:
            request, fds, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 3)
            if not request:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                return become(request, fds)
            running[pid] = ending = socket.socket(fileno=fds[2])
            ending.send(str(pid).encode())
            for fd in fds[:2]:
                os.close(fd)


def tell_ends(running: dict[int, socket.socket]) -> None:
    """Say of every child that has ended how; a test that is not interested has hung up."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with running.pop(pid) as ending, contextlib.suppress(OSError):
                ending.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(request: bytes, fds: list[int]) -> list[str]:
    """In the child: be the process that was asked for, and nothing of the one that forked it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, fd in enumerate(fds[:2], start=1):
        os.dup2(fd, number)
    os.closerange(3, 1024)
    given = json.loads(request)
    os.environ.clear()
    os.environ.update(given["env"])
    os.chdir(given["cwd"])
    random.seed()
    return list(given["args"])


def load() -> None:
    """Every module of ours and what a first command would load besides, before anybody asks."""
    for module in pkgutil.walk_packages(roost.__path__, "roost."):
        if not module.name.endswith("__main__") and not module.name.startswith("roost.testing"):
            import_module(module.name)
    import_module("typer.rich_utils")
    import_module("typer._adapters")


def run_to_the_end() -> None:
    """The command, and at its end all but the taking apart of the interpreter, which takes longer."""
    code = 1

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # the first to register is the last to be called
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
    except KeyboardInterrupt:
        atexit.unregister(leave)  # the interpreter ends by the signal
        raise


if __name__ == "__main__":
    load()
    gc.freeze()
    arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    __package__ = "roost"  # as in `python -m roost`, which usage lines show
    sys.argv = [str(Path(roost.__path__[0]) / "__main__.py"), *arguments]
    run_to_the_end()
