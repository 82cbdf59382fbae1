"""The heartbeat: its own thread, its own loop, its own connection.

A main loop that is busy for a while must not look dead, and one that hangs must not look alive. So the
beat does not run in the main loop, and it carries the time since that loop last turned.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from roost.api.discovery import Beat, RegisterInput, SelfStatus
from roost.core.backoff import jittered
from roost.core.errors import (
    FencedInstance,
    InstanceRefused,
    RemovedInstance,
    RoostError,
    UnknownInstance,
)
from roost.sdk.transport import Transport

log = logging.getLogger("roost.sdk")

TICK_S = 0.25
MakeTransport = Callable[[], Awaitable[Transport]]
Word = Literal["drain", "removed", "fenced"]
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
    on_word: Callable[[Word], None] = lambda word: None
    draining: bool = False
    """Whether the operator wants it empty."""
    ended: Word | None = None
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

    def anew(self) -> RegisterInput:
        """The current full record, to register again after it was forgotten."""
        fields = {name: getattr(self.given, name) for name in self.given.__struct_fields__}
        fields |= {"instance_id": self.instance_id, "former_life": self.life}
        fields |= {"status": self.status, "load": self.load, "performance": self.performance}
        return RegisterInput(**fields)


class Heart:
    """Beats for any number of registrations of one process."""

    def __init__(self, make_transport: MakeTransport) -> None:
        self._make_transport = make_transport
        self._main = asyncio.get_running_loop()
        self._ticked_at = time.monotonic()
        self._ticker = self._main.create_task(self._tick(), name="roost tick")
        self._registrations: dict[str, Registration] = {}
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="roost-heart", daemon=True)
        self._thread.start()

    def add(self, registration: Registration) -> None:
        self._registrations[registration.instance_id] = registration
        self._wake()

    def drop(self, instance_id: str) -> None:
        self._registrations.pop(instance_id, None)
        self._wake()

    async def stop(self) -> None:
        self._ticker.cancel()
        self._registrations.clear()
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(self._thread.join, 5.0)

    # -- main loop

    async def _tick(self) -> None:
        while True:
            self._ticked_at = time.monotonic()
            await asyncio.sleep(TICK_S)

    # -- heart's thread

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        self._loop = loop
        task = loop.create_task(self._beat_for_ever())
        try:
            loop.run_forever()
        finally:
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()

    def _wake(self) -> None:
        if self._loop is not None and self._changed is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    async def _beat_for_ever(self) -> None:
        self._changed = asyncio.Event()
        transport: Transport | None = None
        due: dict[str, float] = {}
        try:
            while True:
                self._changed.clear()
                try:
                    transport = transport or await self._make_transport()
                    await self._beat_all(transport, due)
                except RoostError as error:
                    log.warning("no heartbeat", extra={"reason": error.message})
                pause = min((at - time.monotonic() for at in due.values()), default=1.0)
                try:
                    async with asyncio.timeout(min(max(pause, 0.05), 1.0)):
                        await self._changed.wait()
                except TimeoutError:
                    pass
        finally:
            if transport is not None:
                await transport.close()

    async def _beat_all(self, transport: Transport, due: dict[str, float]) -> None:
        now = time.monotonic()
        for instance_id in due.keys() - self._registrations.keys():
            del due[instance_id]
        calls = []
        for registration in list(self._registrations.values()):
            # The first beat comes at a random moment of the interval: a fleet started together spreads out.
            at = due.setdefault(registration.instance_id, now + jittered(registration.interval_s / 2, 0.9))
            if at <= now or registration.status != registration.told_status:
                due[registration.instance_id] = now + jittered(registration.interval_s)
                calls.append(self._beat(transport, registration))
        await asyncio.gather(*calls)

    async def _beat(self, transport: Transport, registration: Registration) -> None:
        try:
            beat = registration.beat(time.monotonic() - self._ticked_at)
            reply = await transport.heartbeat(registration.instance_id, beat)
            registration.told_status = beat.status or ""
            was_draining, registration.draining = registration.draining, reply.status == "DRAIN"
            if registration.draining and not was_draining:
                self._say(registration, "drain")
        except UnknownInstance:
            await self._register_again(transport, registration)
        except RemovedInstance:
            self._end(registration, "removed")
        except FencedInstance:
            self._end(registration, "fenced")
        except RoostError as error:
            log.warning(
                "heartbeat lost", extra={"instanceId": registration.instance_id, "reason": error.message}
            )

    async def _register_again(self, transport: Transport, registration: Registration) -> None:
        """The store forgot us: register what we are now. Whoever was removed on purpose is refused."""
        try:
            again = await transport.register(registration.anew())
            registration.life = again.life
            log.warning(
                "registered again", extra={"instanceId": registration.instance_id, "life": again.life}
            )
        except RemovedInstance:
            self._end(registration, "removed")
        except FencedInstance:
            self._end(registration, "fenced")
        except (InstanceRefused, RoostError) as error:
            log.error(
                "not registered again",
                extra={"instanceId": registration.instance_id, "reason": error.message},
            )

    def _end(self, registration: Registration, word: Word) -> None:
        registration.ended = word
        self._registrations.pop(registration.instance_id, None)
        log.error(
            "this instance must stop beating", extra={"instanceId": registration.instance_id, "why": word}
        )
        self._say(registration, word)

    def _say(self, registration: Registration, word: Word) -> None:
        self._main.call_soon_threadsafe(registration.on_word, word)
