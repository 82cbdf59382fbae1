"""The verbs of one world's waiting room."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import uuid
from collections.abc import Sequence

from roost.api.limits import MAX_COUNT, MAX_MESSAGE, MAX_NICKNAME, MAX_NUMBER, MAX_PARTY
from roost.core.errors import InvalidInput
from roost.core.ids import check_id, check_name
from roost.core.networks import check_players_url
from roost.core.passes import BASE, Receipt
from roost.core.tracing import Tracer, current_trace, ticket_span
from roost.store.scopes import world as world_scope
from roost.store.store import Store
from roost.waitingroom.board import BoardCache
from roost.waitingroom.model import WorldBoard
from roost.waitingroom.rules import Policy, line_of
from roost.waitingroom.scripts import (
    Conflict,
    Consumed,
    Entered,
    Fenced,
    Found,
    Governed,
    Inside,
    Left,
    NoPlace,
    NotInside,
    Offered,
    Pending,
    Released,
    Reported,
    Seen,
    Stale,
    WorldScripts,
    found_of,
)

log = logging.getLogger("roost.waitingroom")

DROP_BATCH_LIMIT = 500
STATUS_BATCH_LIMIT = 100

Mark = tuple[str, int, int]
"""A user is there: their id, the number of the place that they show, ms to their next call."""


class WaitingRoom:
    """Who waits and who may enter, in one world."""

    def __init__(self, store: Store, world: str, policy: Policy, tracer: Tracer | None = None) -> None:
        self.world = world
        self.scope = world_scope(world)
        self.policy = policy
        self.scripts = WorldScripts(store.library, store.keys, self.scope)
        self.feed = store.feed(self.scope)
        self.board = BoardCache(self.read_board)
        self._tracer = tracer
        self._asking: list[tuple[str, asyncio.Future[Found]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def enter(
        self,
        user: str,
        nickname: str = "",
        region: str = "",
        class_name: str = BASE,
        receipt: Receipt | None = None,
        *,
        party: str = "",
        size: int = 1,
    ) -> Entered:
        """A place in the line, or a ticket at once where nobody waits and there is room."""
        check_id(user, "userId")
        _check_text("nickname", nickname, MAX_NICKNAME)
        _check_text("region", region, MAX_NICKNAME)
        policy = self.policy
        _check_class_and_party(policy, class_name, party, size)
        tid, trace = str(uuid.uuid4()), current_trace.get()
        answer = await self.scripts.enter(
            user=user,
            nickname=nickname,
            region=region,
            line=line_of(class_name),
            tid=tid,
            ticket_ms=policy.ticket_ms,
            most_waiting=policy.most_waiting,
            receipt_seq=receipt.seq if receipt is not None else "",
            receipt_born=receipt.born if receipt is not None else "",
            receipt_age=int(max(0.0, time.time() - receipt.at) * 1000) if receipt is not None else 0,
            rebuild_ms=policy.rebuild_ms,
            receipt_ms=policy.receipt_ms,
            forfeit=policy.forfeit,
            party=party,
            size=size,
            trace=trace,
            period_ms=policy.period_ms,
            burst=policy.burst,
            lines=policy.lines,
        )
        if trace and isinstance(answer, Offered) and answer.tid == tid and self._tracer is not None:
            self._tracer.begin("admit", trace, span_id=ticket_span(tid), world=self.world).end(
                outcome="at once"
            )
        return answer

    def status(self, user: str) -> asyncio.Future[Found]:
        """What they have. All who ask in one turn of the loop are one call of the store."""
        check_id(user, "userId")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()
        self._asking.append((user, answer))
        if len(self._asking) == 1:
            loop.call_soon(self._start_asking)
        return answer

    def _start_asking(self) -> None:
        asking, self._asking = self._asking, []
        for first in range(0, len(asking), STATUS_BATCH_LIMIT):
            task = asyncio.create_task(self._ask(asking[first : first + STATUS_BATCH_LIMIT]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, asking: list[tuple[str, asyncio.Future[Found]]]) -> None:
        policy = self.policy
        try:
            told = await self.scripts.status(
                forfeit=policy.forfeit,
                period_ms=policy.period_ms,
                burst=policy.burst,
                users=[user for user, _ in asking],
            )
        except Exception as error:
            for _, answer in asking:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), packed in zip(asking, told.found, strict=True):
            if answer.done():
                continue
            try:
                answer.set_result(found_of(packed))
            except Exception as error:  # of this answer only; a future that stays open would hang its caller
                log.exception("an answer of the store cannot be read", extra={"world": self.world})
                answer.set_exception(error)

    async def touch(self, people: Sequence[Mark], ticket_key: str = "") -> int:
        """A gateway is there, and so are these people. `ticket_key` is the digest of what it signs tickets
        with. Returns how many of them are in the line, at the place that is named."""
        flat = [part for person in people for part in person]
        return (await self.scripts.touch(ticket_key=ticket_key, marks=flat)).count

    async def leave(
        self, user: str, receipt: Receipt | None = None, *, kicked: bool = False
    ) -> Left | NoPlace | Inside:
        """Give up the place that the receipt names, or whichever they have."""
        check_id(user, "userId")
        seq = str(receipt.seq) if receipt is not None else ""
        return await self.scripts.leave(user=user, seq=seq, cause="kicked" if kicked else "left")

    # -- game servers

    async def consume(self, user: str, tid: str, server_id: str, life: str, connection: str) -> Consumed:
        """Let the holder of a ticket in; only this admits."""
        check_id(server_id, "serverId")
        check_id(connection, "connection")
        return await self.scripts.consume(
            user=user, tid=tid, server=server_id, life=_life(life), conn=connection
        )

    async def release(
        self, user: str, server_id: str, life: str, connection: str, how: str
    ) -> Released | NotInside:
        check_id(user, "userId")
        check_id(server_id, "serverId")
        return await self.scripts.release(
            user=user,
            server=server_id,
            life=_life(life),
            conn=connection,
            how=how,
            grace_ms=self.policy.grace_ms,
        )

    async def report(
        self, server_id: str, life: str, *, number: int, capacity: int, users: int, counted: int, url: str
    ) -> Reported | Pending | Stale | Fenced:
        """How many people are on a server, and which consumes that counts."""
        check_id(server_id, "serverId")
        for what, value in (
            ("capacity", capacity),
            ("users", users),
            ("counted", counted),
        ):
            if not 0 <= value <= MAX_COUNT:
                raise InvalidInput(f"{what} is {value}, must be 0 to {MAX_COUNT}")
        if not 0 <= number <= MAX_NUMBER:
            raise InvalidInput(f"number is {number}, must be 0 to {MAX_NUMBER}")
        check_players_url(url)
        return await self.scripts.report(
            server=server_id,
            life=_life(life),
            number=number,
            capacity=capacity,
            reported=users,
            counted=counted,
            url=url,
        )

    # -- operators

    async def drop(self, server_id: str) -> bool:
        """Take a server's present life out of the ledger, its people part by part; False: it is not there."""
        check_id(server_id, "serverId")
        board = await self.read_board()
        lives = {row.life for row in (*board.servers, *board.pending) if row.server_id == server_id}
        for life in lives:
            while (await self.scripts.drop(server=server_id, life=life, count=DROP_BATCH_LIMIT)).remaining:
                pass
        return bool(lives)

    async def govern(
        self,
        *,
        mode: str = "",
        message: str = "",
        limit: str = "",
        rate: str = "",
        opens_at: str = "",
        expected: str = "",
    ) -> Governed | Conflict:
        """Change how the world is run; empty leaves as it is, a dash takes away. `opens_at` is in µs.

        A new time of opening makes a new draw: its seed is secret until then, its digest is on the board.
        """
        seed = secrets.token_hex(16) if opens_at not in ("", "-") else ""
        _check_text("message", message, MAX_MESSAGE)
        answer = await self.scripts.govern(
            wanted=mode,
            message=message,
            limit=limit,
            rate=rate,
            opens_at=opens_at,
            seed=seed,
            expected=expected,
        )
        self.board.forget()
        return answer

    async def look(self, user: str) -> Seen:
        """What they have, for an operator: it is no call of theirs, so whoever is away stays away."""
        return await self.scripts.look(user=check_id(user, "userId"))

    async def read_board(self) -> WorldBoard:
        lines = self.policy.lines
        return WorldBoard.read(await self.scripts.board(lines=lines), lines)


def _check_class_and_party(policy: Policy, class_name: str, party: str, size: int) -> None:
    if class_name not in policy.classes:
        raise InvalidInput(f"there is no class {class_name[:40]!r} here")
    if not 1 <= size <= MAX_PARTY or size > policy.batch:
        raise InvalidInput(f"a party of {size} is not taken, at most {min(MAX_PARTY, policy.batch)} are")
    if size > 1:
        check_name(party, "party")


def _life(text: str) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise InvalidInput("life must be the number that discovery gave", hint="register the server first")
    return text


def _check_text(what: str, text: str, most: int) -> None:
    if len(text) > most or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise InvalidInput(f"{what} has at most {most} characters, none of them control characters")
