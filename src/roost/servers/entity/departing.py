"""One user leaves by a move: what `move` decides is done here, most of it in a turn of the user."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from roost.binding import protocol as words
from roost.binding import scripts
from roost.binding.model import Record
from roost.binding.move import Move, Phase, begin, step
from roost.binding.protocol import Action, End, Event, NoAnswer, Terms, Then
from roost.core.errors import NotSent, RoostError
from roost.core.tracing import Span, current_trace, sampled_context
from roost.db.model import Claimed
from roost.sdk.entity import Later, Now, Pinned
from roost.servers.entity.home import ENTITY_SERVICE
from roost.servers.entity.peering import ACCEPT, COMMIT, encode
from roost.servers.entity.session import NEVER, Session
from roost.servers.entity.turns import HookTimeout, limited
from roost.servers.entity.visits import HostTurn
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.server import refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

log = logging.getLogger("roost.entity")

LONGEST_LATER_MS = 3_600_000
"""What a class says beyond it counts as this."""
LONGEST_PARTY = 200
"""Bytes of its name; a longer one is told by its digest."""
UNKNOWN = (Code.DEADLINE, Code.FAILED)
"""Answers that leave open whether it was done."""
TIMED = {
    Phase.PREFLUSH: "preflush",
    Phase.QUIESCE: "quiesce",
    Phase.FREEZE: "freeze",
    Phase.FLUSH: "flush",
    Phase.ACCEPT: "accept",
    Phase.COMMIT: "accept",
}


class Report(NamedTuple):
    """What became of one user, as the answer of MOVE says it."""

    user: str
    outcome: str
    why: str
    phases: dict[str, float]
    """Milliseconds; `total`: how long the user was blocked."""
    epoch: int


def willingness(session: Session) -> words.Willing | words.Unwilling:
    """What the class says; what raises, or says something else, is to be asked again."""
    try:
        return _said(session.entity.can_move())
    except Exception as error:
        log.error("can_move failed", exc_info=error, extra={"userId": session.user})
        return words.Unwilling("later", "can_move failed", 1000)


def _said(answer: object) -> words.Willing | words.Unwilling:
    """As a message can carry it: the answer for all users must not fail for one."""
    match answer:
        case Later(seconds):
            return words.Unwilling("later", "", _retry_ms(seconds))
        case Pinned(why):
            return words.Unwilling("pinned", _text(why)[:200])
        case Now(party):
            return words.Willing(_short(_text(party)))
    raise TypeError(f"can_move says Now, Later or Pinned, not {type(answer).__name__}")


def _retry_ms(seconds: Any) -> int:
    if not isinstance(seconds, int | float) or math.isnan(seconds):
        raise TypeError(f"Later({seconds!r}) says no time")
    return int(min(max(0, seconds * 1000), LONGEST_LATER_MS))


def _short(party: str) -> str:
    """The same for the same party, and another for another."""
    said = party.encode()
    return party if len(said) <= LONGEST_PARTY else blake2b(said, digest_size=32).hexdigest()


def _text(said: object) -> str:
    return str(said).encode(errors="replace").decode()


class Departure(HostTurn):
    """`go` from outside; the user's line runs the rest. `stepped` is told of every step: a party listens."""

    def __init__(self, host: Host, session: Session, terms: Terms, peer: Peer) -> None:
        super().__init__(host, session)
        self.move: Move
        self.move, self._action = begin(terms)
        self.stepped: Callable[[], None] = lambda: None
        self._peer = peer
        self._orders: asyncio.Queue[words.Go | words.Recall] | None = None
        """Of a party; most go alone."""
        self._patience: asyncio.TimerHandle | None = None
        """Until the user's turn comes, or has not come for too long."""
        self._over: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._phases: dict[str, float] = {}
        self._since = time.monotonic()
        self._blocked_at = 0.0
        self._record: Record | None = None
        self._generation = NEVER
        self._span = self._begin_span()

    def _begin_span(self) -> Span | None:
        tracer, terms = self.host.tracer, self.move.terms
        above = sampled_context(self.session.trace) if tracer is not None else ""
        if tracer is None or not above:
            return None
        source, target = terms.me.server_id, terms.target.server_id
        return tracer.begin("move", above, type=self.host.type, server_id=source, target=target)

    def order(self, order: words.Go | words.Recall) -> None:
        self._queue().put_nowait(order)

    def _queue(self) -> asyncio.Queue[words.Go | words.Recall]:
        if self._orders is None:
            self._orders = asyncio.Queue()
        return self._orders

    async def go(self) -> Report:
        """Write what there is, wait for the user's turn, and for the end of the move."""
        await self.host.flusher.save_soon(self.session, self.move.terms.quiesce_s)
        self._step(words.Preflushed())
        why = "a message of the user is being served"
        self._patience = self._over.get_loop().call_later(self.move.terms.quiesce_s, self._no_turn, why)
        self.session.line.add_first(self)
        return await self._over

    def _step(self, event: Event) -> None:
        now = time.monotonic()
        if (name := TIMED.get(self.move.phase)) is not None:
            self._phases[name] = self._phases.get(name, 0.0) + (now - self._since) * 1000
        self._since = now
        self.move, self._action = step(self.move, event, now)
        self.stepped()

    # -- the turn

    def bounce(self) -> None:
        self._no_turn("the user is not here any more", gone=True)

    def _no_turn(self, why: str, *, gone: bool = False) -> None:
        self._patience_ends()
        if self.move.phase is Phase.QUIESCE:
            self._step(words.NoTurn(why, gone))
            self._report()

    def _patience_ends(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    async def run(self) -> None:
        session = self.session
        if self.move.phase is not Phase.QUIESCE:
            return None  # given up: it waited for too long
        self._patience_ends()
        if self._span is not None:
            current_trace.set(self._span.context)
        is_ours = session.is_open and await self.is_ours()
        if not session.is_open:
            return self._no_turn("the user is not here any more", gone=True)
        if not is_ours:
            return self._no_turn("the lease is over, or the user could not be claimed anew after it was")
        self._blocked_at = time.monotonic()
        try:
            self._step(words.Turn(session.epoch))
            while not isinstance(self._action, End):
                self._step(await self._perform(self._action))
            await self._end(self._action)
        finally:
            self._report()

    def _report(self) -> None:
        if self._over.done():
            return
        if self._blocked_at:
            self._phases["total"] = (time.monotonic() - self._blocked_at) * 1000
        action, user = self._action, self.session.user
        if isinstance(action, End):
            phases: dict[str, float] = {name: round(ms, 3) for name, ms in self._phases.items()}
            if action.retry_ms:
                phases["retryMs"] = action.retry_ms
            self._over.set_result(Report(user, action.outcome, action.why, phases, action.epoch))
        else:  # the server ends, or a fault of ours: the next claim finds out
            self.session.in_doubt = self.session.generation == NEVER
            self._over.set_result(Report(user, "returned", "the move was broken off", {}, self.move.epoch))
        if self._span is not None:
            self._span.end(outcome=self._over.result().outcome, blocked_ms=self._phases.get("total", 0.0))

    # -- what the machine wants

    async def _perform(self, action: Action) -> Event:
        match action:
            case words.Ask():
                return willingness(self.session)
            case words.Wait(within_s):
                return await self._wait(within_s)
            case words.Flush(within_s):
                return await self._flush(within_s)
            case words.Freeze():
                self.session.generation = NEVER  # before it is sent (R1)
                self.host.flusher.take(self.session)  # what `Flush` waits for is on its way meanwhile
            case words.Commit(_, pause_s, _):
                await asyncio.sleep(pause_s)
        assert not isinstance(action, End)
        try:
            event: Event = await limited(self._ask(action), action.within_s)
            return event
        except HookTimeout:
            return NoAnswer("no answer in time")
        except (RoostError, TimeoutError) as error:
            return NoAnswer(str(error) or "no answer in time")
        except Exception as error:
            log.exception("a step of a move failed", extra={"userId": self.session.user})
            return NoAnswer(type(error).__name__)

    async def _wait(self, within_s: float) -> Event:
        try:
            async with asyncio.timeout(within_s):
                return await self._queue().get()
        except TimeoutError:
            return words.Recall("the party took too long")

    async def _flush(self, within_s: float) -> Event:
        unsaved = self.session.unsaved
        if not await self.host.flusher.save_in_turn(self.session, within_s):
            return words.NotSaved(unsaved.fault or "the state was not written in time")
        return words.Saved(unsaved.revision, unsaved.digest)

    async def _ask(self, action: Action) -> Event:
        host, user, terms = self.host, self.session.user, self.move.terms
        match action:
            case words.Freeze(epoch):
                mark_ms = int(terms.mark_s * 1000)
                return _frozen(
                    await host.bindings.freeze(
                        host.type, user, terms.me, epoch, terms.move_id, terms.target, ttl_ms=mark_ms
                    )
                )
            case words.Accept(within_s=within_s):
                return await self._call(ACCEPT, self._offer(action), within_s)
            case words.Commit(next_epoch, _, within_s):
                return await self._call(
                    COMMIT, encode((host.type, user, terms.move_id, next_epoch)), within_s
                )
            case words.GiveBack(within_s):
                return await self._call(COMMIT, encode((host.type, user, terms.move_id, 0)), within_s)
            case words.Renew(above):
                return await self._renew(above)
            case words.Claim(epoch, judged):
                return await self._claim(epoch, judged)
        raise TypeError(f"{action} is nothing to ask")

    def _offer(self, accept: words.Accept) -> bytes:
        session, terms = self.session, self.move.terms
        offer: tuple[Any, ...] = (self.host.type, session.user, terms.move_id, accept.epoch)
        offer += (accept.next_epoch, accept.revision, accept.digest, tuple(terms.me))
        offer += (session.client, session.context, session.pushes, accept.hold)
        return encode(offer)

    async def _call(self, method: int, payload: bytes, within_s: float) -> Event:
        budget_ms = max(1, int(within_s * 1000))
        try:
            trace = self._span.wire if self._span is not None else None
            answer = await self._peer.call(
                ENTITY_SERVICE, method, payload, budget_ms=budget_ms, traceparent=trace
            )
        except NotSent as error:
            # the connection may come back at once: a commit is sent again, an offer is not
            return NoAnswer(error.message) if method == COMMIT else words.Refused(error.message)
        if not answer.code:
            return words.Accepted()
        if answer.code in UNKNOWN:
            return NoAnswer(answer.message)
        return words.Refused(f"{answer.code.name}: {answer.message}")

    async def _renew(self, above: int) -> Event:
        host, session, residence = self.host, self.session, self.host.residence
        if not residence.is_held(session.partition):
            return NoAnswer("the lease is over")
        self._generation = residence.generation(session)
        answer = await host.bindings.renew(
            host.type, session.user, self.move.terms.me, above=above, why="returned"
        )
        if isinstance(answer, scripts.Renewed):
            return words.Renewed(answer.epoch)
        self._record = answer.record
        if self._record is None:
            return words.Elsewhere(None, 0)
        return words.Elsewhere(self._record.owner, self._record.epoch)

    async def _claim(self, epoch: int, judged: int) -> Event:
        host, me = self.host, self.move.terms.me
        answer = await host.database.claim(host.type, self.session.user, me, epoch, judged=judged)
        if isinstance(answer, Claimed):
            return words.Claimed()
        row = answer.row
        return words.RowRefused(row.owner, row.epoch, row.revision)

    # -- the end

    async def _end(self, end: End) -> None:
        session, residence = self.session, self.host.residence
        match end.then:
            case Then.SERVE:
                residence.renewed(session, self.move.terms.me, end.epoch, self._generation)
            case Then.DOUBT:
                session.in_doubt = True
            case Then.LEAVE:
                await residence.leave(session, self._record)
            case Then.DROP if end.outcome == "moved":
                await self._moved(end.epoch)
            case Then.DROP:
                residence.lose(session)
        self._report()

    async def _moved(self, epoch: int) -> None:
        """Nothing is saved any more: what is here is the target's."""
        session, target = self.session, self.move.terms.target
        said = "the user was moved to another server"
        farewell = refusal(Code.MOVED, said, serverId=target.server_id, life=target.life, epoch=epoch)
        self.host.residence.end(session, farewell)
        self._report()
        if session.client and self.host.has_on_logout:
            await self.hook("on_logout", session.entity.on_logout("moved"))


def _frozen(answer: scripts.Frozen | scripts.NotOwner | scripts.NoRoom) -> Event:
    match answer:
        case scripts.Frozen(epoch):
            return words.Frozen(epoch)
        case scripts.NoRoom(why):
            return words.NotFrozen(f"the target takes nobody: {why}")
    return words.NotFrozen("the map does not name us under this epoch")
