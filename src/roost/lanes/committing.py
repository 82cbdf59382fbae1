"""The group commit of one shard: one entry under way to the log, the next one building meanwhile.

What a command caused leaves the shard only when its entry stands in the log. An append whose answer is lost
is repeated under the same id; entries that a primary has lost are appended again from memory; where another
owner has written, or too much is lost, the shard is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from roost.core.errors import StoreError, StoreRefused
from roost.db.orders import OrderRow
from roost.lanes.appending import APPENDED, Appended, Behind
from roost.lanes.commands import Turn, encode
from roost.lanes.log import Log, Tail
from roost.lanes.tally import Tally
from roost.lanes.work import Caller, refused
from roost.wire.answer import refusal
from roost.wire.codes import Code

log = logging.getLogger("roost.lanes")

RETRY_S = 0.05

_UNKNOWN = refusal(Code.DEADLINE, "its shard changed hands: it may or may not be carried out")

Settle = Callable[[], asyncio.Future[None]]


class Outlet(Protocol):
    """Where what happened goes once it is in the log."""

    def happened(self, shard: int, seq: int, events: list[tuple[str, bytes]], rows: list[OrderRow]) -> None:
        """Everything up to `seq`; called in order."""


class Collected:
    """The commands of one turn with what they caused: an entry that is not sent yet."""

    __slots__ = ("answers", "commands", "events", "readers", "rows", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.commands: list[tuple[int, int, int, bytes]] = []
        self.answers: list[tuple[Caller, int, bytes]] = []
        """Whom to tell what, in the order of the commands."""
        self.events: list[tuple[str, bytes]] = []
        self.rows: list[OrderRow] = []
        self.readers: list[Callable[[], None]] = []
        """Whoever reads what these commands left: told after them."""


class Committing:
    """`on_lost` is called once, when nothing more can be appended under this epoch."""

    def __init__(
        self,
        shard: int,
        epoch: int,
        entries: Log,
        outlet: Outlet,
        settle: Settle | None,
        on_lost: Callable[[str], None],
    ) -> None:
        self.shard = shard
        self.epoch = epoch
        self.log = entries
        self.seq = self.first_seq = entries.tail.last_seq
        """Of the last command that stands in the log, and of the takeover."""
        self.tally = Tally()
        """That of the shard's server, once it serves the shard."""
        self.is_over = False
        self.unreleased: list[Collected] = []
        """When it is over and the memory still counts: what it holds that was never told of."""
        self.keeps_memory = False
        self.untold: list[tuple[str, bytes]] = []
        """Events of an earlier epoch, told when the state that they led to is written."""
        self._outlet = outlet
        self._settle = settle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self.building: Collected | None = None
        """What the present turn adds to; whoever executes its first command begins it."""
        self._under_way: Collected | None = None
        self._healing: asyncio.Task[None] | None = None
        self._idle: list[asyncio.Future[None]] = []

    @property
    def unanswered(self) -> int:
        """Commands that were executed and wait for the log."""
        return sum(len(each.answers) for each in (self._under_way, self.building) if each is not None)

    @property
    def is_idle(self) -> bool:
        return self.building is None and self._under_way is None

    def read(self, reader: Callable[[], None]) -> None:
        """Call `reader` when everything that was executed so far is in the log."""
        last = self.building or self._under_way
        if last is None:
            reader()
        else:
            last.readers.append(reader)

    def send(self) -> None:
        """Append what was collected, unless an entry is under way already: then right after it."""
        if self._under_way is not None or self.building is None or self.is_over:
            return
        self._under_way, self.building = self.building, None
        if not self._under_way.commands:  # all of them were refused before they were numbered
            self._release()
            return
        commands, turn = self._under_way.commands, self._under_way.turn
        packed = encode((turn.at_ms, turn.durability, commands))  # the fields of a `Batch`
        self.log.append(self.epoch, self.seq + 1, len(commands), packed, self._answered)

    async def quiesce(self) -> None:
        """Returns when everything that was executed is in the log, or this is over."""
        while not self.is_over and not self.is_idle:
            waiting: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(waiting)
            self.send()
            await waiting

    def end(self, why: str, *, keeps_memory: bool = False) -> None:
        """Append nothing more. Nobody knows of what is under way; what was never sent did not happen.

        `keeps_memory`: unless the state in which it happened is kept all the same.
        """
        if self.is_over:
            return
        self.is_over = True
        self.keeps_memory = keeps_memory
        if self._healing is not None:
            self._healing.cancel()
        under_way, building = self._under_way, self.building
        self._under_way = self.building = None
        self.unreleased = [collected for collected in (under_way, building) if collected and keeps_memory]
        refused_by = self.tally.refused
        for caller, request, _ in under_way.answers if under_way else ():
            refused_by["OUTCOME_UNKNOWN"] += 1
            caller.reply_later(request, _UNKNOWN)
        for caller, request, _ in building.answers if building else ():
            refused_by["OUTCOME_UNKNOWN" if keeps_memory else "NOT_OWNER"] += 1
            caller.reply_later(request, _UNKNOWN if keeps_memory else refused("NOT_OWNER"))
        for reader in (*(under_way.readers if under_way else ()), *(building.readers if building else ())):
            reader()
        self._wake()
        self._on_lost(why)

    def _answered(self, answer: Appended | Behind | StoreError) -> None:
        if self.is_over:
            return
        if answer is APPENDED:
            if self._settle is None:
                self._release()
            else:
                self._settle().add_done_callback(self._settled)
        elif isinstance(answer, StoreRefused):
            self._refused(answer)
        elif isinstance(answer, Behind):
            self._heal(Tail.parse(answer.tail), f"the log ends with {answer.tail or 'nothing'}")
        elif isinstance(answer, StoreError):
            self._heal(None, answer.message)

    def _settled(self, settled: asyncio.Future[None]) -> None:
        if self.is_over or settled.cancelled():
            return
        error = settled.exception()
        if error is None:
            self._release()
        else:
            self._heal(None, str(error))

    def _heal(self, kept: Tail | None, why: str) -> None:
        log.warning("log entry is sent again", extra={"shard": self.shard, "reason": why})
        self._healing = self._loop.create_task(self._healed(kept))

    async def _healed(self, kept: Tail | None) -> None:
        """Until the log has everything again, the lease is over, or another owner has written."""
        while not self.is_over:
            try:
                kept = await self._append_again(kept)
                if kept is None and self._settle is not None:
                    await self._settle()
            except StoreRefused as error:
                self._refused(error)
            except StoreError:
                await asyncio.sleep(RETRY_S)
            else:
                if kept is None:
                    self._release()
                    return

    async def _append_again(self, kept: Tail | None) -> Tail | None:
        """None: the log has everything; else where it ends instead."""
        if kept is not None and kept.epoch > self.epoch:
            self.end("another owner has written")
            return kept
        answer = await self.log.heal(kept)
        if not isinstance(answer, Behind):
            self.tally.healed += kept is not None
            return None
        found = Tail.parse(answer.tail)
        if found == kept:
            lost = f"the store has lost entries after {answer.tail or 'the beginning'}, unknown here by now"
            self.end(lost, keeps_memory=True)
        return found

    def _refused(self, error: StoreRefused) -> None:
        self.end(f"the store refuses its log: {error.message}", keeps_memory=True)

    def _release(self) -> None:
        """The entry under way is in the log: tell everybody."""
        done, self._under_way = self._under_way, None
        assert done is not None
        self.seq += len(done.commands)
        self.tally.answered += len(done.answers)
        for caller, request, reply in done.answers:
            caller.deliver(request, reply)
        self._outlet.happened(self.shard, self.seq, done.events, done.rows)
        for reader in done.readers:
            reader()
        if self.building is not None:
            self.log.afterwards(self.send)
        else:
            self._wake()

    def _wake(self) -> None:
        idle, self._idle = self._idle, []
        for waiting in idle:
            if not waiting.done():
                waiting.set_result(None)
