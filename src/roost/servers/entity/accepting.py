"""A user comes by a move: what `arrival` decides is done here, in the user's first turn on this server."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from roost.binding import scripts
from roost.binding.arrival import (
    Arrival,
    ArrivalAction,
    ArrivalEvent,
    ClaimRow,
    CommitAsked,
    CommitMap,
    Committed,
    Expired,
    Gone,
    Hold,
    Load,
    Loaded,
    NotLoaded,
    Offer,
    Opened,
    Refuse,
    ReleaseRow,
    RowClaimed,
    RowTaken,
    Undone,
    arrive,
    receive,
)
from roost.binding.protocol import NoAnswer
from roost.core.errors import RoostError
from roost.db.model import Claimed, Row
from roost.servers.entity.peering import (
    BAD,
    AcceptCall,
    read_accept,
    read_commit,
    refuse_role,
)
from roost.servers.entity.session import Phase, Session, digest_of
from roost.servers.entity.tenancy import moved
from roost.servers.entity.turns import HookTimeout, Turn, limited
from roost.servers.entity.visits import HostTurn
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

log = logging.getLogger("roost.entity")

STEP_S = 2.0
"""For each step: whoever waits for it has long gone back."""


class Acceptor:
    """Methods 5 and 6 of the wire."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held: dict[str, AcceptTurn] = {}

    def accept(self, call: Call) -> Answer | None:
        """Method 5: an `AcceptCall` → `[]`, when the user is open here; with `hold`, when it could be."""
        if (refused := refuse_role(call, "entity")) is not None:
            return refused
        try:
            asked = read_accept(call.payload)
        except (*BAD, RoostError) as error:
            return refusal(Code.BAD_REQUEST, f"this is no ACCEPT: {error}")
        host = self._host
        if (known := host.sessions.get(asked.user)) is not None:
            return self._known(known, asked)
        if asked.type != host.type:
            return refusal(Code.NOT_OWNER, f"this server holds users of {host.type}")
        if len(host.sessions) >= host.settings.capacity:
            return refusal(Code.FULL, f"this server holds {host.settings.capacity} users and takes no more")
        partition = host.bindings.partition_of(host.type, asked.user)
        offer = Offer(
            host.me(),
            asked.move_id,
            asked.epoch,
            asked.next_epoch,
            asked.revision,
            asked.digest,
            asked.hold,
        )
        arrival, action = arrive(offer, self._fault(partition))
        if isinstance(action, Refuse):
            return refusal(Code.REFUSED, action.why)
        session = host.make_session(asked.user, partition)
        turn: Turn = AcceptTurn(self, host, session, call, asked, arrival, action)
        session.trace = call.traceparent  # until their gate logs in here
        if call.traceparent is not None:
            turn = host.traced("accept", turn, call.traceparent)
        session.line.add(turn)
        return None

    def _fault(self, partition: int) -> str:
        """Why nobody can be taken now (R6)."""
        if self._host.is_stopping or self._host.retiring.is_on:
            return "this server leaves"
        if not self._host.residence.is_held(partition):
            return "this server's lease is over"
        return ""

    def _known(self, session: Session, asked: AcceptCall) -> Answer:
        """The same once more; or one of an old session, about which the map shall be asked."""
        if session.is_open and session.epoch == asked.next_epoch:
            return Answer(epoch=session.epoch)
        self._host.residence.doubt(session)
        return refusal(Code.REFUSED, "this server has a session of this user")

    def commit(self, call: Call) -> Answer | None:
        """Method 6: `[type, user, move, next epoch]` → `[]`: the user is open here.

        Epoch 0: the party does not move. Refused when the row is given back.
        """
        if (refused := refuse_role(call, "entity")) is not None:
            return refused
        try:
            type_, user, move_id, epoch = read_commit(call.payload)
        except BAD as error:
            return refusal(Code.BAD_REQUEST, f"a commit is [type, user, move, epoch]: {error}")
        session, held = self._host.sessions.get(user), self._held.get(user)
        if session is not None and session.is_open and session.epoch == epoch and type_ == self._host.type:
            return Answer(epoch=epoch)
        if held is None or not held.go(move_id, epoch, call):
            return refusal(Code.REFUSED, "no such user is held for this move")
        return None

    def hold(self, turn: AcceptTurn) -> None:
        self._held[turn.session.user] = turn

    def let_go(self, turn: AcceptTurn) -> None:
        if self._held.get(turn.session.user) is turn:
            del self._held[turn.session.user]


class AcceptTurn(HostTurn):
    """Claim, check, load, commit, open: all in one turn, so whoever comes for the user waits for it."""

    def __init__(
        self,
        acceptor: Acceptor,
        host: Host,
        session: Session,
        call: Call,
        asked: AcceptCall,
        arrival: Arrival,
        action: ArrivalAction,
    ) -> None:
        super().__init__(host, session)
        self._acceptor = acceptor
        self._call = call
        self._asked = asked
        self._arrival = arrival
        self._action = action
        self._generation = host.residence.generation(session)
        self._go: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._row: Row

    def bounce(self) -> None:
        self._call.reply(self.session.farewell)

    async def run(self) -> None:
        try:
            while not isinstance(self._action, Opened | Refuse):
                event = await self._perform(self._action)
                self._arrival, self._action = receive(self._arrival, event)
        finally:
            self._acceptor.let_go(self)
            if not isinstance(self._action, Opened | Refuse):  # the server ends
                self.host.residence.end(self.session, moved(None, "this server ends"))
        if isinstance(self._action, Refuse):
            return self._refuse(self._action.why)
        return await self._open(self._action.epoch)

    async def _perform(self, action: ArrivalAction) -> ArrivalEvent:
        match action:
            case Load():
                fault = await self.host.opener.load(self.session, self._row)
                return NotLoaded(fault) if fault else Loaded()
            case Hold():
                return await self._hold()
        try:
            event: ArrivalEvent = await limited(self._ask(action), STEP_S)
            return event
        except HookTimeout:
            return NoAnswer("no answer in time")
        except (RoostError, TimeoutError) as error:
            return NoAnswer(str(error) or "no answer in time")
        except Exception as error:
            log.exception("a step of a move failed", extra={"userId": self.session.user})
            return NoAnswer(type(error).__name__)

    async def _ask(self, action: ArrivalAction) -> ArrivalEvent:
        host, user, me = self.host, self.session.user, self._arrival.offer.me
        match action:
            case ClaimRow(epoch, judged):
                claimed = await host.database.claim(host.type, user, me, epoch, judged=judged)
                if not isinstance(claimed, Claimed):
                    return RowTaken()
                self._row = claimed.row
                row = claimed.row
                return RowClaimed(row.revision, digest_of(row.state), host.opener.unreadable(row))
            case CommitMap(move_id, epoch):
                answer = await host.bindings.commit(host.type, user, move_id, me, epoch)
                return Committed() if isinstance(answer, scripts.Committed) else Gone()
            case ReleaseRow(epoch):
                await host.database.release(host.type, user, me, epoch)
        return Undone()

    # -- parties

    def go(self, move_id: str, epoch: int, call: Call) -> bool:
        """The word to commit, or not to (epoch 0); False: it is for another move, or after the other word.

        Whoever says it last is answered, when it is done: who said it before has not heard in time.
        """
        offer = self._arrival.offer
        if move_id != offer.move_id or epoch not in (0, offer.next_epoch):
            return False
        if not self._go.done():
            self._go.set_result(epoch)
        elif self._go.cancelled() or self._go.result() != epoch:
            return False
        self._call = call
        return True

    async def _hold(self) -> ArrivalEvent:
        self._acceptor.hold(self)
        self._call.reply(Answer())
        try:
            async with asyncio.timeout(self.host.bindings.settings.move_mark_ms / 1000):
                epoch = await asyncio.shield(self._go)
        except TimeoutError:
            self._go.cancel()
            return Expired()
        return CommitAsked() if epoch else Expired()

    # -- the end

    def _refuse(self, why: str) -> None:
        self.host.counts["arrivals_refused"] += 1
        log.warning(
            "a user who was moved here was not taken", extra={"userId": self.session.user, "reason": why}
        )
        self._call.reply(refusal(Code.REFUSED, why))
        self.host.residence.end(self.session, moved(None))

    async def _open(self, epoch: int) -> None:
        session, host, asked = self.session, self.host, self._asked
        host.opener.take_up(session, self._arrival.offer.me, epoch, self._generation, self._row)
        session.inherit(asked.client, asked.context, asked.pushes)
        session.phase, session.used_at = Phase.OPEN, time.monotonic()
        host.dealing.opened(session)
        host.counts["arrived"] += 1
        self._call.reply(Answer(epoch=epoch))
        if session.client and host.has_on_login:
            await self.hook("on_login", session.entity.on_login("moved"))
