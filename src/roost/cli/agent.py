"""`roost agent`: registers, beats and removes for a program in any language.

The agent starts the program, passes signals and the exit code on, and says what became of it: a clean
exit is `terminated`, a crash is left to be found as `no-response`. With a health check the program is
ready when the check first passes, and beats stop while it fails.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from typing import Any

from roost.api.discovery import HealthCheck, Instance
from roost.core.errors import InvalidInput, StartFailed
from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.local import api_token, gateway_url
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.heart import Registration
from roost.settings import Settings

log = logging.getLogger("roost.agent")

CHECK_INTERVAL_S = 2.0
FAILURES_TO_HANG = 3
"""Failed checks one after the other, after which a program that was ready does not beat any more."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


def parse_ports(texts: Sequence[str]) -> dict[str, int]:
    """`udp=7777` each."""
    ports: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not name or not equals or not number.isdecimal():
            raise InvalidInput(f"--port {text!r} must be name=number, such as udp=7777")
        ports[name] = int(number)
    return ports


def parse_health(text: str, ports: dict[str, int]) -> HealthCheck | None:
    """`http:8080/health`, `tcp:7777`, `grpc:9000/service`, `udp:7777`; a port that is new is added."""
    if not text:
        return None
    kind, _, rest = text.partition(":")
    number, slash, path = rest.partition("/")
    if kind not in ("http", "tcp", "grpc", "udp") or not number.isdecimal():
        raise InvalidInput(f"--health {text!r} must be kind:port[/path], such as http:8080/health")
    name = next((known for known, port in ports.items() if port == int(number)), None)
    if name is None:
        name = "health"
        ports[name] = int(number)
    return HealthCheck(kind, name, slash + path or "/")  # type: ignore[arg-type]


async def run_agent(
    settings: Settings, command: list[str], fields: dict[str, Any], ttl_seconds: float
) -> int:
    """Run the program to its end; returns the exit code to pass on."""
    where, token = gateway_url(settings), api_token(settings)
    async with connect(
        where, token=token, ttl_seconds=ttl_seconds, cache_folder=settings.data / "cache"
    ) as roost:
        process = await _spawn(command)
        _pass_signals_on(process)
        checked = fields.get("health") is not None
        registered = await _register(
            roost, process, {**fields, "status": "initializing" if checked else "ready"}
        )
        registration = roost.start_auto_heartbeat(registered)
        checker = asyncio.create_task(_keep_checked(registration)) if checked else None
        code = await process.wait()
        if checker is not None:
            checker.cancel()
        await roost.stop_auto_heartbeat()
        if code == 0 or -code in (signal.SIGTERM, signal.SIGINT):
            await roost.remove(registered)
        else:
            log.error("the program crashed; its lease is left to end", extra={"code": code})
        return code if code >= 0 else 128 - code


async def _spawn(command: list[str]) -> asyncio.subprocess.Process:
    try:
        # Its own process group: a Ctrl-C in the terminal reaches it once, through us.
        return await asyncio.create_subprocess_exec(*command, process_group=0)
    except OSError as error:
        raise StartFailed(f"cannot start {command[0]}: {error.strerror}") from None


def _pass_signals_on(process: asyncio.subprocess.Process) -> None:
    loop = asyncio.get_running_loop()
    for number in PASSED_ON:
        loop.add_signal_handler(number, _send, process, number)


def _send(process: asyncio.subprocess.Process, number: int) -> None:
    if process.returncode is None:
        process.send_signal(number)


async def _register(roost: Client, process: asyncio.subprocess.Process, fields: dict[str, Any]) -> str:
    try:
        return (await roost.register(**fields)).instance_id
    except BaseException:
        process.terminate()
        await process.wait()
        raise


async def _keep_checked(registration: Registration) -> None:
    check = ProgramCheck(registration, Prober(allow_local=True))
    await Loops().keep_running("health check", check.step, pause_s=CHECK_INTERVAL_S)


class ProgramCheck:
    """Ready while the program's own health check passes; no beats while it does not."""

    def __init__(self, registration: Registration, prober: Prober) -> None:
        self._registration = registration
        self._prober = prober
        self._failures = 0
        given = registration.given
        self._program = Instance(
            instance_id=registration.instance_id,
            type=given.type,
            group=given.group,
            life=registration.life,
            status="initializing",
            accepting=False,
            last_heartbeat="",
            private_ip="127.0.0.1",
            ports=given.ports,
            health=given.health,
        )

    async def step(self) -> None:
        probe = await self._prober.probe(self._program)
        if probe is not None and probe.ok:
            self._failures = 0
            self._registration.status = "ready"
            self._registration.hung_since = None
            return
        self._failures += 1
        if self._registration.status == "ready" and self._failures == FAILURES_TO_HANG:
            reason = probe.error if probe else ""
            log.warning("the program fails its health check", extra={"reason": reason})
            self._registration.hang()
