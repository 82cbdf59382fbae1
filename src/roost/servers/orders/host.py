"""What arrives at an order server: commands go to their lanes, here or at another server.

A command is read, placed and executed without a task, a future or a queue: only where something of its lane
waits already, or a turn has done enough, does it wait too. Its answer is written when the log has it.
Whatever is not taken is answered at once, with the reason and when to come again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any, cast

import msgspec

from roost.core.errors import InvalidId, InvalidInput
from roost.core.tracing import Tracer
from roost.lanes.commands import (
    DECODERS,
    SERVICE,
    Amend,
    Cancel,
    Halt,
    Method,
    MoveIn,
    MoveOut,
    New,
    encode,
)
from roost.lanes.dispatch import Dispatch
from roost.lanes.executor import LaneExecutor
from roost.lanes.outcomes import ACCEPTED, Rejected
from roost.lanes.placement import Place
from roost.lanes.selector import Spot
from roost.lanes.shard import Shard
from roost.lanes.work import Route, Told, Work
from roost.lanes.worker import Worker
from roost.servers.orders.engine import Engine
from roost.servers.orders.forwarding import Forwarding
from roost.servers.orders.intake import Intake
from roost.servers.orders.looking_up import LookingUp
from roost.servers.orders.routes import Routes
from roost.servers.orders.sessions import KEPT_NUMBERS, Sessions
from roost.servers.orders.spans import TracedOrders
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.connection import Call, Connection, call_of
from roost.wire.frame import Frame
from roost.wire.server import WireServer

log = logging.getLogger("roost.orders")

MAX_COMMAND_BYTES = 1024
"""What a command of a trader may take: fields that nobody reads would fill the log."""

_CANCEL = int(Method.CANCEL)
_ORDINARY = frozenset({int(Method.NEW), int(Method.AMEND)})
"""Whatever else comes finds room where these are refused."""
DIRECT_COMMANDS = 256
"""Executed in one turn of the loop as they come, some milliseconds; those above it wait in their lanes."""

NO_METHOD = refusal(Code.BAD_REQUEST, "orders have no such method", reason="BAD_REQUEST")

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)

Ordered = New | Cancel | Amend


class Failing:
    """A symbol at whose commands the machine fails again and again is halted; its lane goes on."""

    def __init__(self, most: int, halt: Callable[[str, str], None]) -> None:
        self.rows: Counter[str] = Counter()
        """Symbol → failures in a row."""
        self._most = most
        self._halt = halt

    def judge(self, shard: Shard, symbol: str, failed: bool) -> None:
        if not failed:
            self.rows.pop(symbol, None)
            return
        self.rows[symbol] += 1
        if self.rows[symbol] == self._most:
            del self.rows[symbol]  # as many more try again, if the halt itself is refused
            log.error("symbol halted: its commands fail", extra={"symbol": symbol, "shard": shard.number})
            self._halt(symbol, f"{self._most} commands failed in a row")


class Host:
    """The shards that this server owns, and the way of commands to them."""

    def __init__(
        self,
        executor: Callable[[Callable[[str, Any], None], Callable[[], None]], LaneExecutor],
        dispatch: Dispatch,
        sessions: Sessions,
        forwarding: Forwarding,
        clock_ms: Callable[[], int],
        failures_to_halt: int = 0,
        traded: frozenset[str] = frozenset(),
        direct_commands: int = DIRECT_COMMANDS,
    ) -> None:
        self.routes = Routes(dispatch, traded)
        self.shards = self.routes.shards
        """Those that are owned here, by number."""
        self.intake = Intake(self.routes.tallies)
        self.takes_new: Callable[[], bool] = lambda: True
        self.dispatch = dispatch
        self.sessions = sessions
        self.executor = executor(self._handle, self._turn_ended)
        self._forwarding = forwarding
        self._clock_ms = clock_ms
        self._failing = Failing(failures_to_halt, self._halt)
        self._touched: set[Shard] = set()
        self._direct_commands = direct_commands
        self._arrival = self._direct_left = 0
        self._turn_is_due = False
        self._numbers = sessions.numbers
        self._known = self.routes.known
        self._looking = LookingUp(dispatch, self.intake, clock_ms, self._with_symbol)

    def serve(self, server: WireServer, tracer: Tracer | None = None) -> None:
        """`tracer` None: what takes commands is the same as if there were no traces."""
        take = self.take if tracer is None else TracedOrders(tracer, self.take, self.routes).take
        server.register_taker(SERVICE, (Method.NEW, Method.CANCEL, Method.AMEND), take)
        server.unknown[SERVICE] = NO_METHOD

    @property
    def under_way(self) -> int:
        """Commands that wait for their turn, for the log, or for somebody who knows their order."""
        waits = (self.queued(number) + one.commits.unanswered for number, one in self.shards.items())
        return sum(waits, len(self._looking))

    def take(self, peer: Connection, frames: list[Frame]) -> None:
        """Execute or queue the commands that came together, in their order; `peer` is told of each."""
        known = self._known
        self.intake.received += len(frames)
        refusal: Answer | None
        for frame in frames:
            payload = frame.payload
            if len(payload) > MAX_COMMAND_BYTES:
                refusal = self.intake.bad(f"a command has at most {MAX_COMMAND_BYTES} bytes")
            else:
                try:
                    command: Ordered = DECODERS[frame.method](payload)
                except _UNREADABLE as error:
                    refusal = self.intake.bad(f"it cannot be read: {error}")
                else:
                    route = known.get(command.symbol)
                    if route is None:
                        refusal = self._unrouted(call_of(frame, peer), command)
                    else:
                        refusal = self._place(peer, frame, command, payload, route)
            if refusal is not None:
                peer.reply_later(frame.request, refusal)

    def command(
        self,
        method: Method,
        command: Halt | MoveOut | MoveIn,
        reply: Callable[[Answer], None],
        spot: Spot | None = None,
    ) -> Answer | None:
        """A command of an operator or of another shard, in the symbol's lane like any other.

        `spot`: where, though the symbol is on the move.
        """
        self.intake.received += 1
        place = spot or self.dispatch.place(command.symbol)
        if not isinstance(place, Place | Spot):
            return self.intake.refused("MOVING")
        shard = self.shards.get(place.shard)
        if shard is None:
            return self.intake.refused("NOT_OWNER")
        route = Route(command.symbol, shard, place.lane)
        self._arrival += 1
        work = Work(route, int(method), command, encode(command), self._arrival, Told(reply), 0)
        return self._queue(self._worker_of(route), work, 0)

    def queued(self, shard: int) -> int:
        """Commands of a shard that wait for their turn."""
        return self.executor.depth(shard)

    def shard_of(self, order_id: int) -> int | None:
        """The shard that may know this order."""
        return self.dispatch.shard_of(order_id, self._clock_ms())

    def _place(
        self, peer: Connection, asked: Frame | Call, command: Ordered, payload: bytes, route: Route
    ) -> Answer | None:
        symbol = route.symbol
        numbers = self._numbers.get(command.account)
        if (
            numbers is None
            or len(numbers) >= KEPT_NUMBERS
            or numbers.setdefault(command.client_seq, symbol) != symbol
        ):
            misused = self._misused(command, symbol)
            if misused is not None:
                return misused
        method, request = asked.method, asked.request
        if method != _CANCEL and not self.takes_new():
            return self.intake.refused_by(route.shard, "OUTBOX_FULL")
        route.commands += 1
        self._arrival = arrival = self._arrival + 1
        if not self._turn_is_due:
            self._begin_turn()
        worker = route.worker or self._worker_of(route)
        if worker.active or self._direct_left <= 0:
            work = Work(route, method, command, payload, arrival, peer, request)
            return self._queue(worker, work, asked.budget_ms)
        self._direct_left -= 1
        worker.passed += 1
        shard = route.shard
        self._touched.add(shard)
        failed = shard.execute(method, route.lane, command, payload, arrival, peer, request)
        if failed or self._failing.rows:
            self._failing.judge(shard, symbol, failed)
        return None

    def _misused(self, command: Ordered, symbol: str) -> Answer | None:
        """The refusal of a number that the account used for another symbol; None: it is all right."""
        try:
            numbers = self.sessions.numbers_of(command.account, command.acked)
        except InvalidInput as error:
            return self.intake.bad(error.message)
        if numbers.setdefault(command.client_seq, symbol) != symbol:
            return self.intake.refused("DUPLICATE")
        return None

    def _queue(self, worker: Worker, work: Work, budget_ms: int) -> Answer | None:
        now = monotonic()
        deadline = now + budget_ms / 1000 if budget_ms else inf
        symbol, is_urgent = work.route.symbol, work.method not in _ORDINARY
        taken = self.executor.submit_to(worker, symbol, work, now, is_urgent, deadline)
        return None if taken is ACCEPTED else self.intake.rejected(cast(Rejected, taken), work.route.shard)

    def _worker_of(self, route: Route) -> Worker:
        worker = route.worker = self.executor.worker_of(route.place)
        assert worker is not None  # a placement names no other shards and lanes
        return worker

    # -- turns

    def _begin_turn(self) -> None:
        self._turn_is_due = True
        self._direct_left = self._direct_commands if self.executor.is_plain else 0
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_is_due = False
        self._turn_ended()

    def _handle(self, symbol: str, work: Work) -> None:
        """One that waited."""
        shard, lane = work.route.shard, work.route.lane
        self._touched.add(shard)
        failed = shard.execute(
            work.method, lane, work.command, work.payload, work.arrival, work.caller, work.request
        )
        if failed or self._failing.rows:
            self._failing.judge(shard, symbol, failed)

    def _turn_ended(self) -> None:
        touched = self._touched
        for shard in touched:
            shard.commits.send()
        touched.clear()

    def _halt(self, symbol: str, why: str) -> None:
        self.command(Method.HALT, Halt(symbol, why), lambda answer: None)

    # -- the way

    def _unrouted(self, call: Call, command: Ordered) -> Answer | None:
        """The first command of a symbol, one that is spelled in another way, or one without a symbol."""
        if not command.symbol:
            return self._by_id(call, command)
        return self._with_symbol(call, command, command.symbol)

    def _with_symbol(self, call: Call, command: Ordered, said: str) -> Answer | None:
        """`said`: the symbol as the command says it, or that of the order it names."""
        try:
            symbol = self.routes.spelled(said, isinstance(command, Cancel))
        except (InvalidInput, InvalidId) as error:
            return self.intake.bad(error.message)
        if symbol == command.symbol:
            return self._find_route(call, command, call.payload)
        spelled = msgspec.structs.replace(command, symbol=symbol)
        return self._find_route(call, spelled, encode(spelled))

    def _find_route(self, call: Call, command: Ordered, payload: bytes) -> Answer | None:
        route = self.routes.find(command.symbol)
        if route is None:
            return self.intake.refused("MOVING")
        if isinstance(route, int):
            return self._misused(command, command.symbol) or self._elsewhere(call, payload, route)
        return self._place(call.peer, call, command, payload, route)

    def _elsewhere(self, call: Call, payload: bytes, shard: int) -> Answer | None:
        return self.intake.elsewhere(self._forwarding.take(call, payload, shard))

    # -- what takes longer

    def _by_id(self, call: Call, command: Ordered) -> Answer | None:
        """A cancel or amend that names no symbol."""
        if isinstance(command, New):
            return self.intake.bad("a new order names its symbol")
        number = self.shard_of(command.order_id)
        if number is not None:
            shard = self.shards.get(number)
            if shard is None:
                return self._elsewhere(call, call.payload, number)
            symbol = cast(Engine, shard.machine).symbol_of(command.order_id)
            if symbol:
                return self._with_symbol(call, command, symbol)
        self._looking.look_up(call, command)
        return None
