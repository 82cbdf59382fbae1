"""A message from its arrival to its answer."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any, Protocol

import msgspec

from roost.core.errors import Mistake
from roost.sdk.entity import Durability, Journal, Message, WriteBack
from roost.servers.entity.claims import is_made_up
from roost.servers.entity.flusher import Flusher
from roost.servers.entity.journal import JournalWriter, pack
from roost.servers.entity.ordering import Ahead, Duplicate, Execute, judge
from roost.servers.entity.replies import Reply
from roost.servers.entity.session import Entry, Session
from roost.servers.entity.settings import EntitySettings
from roost.servers.entity.turns import HookTimeout, limited
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, refusal

log = logging.getLogger("roost.entity")

LARGEST_RESULT = 900 * 1024
MOST_UNACKNOWLEDGED = 4096
LONGEST_REASON = 1000
RETRY_MS = 200

_encode = msgspec.msgpack.Encoder().encode


class Tenancy(Protocol):
    """Whether a session may be served just now."""

    def is_held(self, partition: int) -> bool:
        """Whether the lease holds, by our own clock."""

    def is_current(self, session: Session) -> bool:
        """Whether the session was claimed under the lease that holds."""

    async def make_current(self, session: Session, above: int = 0) -> bool:
        """Claim it anew, above an epoch; False: it is not ours any more, and has ended."""


LAPSED = refusal(Code.MOVED, "this server's lease is over; look the user up again")


class Executor:
    """Runs `handle` and makes its answer as durable as the class promises."""

    def __init__(
        self,
        durability: Durability,
        settings: EntitySettings,
        tenancy: Tenancy,
        flusher: Flusher,
        journal: JournalWriter,
    ) -> None:
        self.durability = durability
        self._word = durability.word
        self._window_s = durability.ms / 1000
        self._handle_s = settings.handle_ms / 1000
        self._stall_s = settings.stall_ms / 1000
        self._tenancy = tenancy
        self._flusher = flusher
        self._journal = journal
        self.counts: Counter[str] = Counter()

    async def message(self, session: Session, call: Call, client: str, body: Any) -> None:
        """The user's turn for it has come."""
        if not session.is_open:
            return session.refuse(call, session.farewell)
        if (answer := await self._unfit(session, call.epoch, client)) is not None:
            return session.refuse(call, answer)
        session.peer = call.peer
        assert call.sequence is not None
        oldest = call.oldest or 1
        match judge(session.last_sequence, call.sequence, oldest):
            case Execute(skipped):
                self.counts["skipped"] += skipped
                session.replies.forget_below(oldest)
                await self._execute(session, call, Message(body, call.sequence, client, time.time()))
            case Duplicate():
                self._repeat(session, call, call.sequence)
            case Ahead(expected):
                self.counts["out_of_order"] += 1
                said = f"message {expected} is missing"
                call.reply(refusal(Code.OUT_OF_ORDER, said, epoch=session.epoch, expected=expected))
        return None

    async def _unfit(self, session: Session, epoch: int, client: str) -> Answer | None:
        """Why it must not be executed now."""
        if not self._tenancy.is_held(session.partition):
            return LAPSED
        if (refused := refuse_made_up(epoch, session)) is not None:
            return refused
        current = self._tenancy.is_current(session) and epoch <= session.epoch
        if not current and not await self._tenancy.make_current(session, epoch):
            return session.farewell if session.has_ended else LAPSED
        if session.client and client != session.client:
            return refusal(Code.NOT_OWNER, "another session of this user took over", epoch=session.epoch)
        if self._must_save(session) and not await self._flusher.save_in_turn(session, self._stall_s):
            if session.has_ended:
                return session.farewell
            self.counts["stalled"] += 1
            said = f"what came before cannot be saved: {session.unsaved.fault or 'no answer yet'}"
            return refusal(Code.OVERLOADED, said, retry_after_ms=RETRY_MS, epoch=session.epoch)
        return None

    def _must_save(self, session: Session) -> bool:
        """Whether one more acknowledgement would promise too much."""
        unsaved = session.unsaved
        if unsaved.must > unsaved.saved:
            return True
        if not unsaved.is_dirty:
            return False
        if isinstance(self.durability, WriteBack):
            return time.monotonic() - unsaved.since >= self._window_s
        return session.waiting_acks >= MOST_UNACKNOWLEDGED or len(session.tail) >= MOST_UNACKNOWLEDGED

    async def _execute(self, session: Session, call: Call, message: Message) -> None:
        reply = await self.handled(session, message)
        tenancy = self._tenancy
        if not session.is_open:
            return session.refuse(call, session.farewell)
        self.counts["executed"] += 1
        was_clean = not session.unsaved.is_dirty
        session.executed(message.sequence, reply, time.monotonic())
        if was_clean:
            self._flusher.changed(session)
        if not isinstance(self.durability, WriteBack):  # fenced by the epoch where it becomes durable
            session.wait_for_durable(message.sequence, call, reply)
            if isinstance(self.durability, Journal):
                self._journal.add(session, Entry(message.sequence, pack(message)))
            return None
        is_ours = tenancy.is_held(session.partition) and tenancy.is_current(session)
        if not is_ours and not await tenancy.make_current(session):
            # the lease went while it ran: nobody hears of it before the user is ours again
            return session.refuse(call, session.farewell if session.has_ended else LAPSED)
        return call.reply(Answer(reply.payload, reply.code, session.epoch))

    async def handled(self, session: Session, message: Message) -> Reply:
        """What `handle` answers, or that it failed."""
        try:
            result = await limited(session.entity.handle(message), self._handle_s)
            payload = _encode((result, self._word))
        except HookTimeout as error:
            self.counts["handler_timeouts"] += 1
            log.warning("a handler took too long", extra={"userId": session.user, "reason": str(error)})
            return _failed("the handler took too long and was ended")
        except Mistake as error:  # a refusal of the class: its text is for the caller
            self.counts["handler_refusals"] += 1
            return _failed(error.message[:LONGEST_REASON])
        except Exception as error:
            self.counts["handler_failures"] += 1
            fields = {"userId": session.user, "reason": type(error).__name__}
            log.error("a handler failed", exc_info=error, extra=fields)
            return _failed("the handler failed")
        if len(payload) > LARGEST_RESULT:
            return _failed(f"the handler's result has {len(payload)} bytes, too many to be sent")
        return Reply(Code.OK, payload)

    def _repeat(self, session: Session, call: Call, sequence: int) -> None:
        self.counts["duplicates"] += 1
        reply = session.replies.get(sequence)
        if reply is None:
            said = "executed, its reply is no longer kept"
            call.reply(refusal(Code.REFUSED, said, epoch=session.epoch, executed=True))
        elif session.is_durable(sequence):
            call.reply(Answer(reply.payload, reply.code, session.epoch))
        else:
            session.wait_for_durable(sequence, call, reply)


def refuse_made_up(epoch: int, session: Session) -> Answer | None:
    """A refusal of an epoch that a gate cannot have seen."""
    if epoch > session.epoch and is_made_up(epoch):
        return refusal(Code.BAD_REQUEST, f"nobody granted epoch {epoch}", epoch=session.epoch)
    return None


def _failed(message: str) -> Reply:
    return Reply(Code.FAILED, refusal(Code.FAILED, message).payload)


class MessageTurn:
    """One message in its user's line."""

    __slots__ = ("_body", "_call", "_client", "_executor", "_session")

    def __init__(self, executor: Executor, session: Session, call: Call, client: str, body: Any) -> None:
        self._executor = executor
        self._session = session
        self._call = call
        self._client = client
        self._body = body

    async def run(self) -> None:
        try:
            await self._executor.message(self._session, self._call, self._client, self._body)
        except Exception as error:
            log.exception("a message failed", extra={"userId": self._session.user})
            self._session.refuse(self._call, refusal_of(error, self._session.epoch))

    def bounce(self) -> None:
        self._session.refuse(self._call, self._session.farewell)


def refusal_of(error: Exception, epoch: int = 0) -> Answer:
    """What a gate hears of a fault of ours: it may be sent again."""
    said = getattr(error, "message", "") if getattr(error, "code", "") else "the server cannot do it just now"
    return refusal(Code.OVERLOADED, said or "not now", retry_after_ms=RETRY_MS, epoch=epoch)
