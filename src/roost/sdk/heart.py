"""The heartbeat: its own thread, its own loop, its own connection.

A main loop that is busy for a while must not look dead, and one that hangs must not look alive. So the
beat does not run in the main loop, and it carries the time since that loop last turned.

A beat may fail, the heart may not: whatever it fails with is noted in the `Registration`, and the next comes
sooner. A value that cannot be sent is left out, so that the lease is renewed all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from roost.api.discovery import Beat, BeatReply, RegisterInput, SelfStatus
from roost.api.limits import MAX_COUNT, MAX_OBJECT_BYTES
from roost.core.backoff import jittered
from roost.core.errors import (
    FencedInstance,
    InvalidInput,
    RemovedInstance,
    RoostError,
    UnknownInstance,
)
from roost.core.loops import Loops
from roost.sdk.finding import find
from roost.sdk.ports import OpenTransport, Registry, Transport

log = logging.getLogger("roost.sdk")

TICK_S = 0.25
SHORTEST_DEFAULT_TTL_S = 15.0
"""The lease of who asked for none, at a gateway of profile lan; elsewhere it is longer."""
CARRIED: dict[str, Any] = {
    "status": SelfStatus,
    "load": Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)],
    "performance": dict[str, Any],
}
"""The fields of a registration that a beat carries, and what each may hold."""
PATIENCE_SHARE = 0.25
"""Of the interval, that a beat waits for its answer. An instance is suspect after one and a half intervals of
silence: there is time for two."""
LEAST_PATIENCE_S = 0.25
"""A busy gateway may take that long."""
RETRY_SHARE = 0.2
"""Of the interval, until the next beat after one that failed, or told of a main loop that hangs."""
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
    proofs: dict[str, str] = field(default_factory=dict)
    """Life → what proves to a waiting room that it is ours."""
    told_status: str = ""
    """The status that the last beat carried; a new one does not wait for the next beat."""
    hung_since: float | None = None
    """Monotonic time since when whatever it stands for does not answer; its beats then do not renew."""
    last_beat_at: float | None = None
    """Monotonic time of the last beat that was taken."""
    beats_failed: int = 0
    last_error: str = ""
    """Why the last beat failed, or what was left out of it; empty while all is well."""

    def __post_init__(self) -> None:
        self.told_status = self.status
        self._sound = (self.status, self.load, self.performance)
        self._left_out = ""
        self._failing = False

    def hang(self) -> None:
        self.hung_since = time.monotonic()

    def beat(self, tick_age_s: float) -> Beat:
        """What to send. A field whose value cannot be sent keeps its last one, and `last_error` names it."""
        if self.hung_since is not None:
            tick_age_s = max(tick_age_s, time.monotonic() - self.hung_since)
        status, load, performance = self._checked()
        tick_age_ms = int(tick_age_s * 1000)
        if not self.is_stranger:
            return Beat(self.life, status, load, performance, tick_age_ms, self.proof)
        # Of somebody whom another process registered only what was set here is ours to say.
        return Beat("", status if status != "ready" else None, load or None, performance or None, tick_age_ms)

    @property
    def proof(self) -> str:
        """Of the present life."""
        return self.proofs.get(self.life, "")

    def renew_proof(self, beat: Beat, reply: BeatReply) -> None:
        """Keep the proof that the reply to this beat gave, if any: the key of the former may be dropped."""
        if reply.proof:
            self.proofs[beat.life] = reply.proof

    @property
    def server_id(self) -> str:
        """What others call it: its server id, or its instance id where it has none."""
        return self.given.server_id or self.instance_id

    @property
    def is_stranger(self) -> bool:
        """Whether another process registered it."""
        return not self.given.type

    def _checked(self) -> tuple[SelfStatus, int, dict[str, Any]]:
        """What can be sent of what is wanted."""
        status, load, performance = self._sound
        problems = {name: _unsendable(name, getattr(self, name)) for name in CARRIED}
        self._sound = (
            status if problems["status"] else self.status,
            load if problems["load"] else self.load,
            performance if problems["performance"] else self.performance,
        )
        self._left_out = "; ".join(f"{name} was left out: {why}" for name, why in problems.items() if why)
        return self._sound

    @property
    def failing(self) -> bool:
        """Whether the last beat did not get through."""
        return self._failing

    def note_success(self, refused: str = "") -> None:
        """A beat was taken; `refused`: but not what it carried."""
        self.last_beat_at = time.monotonic()
        self.last_error = refused or self._left_out
        self._failing = False

    def note_failure(self, reason: str) -> None:
        self.beats_failed += 1
        self._failing = True
        self.last_error = reason

    def may_hang(self, beat: Beat) -> bool:
        """Whether what it stands for has not moved for so long that the next beat may have to tell."""
        return self.hangs(beat) or beat.tick_age_ms > max(2 * TICK_S, self.interval_s / 2) * 1000

    def hangs(self, beat: Beat) -> bool:
        """Whether what it stands for has not moved for half a lease: that may be why the lease ended."""
        return beat.tick_age_ms > (self.given.ttl_seconds or SHORTEST_DEFAULT_TTL_S) * 1000 / 2

    def reregistration(self) -> RegisterInput:
        """The current full record, to register again after it was forgotten."""
        fields = {name: getattr(self.given, name) for name in self.given.__struct_fields__}
        fields |= {"instance_id": self.instance_id, "former_life": self.life}
        status, load, performance = self._checked()
        fields |= {"status": status, "load": load, "performance": performance}
        return RegisterInput(**fields)


def _unsendable(name: str, value: Any) -> str:
    """Why a beat cannot carry the value; empty if it can."""
    try:
        if len(encoded := msgspec.json.encode(value)) > MAX_OBJECT_BYTES:
            return f"{len(encoded)} bytes are too many"
        msgspec.json.decode(encoded, type=CARRIED[name])
    except Exception as error:  # a value of the user's may raise anything while it is encoded
        return f"{type(error).__name__}: {error}"
    return ""


def stranger(any_id: str, interval_s: float) -> Registration:
    """An instance that another process registered, to beat for."""
    return Registration(RegisterInput("", "", server_id=any_id), any_id, "", interval_s)


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
        self._under_way: dict[str, asyncio.Task[None]] = {}
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
        for one in (task, *self._under_way.values()):
            one.cancel()
        await asyncio.gather(task, *self._under_way.values(), return_exceptions=True)
        if self._transport is not None:
            await self._transport.close()

    async def _beat_all(self, registry: Registry) -> None:
        """Begin what is due; a beat that takes its time holds up nobody else. Raises what nobody expected."""
        now = time.monotonic()
        for instance_id in self._due.keys() - self._registrations.keys():
            del self._due[instance_id]
        for instance_id, registration in list(self._registrations.items()):
            # The first beat comes at a random moment of the interval: a fleet started together spreads out.
            first = now + jittered(registration.interval_s / 2, 0.9)
            at = self._due.setdefault(instance_id, first)
            is_due = at <= now or (
                registration.status != registration.told_status and not registration.failing
            )
            if is_due and instance_id not in self._under_way:
                self._due[instance_id] = now + jittered(registration.interval_s)
                task = asyncio.create_task(self._beat(registry, registration))
                self._under_way[instance_id] = task
                task.add_done_callback(lambda _: self._changed.set())
        await asyncio.sleep(0)
        for instance_id, task in [pair for pair in self._under_way.items() if pair[1].done()]:
            del self._under_way[instance_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _beat(self, registry: Registry, registration: Registration) -> None:
        """One beat; a failure is noted and the next comes sooner."""
        try:
            await self._send_twice(registry, registration)
        except TimeoutError:
            self._failed(registration, "no answer in time")
        except RoostError as error:
            self._failed(registration, error.message)
        except Exception as error:
            self._failed(registration, f"{type(error).__name__}: {error}")
            raise

    async def _send_twice(self, registry: Registry, registration: Registration) -> None:
        """Give up one that hangs in time for another, of another gateway where there is one."""
        patience_s = max(LEAST_PATIENCE_S, registration.interval_s * PATIENCE_SHARE)
        for suppressed in ((TimeoutError,), ()):
            with contextlib.suppress(*suppressed):
                async with asyncio.timeout(patience_s):
                    await self._send(registry, registration)
                return

    async def _send(self, registry: Registry, registration: Registration) -> None:
        wanted = registration.status
        beat = registration.beat(time.monotonic() - self._ticked_at)
        if registration.may_hang(beat):
            # The beat that says so must not be late, nor the first one after it that renews the lease.
            self._hasten(registration)
        try:
            reply, refused = await self._taken(registry, registration, beat)
        except UnknownInstance:
            if not self._holds(registration):
                pass  # it left while the beat was under way
            elif registration.is_stranger:
                await self._find(registry, registration)
            elif registration.hangs(beat):
                log.warning(
                    "not registered again while it hangs", extra={"instanceId": registration.instance_id}
                )
            else:
                await self._register_again(registry, registration)
            return
        except (RemovedInstance, FencedInstance) as error:
            self._end(registration, error)
            return
        registration.told_status = wanted
        registration.renew_proof(beat, reply)
        registration.note_success(refused)
        was_draining, registration.draining = registration.draining, reply.status == "DRAIN"
        if registration.draining and not was_draining:
            self._direct(registration, "drain")

    async def _taken(
        self, registry: Registry, registration: Registration, beat: Beat
    ) -> tuple[BeatReply, str]:
        """The reply to the beat; where the other side refuses what it carries, to a bare one, and why."""
        try:
            return await registry.heartbeat(registration.instance_id, beat), ""
        except InvalidInput as error:
            bare = Beat(beat.life, tick_age_ms=beat.tick_age_ms, proof=beat.proof)
            reply = await registry.heartbeat(registration.instance_id, bare)
            log.warning(
                "heartbeat refused, sent bare",
                extra={"instanceId": registration.instance_id, "reason": error.message},
            )
            return reply, f"what the beat carried was refused: {error.message}"

    def _failed(self, registration: Registration, reason: str) -> None:
        registration.note_failure(reason)
        self._hasten(registration)
        log.warning("heartbeat lost", extra={"instanceId": registration.instance_id, "reason": reason})

    def _hasten(self, registration: Registration) -> None:
        soon = time.monotonic() + jittered(registration.interval_s * RETRY_SHARE)
        if registration.instance_id in self._due:
            self._due[registration.instance_id] = min(self._due[registration.instance_id], soon)

    def _holds(self, registration: Registration) -> bool:
        return self._registrations.get(registration.instance_id) is registration

    async def _find(self, registry: Registry, registration: Registration) -> None:
        """Somebody else's: by its server id, if that is what we were given; else nobody knows it."""
        found = (await find(registry, registration.server_id)).instance
        if found is None or found.instance_id == registration.instance_id:
            raise UnknownInstance(f"nobody knows {registration.server_id}")
        self._registrations.pop(registration.instance_id, None)
        registration.instance_id = found.instance_id
        self._registrations[registration.instance_id] = registration
        self._due[registration.instance_id] = 0.0

    async def _register_again(self, registry: Registry, registration: Registration) -> None:
        """The store forgot us: register what we are now. One removed on purpose is refused."""
        try:
            again = await registry.register(registration.reregistration())
            registration.proofs[again.life] = again.proof
            registration.life = again.life
            registration.note_success()
            log.warning(
                "registered again", extra={"instanceId": registration.instance_id, "life": again.life}
            )
            if not self._holds(registration):  # it left meanwhile
                given = registration.given
                await registry.remove(again.instance_id, given.type, given.group, again.life, "terminated")
        except (RemovedInstance, FencedInstance) as error:
            self._end(registration, error)

    def _end(self, registration: Registration, error: RemovedInstance | FencedInstance) -> None:
        if not self._holds(registration):
            return  # its own removal was sooner than the beat
        directive: Directive = "removed" if isinstance(error, RemovedInstance) else "fenced"
        registration.ended = directive
        self._registrations.pop(registration.instance_id, None)
        log.error(
            "this instance must stop beating",
            extra={"instanceId": registration.instance_id, "why": directive},
        )
        self._direct(registration, directive)

    def _direct(self, registration: Registration, directive: Directive) -> None:
        self._main.call_soon_threadsafe(registration.on_directive, directive)
