"""One shard at work: commands in, each executed once and in order, answered when the log has it.

Executing needs no I/O: a machine does it, in memory. A turn executes whatever has arrived and sends it to the
log as one entry (`committing`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from roost.db.orders import OrderRow
from roost.lanes.commands import Method, Outcome, Reason, State, Turn, encode
from roost.lanes.committing import Collected, Committing
from roost.lanes.ids import LANES, LaneIds
from roost.lanes.tally import Tally
from roost.lanes.work import Caller, refused

log = logging.getLogger("roost.lanes")

_NEW, _CHECK = int(Method.NEW), int(Method.CHECK)
_ORDINARY = frozenset({_NEW, int(Method.AMEND)})

UNLOGGED_LIMIT = 32_768
"""Commands that were executed and wait for the next entry, about 30 MB; the last tenth is kept for cancels.
Then the log stands still, and whatever else was executed might never be answered."""
CANCELS_SHARE = 0.1

Events = Sequence[tuple[str, bytes]]


class Machine(Protocol):
    """What executes commands: the same commands in the same order come to the same state and answers."""

    def apply(
        self, turn: Turn, seq: int, method: int, lane: int, order_id: int, command: Any
    ) -> tuple[bytes, Events | None, Sequence[OrderRow] | None]:
        """(answer, events of accounts, rows of orders). A refusal is an answer. It may raise, unchanged."""

    def dirty(self) -> dict[str, bytes]:
        """The parts of the state that changed since the last call, encoded; empty: the part is gone."""

    def all_parts(self) -> dict[str, bytes]:
        """Every part, changed or not."""

    def restore(self, parts: Mapping[str, bytes]) -> None: ...

    def rows_since(self, seq: int) -> Sequence[OrderRow]:
        """Of the orders that this command or a later one changed, as they are now."""

    def forgotten_seq(self) -> int:
        """The last command that may have closed an order which `rows_since` lacks; 0: it lacks none."""

    def order(self, order_id: int) -> OrderRow | None:
        """As it is now, if it is known here."""

    def skip_lost(self) -> None:
        """Commands after the last one were lost; the next one is not the one that came after it."""

    def digest(self) -> bytes:
        """Equal states have equal digests."""


class Shard:
    """A shard under one epoch, from its takeover until it is lost or handed over."""

    def __init__(
        self, machine: Machine, ids: LaneIds, commits: Committing, clock: Callable[[], int], durability: int
    ) -> None:
        self.number = commits.shard
        self.epoch = commits.epoch
        self.machine = machine
        self.ids = ids
        self.commits = commits
        self.seq = commits.seq
        """Of the last command that was executed."""
        self.checked = 0
        """The last point at which the state was put into the log."""
        self._clock = clock
        self._durability = durability
        self._arrivals = [0] * LANES
        self._most = UNLOGGED_LIMIT
        self._most_ordinary = round(UNLOGGED_LIMIT * (1 - CANCELS_SHARE))

    @property
    def tally(self) -> Tally:
        return self.commits.tally

    @property
    def serves(self) -> bool:
        return not self.commits.is_over

    def execute(
        self, method: int, lane: int, command: Any, payload: bytes, arrival: int, caller: Caller, request: int
    ) -> bool:
        """Run one command, `commits.send` at the end of the turn; whether the machine failed at it."""
        collected = self.commits.building or self._begun()
        if collected is None:
            self._refuse("NOT_OWNER", caller, request)
            return False
        commands = collected.commands
        if len(commands) >= self._most_ordinary and (method in _ORDINARY or len(commands) >= self._most):
            self._refuse("QUEUE_FULL", caller, request, "too many commands wait for the log")
            return False
        turn, order_id, failed = collected.turn, 0, False
        if method == _NEW:
            made = self.ids.next(lane, turn.at_ms)
            if not isinstance(made, int):
                self._refuse("CLOCK_BEHIND", caller, request)
                return False
            order_id = made
        arrivals = self._arrivals
        if arrival <= arrivals[lane]:
            self._overtaken(lane)
        arrivals[lane] = arrival
        seq = self.seq + 1
        try:
            reply, events, rows = self.machine.apply(turn, seq, method, lane, order_id, command)
        except Exception:
            reply, events, rows, failed = self._failed(turn, seq, method, lane, order_id), None, None, True
        self.seq = seq
        commands.append((method, lane, order_id, payload))
        collected.answers.append((caller, request, reply))
        if events:
            collected.events += events
        if rows:
            collected.rows += rows
        return failed

    def check(self) -> None:
        """Put the digest of the state into the entry of this turn: whoever replays it compares."""
        collected = self.commits.building or self._begun()
        if collected is not None:
            collected.commands.append((_CHECK, 0, 0, self.machine.digest()))
            self.seq = self.checked = self.seq + 1

    def _begun(self) -> Collected | None:
        """The entry of a new turn; None: nothing can be appended any more."""
        if self.commits.is_over:
            return None
        turn = Turn(self.number, self.epoch, self._clock(), self._durability)
        collected = self.commits.building = Collected(turn)
        return collected

    def _refuse(self, reason: str, caller: Caller, request: int, said: str = "") -> None:
        self.tally.refused[reason] += 1
        caller.reply_later(request, refused(reason, said=said))

    def _overtaken(self, lane: int) -> None:
        self.tally.violations += 1
        log.error("a command overtook another", extra={"shard": self.number, "lane": lane})

    def _failed(self, turn: Turn, seq: int, method: int, lane: int, order_id: int) -> bytes:
        self.tally.failed += 1
        log.exception("a command failed", extra={"shard": self.number, "seq": seq, "method": method})
        return failure(turn, seq, lane, order_id)


def failure(turn: Turn, seq: int, lane: int, order_id: int) -> bytes:
    """The answer to a command at which the machine failed, live and in a replay."""
    said = (turn.shard, lane, turn.epoch, seq, turn.durability, turn.at_ms)
    return encode(Outcome(order_id, State.REFUSED, 0, 0, Reason.FAILED, *said))
