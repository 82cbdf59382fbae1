"""One worker as its supervisor sees it: a process, started again whenever it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence

from roost.core.backoff import Backoff
from roost.core.errors import RoostError
from roost.core.loops import END
from roost.gateway.workers.adding import Page, read_page
from roost.gateway.workers.line import Line, Refused

log = logging.getLogger("roost.workers")

STEADY_S = 30.0
"""Up for so long, and its next end is the first of a series again."""
RESTART_CAP_S = 30.0
HUNG_S = 20.0
"""A worker that is up and does not answer for so long is ended: its share of the connections waits."""

Command = Callable[[int, int], Sequence[str]]
"""The command line of a worker, from its number and the file descriptor of its line."""


class Worker:
    """`restarts` counts how often it was started again, `hung` how many of those it had to be ended for."""

    def __init__(
        self,
        number: int,
        command: Command,
        environment: dict[str, str],
        answer: Callable[[str], Awaitable[bytes]],
        on_end: Callable[[Page], None],
    ) -> None:
        """`answer`: what it asks of all workers. `on_end` gets the last page of a process that is no more."""
        self.number = number
        self.up = asyncio.Event()
        self.ended = asyncio.Event()
        """Set when the first process has ended or none will be: if it was not up, nothing becomes of it."""
        self.code = 0
        self.restarts = 0
        self.hung = 0
        self.page: Page | None = None
        """The last that it showed."""
        self._command = command
        self._environment = environment
        self._answer_all = answer
        self._on_end = on_end
        self._process: asyncio.subprocess.Process | None = None
        self._line: Line | None = None
        self._answered_at = 0.0
        self._missed_hangup = False
        self._stopping = False
        self._backoff = Backoff(base_s=0.1, cap_s=RESTART_CAP_S)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def listens(self) -> bool:
        """Whether the kernel hands it connections; its end is seen on its line before anywhere else."""
        return self.up.is_set() and self._line is not None and not self._line.ended

    async def live(self) -> object:
        """One life: start it, wait for its end, and for as long as is due before the next."""
        if self._stopping:
            self.ended.set()
            return END
        began = time.monotonic()
        line = await self._start()
        reading = asyncio.create_task(line.run())
        try:
            assert self._process is not None
            self.code = await self._process.wait()
        finally:
            reading.cancel()
            await self._end()
        self._forget_it()
        if self._stopping:
            return END
        if time.monotonic() - began > STEADY_S:
            self._backoff.reset()
        log.error("a worker has ended", extra={"worker": self.number, "code": self.code})
        await asyncio.sleep(self._backoff.next())
        if self._stopping:  # since: another would be killed while it starts
            return END
        self.restarts += 1
        return None

    async def _start(self) -> Line:
        ours, its = socket.socketpair()
        with its:
            line = self._line = await Line.open(ours, self._answer)
            command = self._command(self.number, its.fileno())
            # Its own session: a Ctrl-C in the terminal reaches it once, through us.
            self._process = await asyncio.create_subprocess_exec(
                *command, pass_fds=(its.fileno(),), start_new_session=True, env=self._environment
            )
        return line

    async def look(self) -> Page | None:
        """Its page now, which is remembered; None where it gives none. One that hangs is ended."""
        try:
            self.page = read_page((await self.ask("page")).decode())
        except Refused as error:
            self._answered_at = time.monotonic()
            log.warning("a worker shows no page", extra={"worker": self.number, "reason": error.message})
            return None
        except RoostError:
            self._end_if_hung()
            return None
        self._answered_at = time.monotonic()
        return self.page

    async def ask(self, what: str) -> bytes:
        assert self._line is not None
        return await self._line.ask(what)

    def hang_up(self) -> None:
        """Have it read the store's password again, now or when it has come so far."""
        self._missed_hangup = not self.up.is_set()
        if self.up.is_set():
            self._send(signal.SIGHUP)

    async def stop(self, within_s: float) -> None:
        """Ask it to end, for good; end it if it does not."""
        self._stopping = True
        self._send(signal.SIGTERM)
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._process.wait()
        await self._end()

    async def _answer(self, what: str) -> bytes:
        if what != "up":
            return await self._answer_all(what)
        self._answered_at = time.monotonic()
        self.up.set()
        if self._missed_hangup:
            self.hang_up()
        log.info("a worker takes connections", extra={"worker": self.number, "pid": self.pid})
        return b""

    def _end_if_hung(self) -> None:
        if self.up.is_set() and time.monotonic() - self._answered_at > HUNG_S:
            self.hung += 1
            log.error("a worker hangs and is ended", extra={"worker": self.number, "pid": self.pid})
            self._send(signal.SIGKILL)

    def _forget_it(self) -> None:
        self.up.clear()
        self.ended.set()
        if self.page is not None:
            self._on_end(self.page)
        self.page = None

    async def _end(self) -> None:
        """Nothing of it runs afterwards."""
        self._send(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
