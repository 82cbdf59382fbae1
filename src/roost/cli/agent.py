"""`roost agent`: registers, beats and removes for a program in any language.

    program runs ─► registered when a gateway answers and the server id is free ─► beats ─► it ended: removed

Nothing that a gateway does ends the program or changes its exit code. A clean exit is `terminated`; a crash
is told at once, and the server id is free for the next start. With a health check the program is ready when
the check first passes, and beats stop while it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roost.api.discovery import EndCause, HealthCheck, Instance, Registered, RegisterInput
from roost.cli.leaving import LEAVE_S, Note, take_out
from roost.cli.program import Action, Program
from roost.core.errors import InvalidInput, OutcomeUnknown, RoostError
from roost.core.ids import new_ulid
from roost.core.loops import END
from roost.discovery.probes import Prober
from roost.discovery.rules import check_registration
from roost.local import api_token, gateway_url
from roost.sdk.client import LONGEST_DEFAULT_TTL_S, Client
from roost.sdk.connect import connect
from roost.sdk.heart import Directive, Registration
from roost.settings import Settings

log = logging.getLogger("roost.agent")

CHECK_INTERVAL_S = 2.0
FAILURES_TO_HANG = 3
"""Failed checks one after the other, after which a program that was ready does not beat any more."""
RETRY_S = 0.5


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


@dataclass(frozen=True, slots=True)
class Orders:
    """What the program is told when others decide about it."""

    on_drain: Action = None
    on_removed: Action = None
    """Also when a later life of the same id took over."""

    def action(self, directive: Directive) -> Action:
        return self.on_drain if directive == "drain" else self.on_removed


async def run_agent(
    settings: Settings, command: list[str], fields: dict[str, Any], ttl_seconds: float, orders: Orders
) -> int:
    """Run the program to its end; returns the exit code to pass on."""
    # What no gateway would take is refused before anything runs.
    check_registration(RegisterInput(**{"ttl_seconds": ttl_seconds or LONGEST_DEFAULT_TTL_S, **fields}))
    where, token = gateway_url(settings), api_token(settings)
    roost = connect(where, token=token, ttl_seconds=ttl_seconds, cache_folder=settings.data / "cache")
    note = Note.of(settings, fields["type"], fields["server_id"])
    program = await Program.start(command)
    return await Agent(roost, program, fields, orders, note).run()


class Agent:
    """One program and its registration."""

    def __init__(
        self, roost: Client, program: Program, fields: dict[str, Any], orders: Orders, note: Note
    ) -> None:
        self._roost = roost
        self._program = program
        self._checked = fields.get("health") is not None
        self._instance_id = new_ulid()
        """Made here, so that it can be taken back also where the answer to a registration was lost."""
        status = "initializing" if self._checked else "ready"
        self._fields = {**fields, "status": status, "instance_id": self._instance_id}
        self._orders = orders
        self._note = note
        self._registration: Registration | None = None
        self._attempt: asyncio.Future[Registered] | None = None
        """The registration under way: not cancelled, for a gateway may still carry it out."""
        self._may_be_known = False
        """Whether an attempt was or may have been carried out; a later one that was not changes nothing."""
        self._refusal = ""

    async def run(self) -> int:
        staying = asyncio.create_task(self._stay_registered())
        code = await self._program.wait()
        staying.cancel()
        await asyncio.gather(staying, return_exceptions=True)
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._leave("crashed" if self._program.crashed else "terminated")
        except Exception as error:  # whatever it is, the exit code belongs to the program
            reason = str(error) or type(error).__name__
            log.error("its end was not told; the lease will tell it", extra={"reason": reason})
        await self._roost.close()
        return code if code >= 0 else 128 - code

    # -- while it runs

    async def _stay_registered(self) -> None:
        await self._roost.loops.keep_running("registration", self._register, pause_s=RETRY_S)
        self._registration = self._roost.start_auto_heartbeat(self._instance_id, self._pass_on)
        if self._checked:
            check = ProgramCheck(self._registration, Prober(allow_local=True))
            await self._roost.loops.keep_running("health check", check.step, pause_s=CHECK_INTERVAL_S)

    async def _register(self) -> object:
        """One attempt. A gateway that is away and a server id that a former life holds are waited for."""
        was_unknown, self._may_be_known = self._may_be_known, True
        self._note.write(self._instance_id)
        self._attempt = asyncio.ensure_future(self._roost.register(**self._fields))
        try:
            await asyncio.shield(self._attempt)
        except RoostError as error:
            self._may_be_known = was_unknown or isinstance(error, OutcomeUnknown)
            if error.code != self._refusal:
                log.warning("not registered yet; the program runs on", extra={"reason": error.message})
            self._refusal = error.code
            return None
        log.info("registered", extra={"instanceId": self._instance_id})
        return END

    def _pass_on(self, directive: Directive) -> None:
        action = self._orders.action(directive)
        log.warning("the program is told" if action else "nobody is told", extra={"directive": directive})
        self._program.tell(action, self._instance_id)

    # -- when it has ended

    async def _leave(self, cause: EndCause) -> None:
        await self._roost.stop_auto_heartbeat()
        if self._attempt is not None:
            with contextlib.suppress(Exception):  # a removal that overtook its registration would find nobody
                async with asyncio.timeout(LEAVE_S / 2):
                    await self._attempt
        if self._may_be_known and (self._registration is None or self._registration.ended is None):
            if cause == "crashed":
                log.error("the program crashed", extra={"instanceId": self._instance_id})
            await take_out(self._roost, self._instance_id, cause)
        self._note.forget()


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
        if probe is not None and not probe.asked:
            return  # the fault is on our side, and says nothing of the program
        self._failures += 1
        if self._registration.status == "ready" and self._failures == FAILURES_TO_HANG:
            reason = probe.error if probe else ""
            log.warning("the program fails its health check", extra={"reason": reason})
            self._registration.hang()
