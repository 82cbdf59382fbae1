"""The heartbeat: its own thread, its own loop, its own connection.

A main loop that is busy for a while must not look dead, and one that hangs must not look alive. So the
beat does not run in the main loop, and it carries the time since that loop last turned.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from roost.api.discovery import Beat, RegisterInput, SelfStatus
from roost.core.backoff import jittered
from roost.core.errors import (
    FencedInstance,
    RemovedInstance,
    RoostError,
    UnknownInstance,
)
from roost.core.loops import Loops
from roost.sdk.ports import OpenTransport, Registry, Transport

log = logging.getLogger("roost.sdk")

TICK_S = 0.25
Directive = Literal["drain", "removed", "fenced"]
"""What the instance must know: it shall be empty, it was removed, a later life took over."""


@dataclass
class Registration:
    """An instance of this process. Set its fields to have them reported: the next beat carries them."""

    given: RegisterInput
    instance_id: str
    life: str
    interval_s: float
    status: SelfStatus = "ready"
    load: int = 0
    performance: dict[str, Any] = field(default_factory=dict)
    on_directive: Callable[[Directive], None] = lambda directive: None
    draining: bool = False
    """Whether the operator wants it empty."""
    ended: Directive | None = None
    told_status: str = ""
    """The status that the last beat carried; a new one does not wait for the next beat."""
    hung_since: float | None = None
    """Monotonic time since when whatever it stands for does not answer; its beats then do not renew."""

    def __post_init__(self) -> None:
        self.told_status = self.status

    def hang(self) -> None:
        self.hung_since = time.monotonic()

    def beat(self, tick_age_s: float) -> Beat:
        if self.hung_since is not None:
            tick_age_s = max(tick_age_s, time.monotonic() - self.hung_since)
        return Beat(self.life, self.status, self.load, self.performance, int(tick_age_s * 1000))

    def reregistration(self) -> RegisterInput:
        """The current full record, to register again after it was forgotten."""
        fields = {name: getattr(self.given, name) for name in self.given.__struct_fields__}
        fields |= {"instance_id": self.instance_id, "former_life": self.life}
        fields |= {"status": self.status, "load": self.load, "performance": self.performance}
        return RegisterInput(**fields)


class Heart:
    """Beats for any number of registrations of one process."""

    def __init__(self, open_transport: OpenTransport, loops: Loops) -> None:
        self._open_transport = open_transport
        self._main = asyncio.get_running_loop()
        self._ticked_at = time.monotonic()
        self._ticker = self._main.create_task(
            loops.keep_running("sdk-tick", self._tick, pause_s=TICK_S), name="roost tick"
        )
        self._registrations: dict[str, Registration] = {}
        self._due: dict[str, float] = {}
        """Instance → monotonic time of its next beat."""
        self._transport: Transport | None = None
        self._changed = asyncio.Event()
        self._beating = loops.loop("sdk-heartbeat")  # made here, so that the other thread adds to no dict
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="roost-heart", daemon=True)
        self._thread.start()

    def add(self, registration: Registration) -> None:
        self._registrations[registration.instance_id] = registration
        self._wake()

    def drop(self, instance_id: str) -> None:
        self._registrations.pop(instance_id, None)
        self._wake()

    async def stop(self) -> None:
        """For good; waits at most 5 s for a beat that is under way."""
        self._ticker.cancel()
        self._registrations.clear()
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 5.0)

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)

    async def _tick(self) -> None:
        """On the main loop: its last turn."""
        self._ticked_at = time.monotonic()

    # -- heart's thread

    def _run(self) -> None:
        task = self._loop.create_task(self._beating.keep_running(self.turn))
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end_beating(task))
            self._loop.close()

    async def turn(self) -> None:
        """Wait until a beat is due or something changed, then send what is due."""
        pause = min((at - time.monotonic() for at in self._due.values()), default=1.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(pause, 0.05), 1.0)):
                await self._changed.wait()
        if self._transport is None:
            self._transport = await self._open_transport()
        self._changed.clear()  # not before it is open: else the next attempt would wait for the time
        await self._beat_all(self._transport.registry)

    async def _end_beating(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if self._transport is not None:
            await self._transport.close()

    async def _beat_all(self, registry: Registry) -> None:
        """One that fails unexpectedly does not keep the others from beating; then the turn has failed."""
        now = time.monotonic()
        for instance_id in self._due.keys() - self._registrations.keys():
            del self._due[instance_id]
        calls = []
        for registration in list(self._registrations.values()):
            # The first beat comes at a random moment of the interval: a fleet started together spreads out.
            first = now + jittered(registration.interval_s / 2, 0.9)
            at = self._due.setdefault(registration.instance_id, first)
            if at <= now or registration.status != registration.told_status:
                self._due[registration.instance_id] = now + jittered(registration.interval_s)
                calls.append(self._beat(registry, registration))
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def _beat(self, registry: Registry, registration: Registration) -> None:
        try:
            beat = registration.beat(time.monotonic() - self._ticked_at)
            reply = await registry.heartbeat(registration.instance_id, beat)
            registration.told_status = beat.status or ""
            was_draining, registration.draining = registration.draining, reply.status == "DRAIN"
            if registration.draining and not was_draining:
                self._direct(registration, "drain")
        except UnknownInstance:
            await self._register_again(registry, registration)
        except RemovedInstance:
            self._end(registration, "removed")
        except FencedInstance:
            self._end(registration, "fenced")
        except RoostError as error:
            log.warning(
                "heartbeat lost", extra={"instanceId": registration.instance_id, "reason": error.message}
            )

    async def _register_again(self, registry: Registry, registration: Registration) -> None:
        """The store forgot us: register what we are now. One removed on purpose is refused."""
        try:
            again = await registry.register(registration.reregistration())
            registration.life = again.life
            log.warning(
                "registered again", extra={"instanceId": registration.instance_id, "life": again.life}
            )
        except RemovedInstance:
            self._end(registration, "removed")
        except FencedInstance:
            self._end(registration, "fenced")
        except RoostError as error:
            log.error(
                "not registered again",
                extra={"instanceId": registration.instance_id, "reason": error.message},
            )

    def _end(self, registration: Registration, directive: Directive) -> None:
        registration.ended = directive
        self._registrations.pop(registration.instance_id, None)
        log.error(
            "this instance must stop beating",
            extra={"instanceId": registration.instance_id, "why": directive},
        )
        self._direct(registration, directive)

    def _direct(self, registration: Registration, directive: Directive) -> None:
        self._main.call_soon_threadsafe(registration.on_directive, directive)
