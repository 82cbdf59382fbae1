"""MOVE: users of this server go to another one, alone or as a party."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from roost.binding.model import Record
from roost.binding.move import Phase
from roost.binding.party import MOST_IN_PARTY, orders
from roost.binding.protocol import Terms
from roost.binding.scripts import Released, Renewed
from roost.core.errors import RoostError
from roost.core.histogram import Histogram
from roost.core.owner import Owner
from roost.servers.entity.departing import Departure, Report
from roost.servers.entity.parties import Parties, party_of
from roost.servers.entity.peering import BAD, MoveCall, encode, read_move, refuse_role
from roost.servers.entity.session import Session
from roost.servers.entity.tenancy import moved
from roost.servers.entity.visits import HostTurn
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.pool import Pool
from roost.wire.server import Answer, Call, refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

log = logging.getLogger("roost.entity")

LOOK_S = 0.02
"""How often a party is looked at when none of it has made a step: time goes on too."""


class Mover:
    """Method 4 of the wire. `peers`: how other entity servers are reached."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.peers: Pool | None = None
        self._parties = Parties(host.sessions)
        self._going: set[asyncio.Task[list[Report]]] = set()
        self.counts: Counter[str] = Counter()
        self.phases: dict[str, Histogram] = {}

    @property
    def under_way(self) -> int:
        return len(self._going)

    def move(self, call: Call) -> Answer | None:
        """Method 4: a `MoveCall` → `[[user, outcome, why, {phase: ms}, epoch], …]`.

        Everybody at once: they do not wait for each other, but for their parties; the answer for all.
        """
        if (refused := refuse_role(call, "manager")) is not None:
            return refused
        try:
            asked = read_move(call.payload)
        except (*BAD, RoostError) as error:
            return refusal(Code.BAD_REQUEST, f"this is no MOVE: {error}")
        if (nobody := self._nobody(asked)) is not None:
            return Answer(encode(nobody))
        self._begin(asked, call)
        return None

    def _nobody(self, asked: MoveCall) -> list[Report] | None:
        """None: they can be moved."""
        host = self._host
        if asked.type != host.type or self.peers is None:
            why = f"this server holds users of {host.type}"
            return [Report(user, "gone", why, {}, 0) for user in asked.users]
        if Owner(*asked.target[:2]) == host.me():
            return [Report(user, "later", "they are here already", {}, 0) for user in asked.users]
        return None

    def _begin(self, asked: MoveCall, call: Call) -> None:
        """A MOVE whose caller has gone goes on: nothing is broken off in the middle."""
        assert self.peers is not None
        loop, peer = asyncio.get_running_loop(), self.peers.at(*asked.target[2:])
        groups = self._groups(list(dict.fromkeys(asked.users)), force=asked.terms.force)
        tasks = [loop.create_task(self._together(asked, party, group, peer)) for party, group in groups]
        left = len(tasks)

        def ended(task: asyncio.Task[list[Report]]) -> None:
            nonlocal left
            self._going.discard(task)
            left -= 1
            if not left:
                call.reply(_answer_of(tasks))

        for task in tasks:
            self._going.add(task)
            task.add_done_callback(ended)

    def _groups(self, users: list[str], *, force: bool) -> list[tuple[str, list[str]]]:
        """Each user alone, or with all who name the same party; by force only with those of it who were asked
        for, and alone too if these are too many."""
        named = {user: party_of(self._host.sessions.get(user)) for user in users}
        alone: list[tuple[str, list[str]]] = []
        parties = defaultdict[str, list[str]](list)
        for user, party in named.items():
            if party:
                parties[party].append(user)
            else:
                alone.append(("", [user]))
        whole: list[tuple[str, list[str]]] = []
        for party, members in parties.items():
            if not force:
                members += [user for user in self._parties.members(party) if user not in named]
            if force and len(members) > MOST_IN_PARTY:
                alone += [("", [user]) for user in members]
            else:
                whole.append((party, sorted(members)))
        return alone + whole

    async def _together(self, asked: MoveCall, party: str, users: list[str], peer: Peer) -> list[Report]:
        if len(users) > MOST_IN_PARTY:
            why = f"a party of {len(users)} is too large to move, at most {MOST_IN_PARTY}"
            return [Report(user, "pinned", why, {}, 0) for user in users]
        sessions = [session for user in users if (session := self._host.sessions.get(user)) is not None]
        terms = self._terms(asked, party, len(sessions) > 1)
        going = [Departure(self._host, session, terms, peer) for session in sessions]
        if not going:
            reports = [await self._release(user) for user in users]
        elif len(going) == 1:
            reports = [await going[0].go()]
        else:
            reports = await _as_party(going)
        for report in reports:
            self._count(report)
        return reports

    def _terms(self, asked: MoveCall, party: str, hold: bool) -> Terms:
        given, known = asked.terms, self._host.bindings.settings
        mark_ms = given.mark_ms or known.move_mark_ms
        if hold:  # so long the target holds who is of a party: nobody may wait for the word for longer
            mark_ms = min(mark_ms, known.move_mark_ms)
        return Terms(
            self._host.me(),
            Owner(*asked.target[:2]),
            asked.move_id,
            max_block_s=(given.max_block_ms or known.move_block_ms) / 1000,
            quiesce_s=(given.quiesce_ms or known.move_quiesce_ms) / 1000,
            mark_s=mark_ms / 1000,
            force=given.force,
            party=party,
            hold=hold,
        )

    async def _release(self, user: str) -> Report:
        """Somebody who is bound here and not in memory is placed anew at the next request."""
        turn = ReleaseUnloaded(self._host, self._host.make_session(user))
        turn.session.line.add(turn)
        return await asyncio.shield(turn.over)

    def _count(self, report: Report) -> None:
        self.counts[report.outcome] += 1
        for phase, ms in report.phases.items():
            if phase != "retryMs":
                if (histogram := self.phases.get(phase)) is None:
                    histogram = self.phases[phase] = Histogram()
                histogram.observe(ms / 1000)


class ReleaseUnloaded(HostTurn):
    """In a line of its own, so that whoever comes for the user meanwhile waits, and is sent on."""

    def __init__(self, host: Host, session: Session) -> None:
        super().__init__(host, session)
        self.over: asyncio.Future[Report] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        user, host, me = self.session.user, self.host, self.host.me()
        report = Report(user, "gone", "not bound to this server", {}, 0)
        try:
            record = await host.bindings.read(host.type, user)
            if record is not None and record.owner == me:
                epoch = await self._without_mark(me, record)
                answer = await host.bindings.release(host.type, user, me, epoch)
                why = "not in memory" if isinstance(answer, Released) else "the map changes"
                outcome = "released" if isinstance(answer, Released) else "later"
                report = Report(user, outcome, why, {}, epoch)
        except RoostError as error:
            report = Report(user, "later", error.message, {}, 0)
        finally:
            host.residence.end(self.session, moved(None))
            if not self.over.done():
                self.over.set_result(report)

    async def _without_mark(self, me: Owner, record: Record) -> int:
        """The epoch to release under. Whoever asks for a user ends a mark that is over, but one who has left
        is asked for by nobody. Before that time the target may hold them, and say so again."""
        if record.state != "M":
            return record.epoch
        host, user = self.host, self.session.user
        answer = await host.bindings.renew(host.type, user, me, above=record.epoch, why="move-expired")
        return answer.epoch if isinstance(answer, Renewed) else record.epoch


async def _as_party(going: Sequence[Departure]) -> list[Report]:
    """All of them, told to go on or to come back as `party.orders` decides."""
    stepped = asyncio.Event()
    for one in going:
        one.stepped = stepped.set
    told: dict[int, Phase] = {}

    async def lead() -> None:
        while any(one.move.phase is not Phase.ENDED for one in going):
            stepped.clear()
            for at, order in orders([one.move for one in going], time.monotonic()):
                if told.get(at) is not going[at].move.phase:  # once in each phase
                    told[at] = going[at].move.phase
                    going[at].order(order)
            try:
                async with asyncio.timeout(LOOK_S):
                    await stepped.wait()
            except TimeoutError:
                pass

    leading = asyncio.create_task(lead())
    try:
        return list(await asyncio.gather(*(one.go() for one in going)))
    finally:
        leading.cancel()


def _answer_of(tasks: Sequence[asyncio.Task[list[Report]]]) -> Answer:
    try:
        return Answer(encode([report for task in tasks for report in task.result()]))
    except asyncio.CancelledError:
        return refusal(Code.FAILED, "this server ends")
    except Exception as error:
        log.error("a MOVE failed", exc_info=error)
        return refusal(Code.FAILED, "the handler failed")
