"""The host: every user of this server, and what arrives for them over the wire.

    host = Host(Player, "entity", "1.0", settings, bindings, database, leases, me)
    host.serve(wire_server)

`message`, `login` and `logout` only find the session and put a turn into its line; the turns do the rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec

from roost.binding.service import Bindings
from roost.core.errors import RoostError
from roost.core.ids import check_id
from roost.core.loops import Loops
from roost.core.owner import Owner
from roost.core.tracing import Tracer, sampled_context
from roost.db.database import Database
from roost.sdk.entity import Entity, Journal, TimerCall
from roost.servers.entity.accepting import Acceptor
from roost.servers.entity.claims import Claims
from roost.servers.entity.dealing import Dealing
from roost.servers.entity.execution import LAPSED, RETRY_MS, Executor, MessageTurn, refusal_of
from roost.servers.entity.flusher import BATCHES, Flusher
from roost.servers.entity.healing import Healer
from roost.servers.entity.home import ENTITY_SERVICE, SessionHome
from roost.servers.entity.journal import JournalWriter
from roost.servers.entity.lease import Lease
from roost.servers.entity.moving import Mover
from roost.servers.entity.opening import Opener
from roost.servers.entity.ordering import fault_of
from roost.servers.entity.peering import ACCEPT, COMMIT, MOVE, RETIRE, SURVEY, UNRETIRE
from roost.servers.entity.retiring import Retiring
from roost.servers.entity.session import Session
from roost.servers.entity.settings import EntitySettings
from roost.servers.entity.spans import TracedTurn
from roost.servers.entity.survey import survey
from roost.servers.entity.tenancy import Residence, moved
from roost.servers.entity.timers import RunningTimer
from roost.servers.entity.turns import Line, Turn, Workers
from roost.servers.entity.visits import FarewellTurn, Logout, Release, TimerTurn, Visit
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, WireServer, refusal

log = logging.getLogger("roost.entity")

MESSAGE, LOGIN, LOGOUT = 1, 2, 3
LARGEST_LOGIN = 16 * 1024
"""It is kept for as long as the user is here."""
IDLE_LOOK_S = 2.0
RETIRE_LOOK_S = 0.1

_decode_message = msgspec.msgpack.Decoder(tuple[str, str, str, Any]).decode
_decode_login = msgspec.msgpack.Decoder(tuple[str, str, str, dict[str, Any]]).decode
_decode_logout = msgspec.msgpack.Decoder(tuple[str, str, str, str]).decode


class Host:
    """Users of one service type, as objects of one class."""

    def __init__(
        self,
        entity: type[Entity],
        type_: str,
        version: str,
        settings: EntitySettings,
        bindings: Bindings,
        database: Database,
        leases: Sequence[Lease],
        me: Callable[[], Owner],
    ) -> None:
        self.entity = entity
        self.type = type_
        self.version = version
        self.settings = settings
        self.bindings = bindings
        self.database = database
        self.me = me
        self.tracer: Tracer | None = None
        self.sessions: dict[str, Session] = {}
        self.is_stopping = False
        self.counts: Counter[str] = Counter()
        self.has_on_login = entity.on_login is not Entity.on_login
        self.has_on_logout = entity.on_logout is not Entity.on_logout
        self.workers = Workers()
        claims = Claims(bindings, database, type_, me)
        self.residence = Residence(type_, me, leases, claims, database, ended=self._ended, lost=self._lost)
        self.journal = JournalWriter(bindings, type_, self.residence.doubt)
        self.flusher = Flusher(
            database,
            type_,
            entity,
            settings.flush_batch,
            fenced=self.residence.lose,
            doubted=self.residence.doubt,
            saved=self._saved,
        )
        self.residence.flusher, self.residence.journal = self.flusher, self.journal
        self.executor = Executor(entity.durability, settings, self.residence, self.flusher, self.journal)
        self.opener = Opener(
            type_, entity, settings, claims, bindings, database, self.executor, self.flusher, leases
        )
        self.healer = Healer(bindings, type_, me, self.sessions, self.residence, self.journal)
        self.mover, self.acceptor, self.retiring = Mover(self), Acceptor(self), Retiring(self)
        self.dealing = Dealing(self)
        self.opener.trades = self.dealing.loaded

    def serve(self, server: WireServer) -> None:
        server.register(ENTITY_SERVICE, MESSAGE, self.message)
        server.register(ENTITY_SERVICE, LOGIN, self.login)
        server.register(ENTITY_SERVICE, LOGOUT, self.logout)
        server.register(ENTITY_SERVICE, MOVE, self.mover.move)
        server.register(ENTITY_SERVICE, ACCEPT, self.acceptor.accept)
        server.register(ENTITY_SERVICE, COMMIT, self.acceptor.commit)
        server.register(ENTITY_SERVICE, SURVEY, partial(survey, self))
        server.register(ENTITY_SERVICE, RETIRE, self.retiring.retire)
        server.register(ENTITY_SERVICE, UNRETIRE, self.retiring.unretire)
        self.retiring.in_flight = lambda: server.in_flight

    def loops(self, loops: Loops) -> list[Coroutine[Any, Any, None]]:
        """What runs as long as the host does."""
        keep = loops.keep_running
        partitions = range(len(self.bindings.partitions))
        market = self.dealing.market
        return [
            *([keep("entity-fills", market.step)] if market is not None else []),
            *(keep("entity-flush", self.flusher.step, essential=True) for _ in range(BATCHES)),
            *(keep(f"entity-journal-{n}", partial(self.journal.step, n)) for n in partitions),
            keep("entity-trim", self.journal.trim, pause_s=0.5),
            keep("entity-heal", self.healer.step, pause_s=0.2),
            keep("entity-retire", self.retiring.step, pause_s=RETIRE_LOOK_S),
            keep("entity-reassert", self.healer.reassert_all, pause_s=self.settings.reassert_seconds),
            keep("entity-idle", self.release_idle, pause_s=min(IDLE_LOOK_S, self.settings.idle_seconds / 4)),
        ]

    # -- what arrives

    def message(self, call: Call) -> Answer | Awaitable[Answer] | None:
        """Method 1: `[type, user, session, body]` → `[result, durability]`."""
        try:
            type_, user, client, body = _decode_message(call.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _bad(f"a message is [type, user, session, body]: {error}")
        if fault := fault_of(call.sequence, call.oldest):
            return _bad(fault)
        session = self.sessions.get(user)
        if session is None or type_ != self.type or self.is_stopping:
            found = self._new_session(type_, user)
            if not isinstance(found, Session):
                return found
            session = found
            session.line.add(Visit(self, session, client, call.peer))
        elif session.is_let_go:
            session.line.add(Visit(self, session, client, call.peer))
        session.used_at = time.monotonic()
        turn: Turn = MessageTurn(self.executor, session, call, client, body)
        if call.traceparent is not None:
            turn = self.traced("handle", turn, call.traceparent)
        if not session.line.add(turn):
            return self._too_many(session)
        return None

    def login(self, call: Call) -> Answer | Awaitable[Answer] | None:
        """Method 2: `[type, user, session, context]` → `[last_sequence, reason, durability]`."""
        try:
            type_, user, client, context = _decode_login(call.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _bad(f"a login is [type, user, session, context]: {error}")
        if not client or len(call.payload) > LARGEST_LOGIN:
            return _bad(f"a login names its session, and has at most {LARGEST_LOGIN} bytes")
        session = self.sessions.get(user)
        if session is None or type_ != self.type or self.is_stopping:
            found = self._new_session(type_, user)
            if not isinstance(found, Session):
                return found
            session = found
        session.used_at = time.monotonic()
        turn: Turn = Visit(self, session, client, call.peer, call=call, context=context)
        session.trace = call.traceparent
        if call.traceparent is not None:
            turn = self.traced("open", turn, call.traceparent)
        if not session.line.add(turn):
            return self._too_many(session)
        return None

    def logout(self, call: Call) -> Answer | Awaitable[Answer] | None:
        """Method 3: `[type, user, session, reason]`. Of somebody who is not here: the gate looks where."""
        try:
            type_, user, client, reason = _decode_logout(call.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _bad(f"a logout is [type, user, session, reason]: {error}")
        session = self.sessions.get(user)
        if session is None or type_ != self.type:
            return moved(None)
        if not session.line.add(Logout(self, session, client, reason, call)):
            return self._too_many(session)
        return None

    def traced(self, name: str, turn: Turn, traceparent: bytes) -> Turn:
        """The turn in a span, where what the frame says and what we do allow for one."""
        above = sampled_context(traceparent) if self.tracer is not None else ""
        if self.tracer is None or not above:
            return turn
        return TracedTurn(turn, self.tracer.begin(name, above, type=self.type, server_id=self.me().server_id))

    def _new_session(self, type_: str, user: str) -> Session | Answer | Awaitable[Answer]:
        self.retiring.knock()
        if type_ != self.type:
            return refusal(Code.NOT_OWNER, f"this server holds users of {self.type}")
        try:
            check_id(user, "user")
        except RoostError as error:
            return _bad(error.message)
        if self.is_stopping:
            return moved(None, "this server stops")
        partition = self.bindings.partition_of(type_, user)
        if not self.residence.is_held(partition):
            return LAPSED
        if len(self.sessions) >= self.settings.capacity:
            return self._full(user)
        return self.make_session(user, partition)

    def make_session(self, user: str, partition: int | None = None) -> Session:
        """One in which nothing is yet; its first turn opens or ends it."""
        if partition is None:
            partition = self.bindings.partition_of(self.type, user)
        line = Line(self.workers, self.settings.queue)
        session = Session(user, partition, self.entity(), line, time.monotonic())
        service = (self.type, self.me().server_id, self.version)
        session.entity.home = SessionHome(
            session, service, changed=self.changed, ring=self._ring, desk=self.dealing.desk
        )
        self.sessions[user] = session
        return session

    async def _full(self, user: str) -> Answer:
        """Our own cap, whatever the map counts: it shall place the user elsewhere."""
        self.counts["full"] += 1
        try:
            record = await self.bindings.read(self.type, user)
            if record is not None and record.owner == self.me():
                await self.bindings.release(self.type, user, self.me(), record.epoch)
        except RoostError as error:
            return refusal_of(error)
        return refusal(Code.FULL, f"this server holds {self.settings.capacity} users and takes no more")

    def _too_many(self, session: Session) -> Answer:
        self.counts["refused_queue"] += 1
        said = f"{len(session.line)} messages of this user wait already"
        return refusal(Code.OVERLOADED, said, retry_after_ms=RETRY_MS, epoch=session.epoch)

    # -- what sessions say

    def changed(self, session: Session) -> None:
        """Something but a message changed the object."""
        unsaved = session.unsaved
        was_clean = not unsaved.is_dirty
        unsaved.change(time.monotonic())
        if isinstance(self.entity.durability, Journal):
            unsaved.must = unsaved.changes
        if was_clean:
            self.flusher.changed(session)

    def _saved(self, session: Session, sequence: int) -> None:
        if isinstance(self.entity.durability, Journal):
            self.journal.saved(session, sequence)

    def _ended(self, session: Session) -> None:
        self.dealing.ended(session)
        if self.sessions.get(session.user) is session:
            del self.sessions[session.user]

    def _lost(self, session: Session) -> None:
        if session.client and self.has_on_logout:
            session.line.add_first(FarewellTurn(self, session))

    def _ring(self, session: Session, timer: RunningTimer, call: TimerCall) -> None:
        session.line.add_first(TimerTurn(self, session, timer, call))

    # -- the end

    async def release_idle(self) -> None:
        """Those of whom nothing came for long may live elsewhere next time."""
        since = time.monotonic() - self.settings.idle_seconds
        for session in list(self.sessions.values()):
            if session.used_at < since and not session.line.busy:
                session.line.add(Release(self, session, "idle", since))

    async def stop(self) -> None:
        """Write and release everybody, within the time for it; the next owner claims what remains."""
        self.is_stopping = True
        for session in list(self.sessions.values()):
            session.line.add(Release(self, session, "stopping"))
        deadline = time.monotonic() + self.settings.stop_ms / 1000
        while self.sessions and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            for session in list(self.sessions.values()):
                if not session.line.busy and session.is_open:
                    session.line.add(Release(self, session, "stopping"))
        if self.sessions:
            log.error("not everybody was written", extra={"users": len(self.sessions)})
        await self.workers.close()


def _bad(message: str) -> Answer:
    return refusal(Code.BAD_REQUEST, message)
