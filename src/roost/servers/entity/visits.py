"""Turns around a user's messages: opening, login, logout, timers, release."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import msgspec

from roost.core.errors import RoostError
from roost.sdk.entity import Journal, LoginReason, LogoutReason, TimerCall
from roost.servers.entity.execution import refusal_of, refuse_made_up
from roost.servers.entity.home import kick
from roost.servers.entity.session import Phase, Session
from roost.servers.entity.tenancy import moved
from roost.servers.entity.timers import RunningTimer
from roost.servers.entity.turns import limited
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, Connection, refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

log = logging.getLogger("roost.entity")

_encode = msgspec.msgpack.Encoder().encode

LOGOUTS: dict[str, LogoutReason] = {"closed": "left", "left": "left"}
"""What gates say of the end of a connection; anything else is a dropped one."""


class HostTurn:
    def __init__(self, host: Host, session: Session) -> None:
        self.host = host
        self.session = session

    def bounce(self) -> None:
        return None

    async def hook(self, name: str, called: object) -> None:
        """Run a hook of the class; what it raises is logged and changes nothing else."""
        try:
            await limited(called, self.host.settings.handle_ms / 1000)
        except Exception as error:
            self.host.counts["hook_failures"] += 1
            fields = {"userId": self.session.user, "hook": name, "reason": type(error).__name__}
            log.error("a hook failed", exc_info=error, extra=fields)
        if self.session.is_open:
            self.host.changed(self.session)

    async def is_ours(self) -> bool:
        """Whether the user may be served, where nobody waits for an answer; claims anew if need be."""
        session, residence = self.session, self.host.residence
        try:
            is_held = residence.is_held(session.partition)
            return is_held and (residence.is_current(session) or await residence.make_current(session))
        except RoostError:
            return False


class Visit(HostTurn):
    """The client is here: by a login, or by the first message that found nobody. Opens the session."""

    def __init__(
        self,
        host: Host,
        session: Session,
        client: str,
        peer: Connection,
        *,
        call: Call | None = None,
        context: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(host, session)
        self._client = client
        self._peer = peer
        self._call = call
        self._context = context

    def bounce(self) -> None:
        self._answer(self.session.farewell)

    def _answer(self, answer: Answer) -> None:
        if self._call is not None:
            self._call.reply(answer)

    async def run(self) -> None:
        session, reason = self.session, "return"
        if session.has_ended:
            return self.bounce()
        if session.phase is Phase.OPENING:
            opened = await self._open()
            if isinstance(opened, Answer):
                self._answer(opened)
                return self.host.residence.end(session, opened)
            reason = opened
            self.host.dealing.opened(session)
        if (refused := await self._unfit()) is not None:
            return self._answer(refused)
        await self._enter(reason)
        if not session.is_open:
            return self.bounce()
        payload = _encode((session.last_sequence, reason, self.host.entity.durability.word))
        return self._answer(Answer(payload, epoch=session.epoch))

    async def _open(self) -> LoginReason | Answer:
        try:
            return await self.host.opener.open(self.session)
        except RoostError as error:
            log.warning("not opened", extra={"userId": self.session.user, "reason": error.message})
            return refusal_of(error)
        except Exception as error:
            log.exception("not opened", extra={"userId": self.session.user})
            return refusal_of(error)

    async def _unfit(self) -> Answer | None:
        """Why they cannot come in now. A gate believes no answer under an older epoch than it has seen."""
        session, residence = self.session, self.host.residence
        seen = self._call.epoch if self._call is not None else 0
        if session.is_superseded(self._client):
            return refusal(Code.NOT_OWNER, "another session of this user took over", epoch=session.epoch)
        if (refused := refuse_made_up(seen, session)) is not None:
            return refused
        is_held = residence.is_held(session.partition)
        is_ours = is_held and residence.is_current(session) and seen <= session.epoch
        try:
            if is_ours or await residence.make_current(session, seen):
                return None
        except RoostError as error:
            return refusal_of(error, session.epoch)
        return session.farewell if session.has_ended else moved(None)

    async def _enter(self, reason: str) -> None:
        session, host = self.session, self.host
        is_new = not session.client
        former, peer = session.attach(self._client, self._peer)
        if self._context is not None:
            session.context = self._context
        if peer is not None:
            kick(session, host.type, former, peer, "taken-over")
        if is_new and host.has_on_login:
            await self.hook("on_login", session.entity.on_login(reason))  # type: ignore[arg-type]


class Logout(HostTurn):
    def __init__(self, host: Host, session: Session, client: str, reason: str, call: Call) -> None:
        super().__init__(host, session)
        self._client = client
        self._reason = reason
        self._call = call

    def bounce(self) -> None:
        """Who was moved is logged out at the new home: the gate tells it."""
        farewell = self.session.farewell
        self._call.reply(farewell if farewell.code is Code.MOVED else Answer())

    async def run(self) -> None:
        session = self.session
        if session.is_open and session.client == self._client:
            session.client, session.peer = "", None
            if self.host.has_on_logout:
                reason = LOGOUTS.get(self._reason, "dropped")
                await self.hook("on_logout", session.entity.on_logout(reason))
        self._call.reply(Answer(epoch=session.epoch))


class TimerTurn(HostTurn):
    def __init__(self, host: Host, session: Session, timer: RunningTimer, call: TimerCall) -> None:
        super().__init__(host, session)
        self._timer = timer
        self._call = call

    async def run(self) -> None:
        if not self.session.is_open or not self._timer.is_on:
            return None
        if not await self.is_ours():
            return self._timer.put_off()
        await self.hook("timer", self._called())
        return self._timer.done()

    async def _called(self) -> None:
        called = self._call()
        if isinstance(called, Awaitable):
            await called


class FarewellTurn(HostTurn):
    """The object hears that its user is on another server now; it cannot save anything any more."""

    async def run(self) -> None:
        await self.hook("on_logout", self.session.entity.on_logout("fenced"))


class Release(HostTurn):
    """Write the user, clear the row's owner, give the map free: then anybody may have them (R8)."""

    def __init__(
        self, host: Host, session: Session, reason: LogoutReason, idle_since: float | None = None
    ) -> None:
        super().__init__(host, session)
        self._reason = reason
        self._idle_since = idle_since

    async def run(self) -> None:
        session = self.session
        was_used = self._idle_since is not None and session.used_at > self._idle_since
        if not session.is_open or session.in_doubt or was_used or len(session.line):
            return  # the mark of a move of which nobody knows is ended by whoever has the session: a claim
        if session.client:
            session.client, session.is_let_go = "", True
            if self.host.has_on_logout:
                await self.hook("on_logout", session.entity.on_logout(self._reason))
            session.peer = None  # a last push of the hook went there
        if not await self.host.flusher.save_in_turn(session, self.host.settings.stall_ms / 1000):
            return
        try:
            await self._give_up()
        except RoostError as error:
            log.warning("not released", extra={"userId": session.user, "reason": error.message})

    async def _give_up(self) -> None:
        session, host = self.session, self.host
        if not await host.database.release(host.type, session.user, session.owner, session.epoch):
            return host.residence.lose(session)
        try:
            if isinstance(host.entity.durability, Journal):
                await host.journal.trim_all(session)
            await host.bindings.release(host.type, session.user, session.owner, session.epoch)
        finally:  # the row takes no more of us; should the map still name us, a login claims anew
            host.residence.end(session, moved(None, "the user was released"))
            host.counts["released"] += 1
        return None
