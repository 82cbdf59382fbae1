"""The program under `roost agent`: a process group of its own that gets signals, and what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import signal

from roost.core.errors import InvalidInput, StartFailed

log = logging.getLogger("roost.agent")

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
STOPS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGQUIT})
"""Signals that ask a program to end."""

Action = signal.Signals | tuple[str, ...] | None
"""How a program is told something: by a signal, by a command of the operator's, or not at all."""


def parse_action(text: str, flag: str) -> Action:
    """`SIGUSR1` (or `USR1`), or a command line; empty: nothing is done."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(f"{flag} {text!r} cannot be read: {error}") from None
    name = text.upper().removeprefix("SIG")
    with contextlib.suppress(KeyError):
        return signal.Signals[f"SIG{name}"]
    if len(words) == 1 and text.startswith("SIG"):
        raise InvalidInput(f"{flag}: there is no signal {text}")
    return words or None


class Program:
    """Signals go to the whole group: a wrapper script does not keep them from the server that it started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked_to_stop = False
        self._commands: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, command: list[str]) -> Program:
        try:
            # Its own process group: a Ctrl-C in the terminal reaches it once, through us.
            program = cls(await asyncio.create_subprocess_exec(*command, process_group=0))
        except OSError as error:
            raise StartFailed(f"cannot start {command[0]}: {error.strerror}") from None
        loop = asyncio.get_running_loop()
        for number in PASSED_ON:
            loop.add_signal_handler(number, program.send, number)
        return program

    def send(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return
        self._asked_to_stop = self._asked_to_stop or number in STOPS
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def tell(self, action: Action, instance_id: str) -> None:
        """Send the signal, or start the command; it learns of whom by its environment."""
        if isinstance(action, signal.Signals):
            self.send(action)
        elif action is not None:
            task = asyncio.create_task(self._run(action, instance_id))
            self._commands.add(task)
            task.add_done_callback(self._commands.discard)

    async def _run(self, command: tuple[str, ...], instance_id: str) -> None:
        about = (f"ROOST_PROGRAM_PID={self._process.pid}", f"ROOST_INSTANCE_ID={instance_id}")
        try:
            running = await asyncio.create_subprocess_exec("/usr/bin/env", *about, *command)
            code = await running.wait()
        except OSError as error:
            log.error("a command could not be started", extra={"command": command[0], "reason": str(error)})
        else:
            if code:
                log.error("a command failed", extra={"command": command[0], "code": code})

    async def wait(self) -> int:
        """Its exit code; minus the signal that ended it."""
        return await self._process.wait()

    @property
    def crashed(self) -> bool:
        """Whether it ended, but not because it was asked to or had nothing left to do."""
        code = self._process.returncode or 0
        if code < 0:
            return -code not in STOPS
        return code > 0 and not self._asked_to_stop
