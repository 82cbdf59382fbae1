"""The load of bench_orders.py, a process of its own: new orders that cross now and then, and cancels.

orders_load.py ours|naive PORT SECRET     reads lines, answers each with a line of JSON
    closed <in flight> <seconds> <load>   as many commands under way all the time
    open <per second> <seconds> <load>    on a schedule, whatever comes back

Each command under way belongs to an account of its own, which numbers its commands. `load` is how symbols are
drawn: equal, zipf or single.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from statistics import quantiles
from typing import cast

import msgspec
import uvloop

from roost.lanes.commands import SERVICE, Method
from roost.wire.frame import AFTER_LENGTH, HEADER, REPLY, VERSION
from roost.wire.handshake import ClientHandshake, Identity
from roost.wire.limits import DEFAULTS
from roost.wire.machine import PING_BYTES, Machine

SYMBOLS = 1000
DRAWN = 1 << 16
CANCELS = 0.3
"""Of the commands of an account that has an order in a book."""
BUDGET_MS = 30_000
PING_S = DEFAULTS.ping_s
MAX_FRAME_BYTES = DEFAULTS.max_frame_bytes
MAX_IN_FLIGHT = DEFAULTS.max_in_flight
NEW, CANCEL = int(Method.NEW), int(Method.CANCEL)
REFUSED, OPEN = 0, 1

Answered = Callable[["Slot", int, int], None]
"""The order's id (0: it was not taken at all) and its state."""


class Slot:
    """An account with one command under way."""

    __slots__ = ("account", "due", "number", "open")

    def __init__(self, account: str) -> None:
        self.account = account
        self.number = 0
        self.open: list[tuple[int, str]] = []
        """Orders that went into a book, with their symbols."""
        self.due = 0.0


class Said(msgspec.Struct, array_like=True, gc=False):
    """As much of an `Outcome` as is looked at."""

    order_id: int
    state: int


class SaidInJson(msgspec.Struct, gc=False):
    id: int
    order: int
    state: int


class NewInJson(msgspec.Struct, gc=False):
    id: int
    op: str
    account: str
    seq: int
    symbol: str
    side: int
    price: int
    quantity: int


class CancelInJson(msgspec.Struct, gc=False):
    id: int
    op: str
    account: str
    seq: int
    symbol: str
    order: int


UNTAKEN = Said(0, REFUSED)


class Ours(asyncio.Protocol):
    """Frames written and read by hand: whoever measures must cost less than what is measured."""

    answered: Answered

    def __init__(self, port: int, secret: bytes) -> None:
        self._port = port
        me = Identity(secret, "trader", "", MAX_FRAME_BYTES, 0, frozenset({"orders"}))
        self._machine = Machine(ClientHandshake(me), serves=False, max_frame_bytes=MAX_FRAME_BYTES)
        self._rest = b""
        self._waiting: dict[int, Slot] = {}
        self._held: deque[tuple[Slot, int, bytes]] = deque()
        """More than the server allows one connection."""
        self._last = 0
        self._unsent: list[bytes] = []
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Said).decode

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.create_future()
        self._transport, _ = await self._loop.create_connection(lambda: self, "127.0.0.1", self._port)
        await self._opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._machine.begin()
        self._transport.write(self._machine.output())

    def new(self, slot: Slot, symbol: str, side: int, price: int, quantity: int) -> None:
        number = slot.number
        self._send(slot, NEW, self._encode((slot.account, number, number, symbol, side, price, quantity)))

    def cancel(self, slot: Slot, order_id: int, symbol: str) -> None:
        number = slot.number
        self._send(slot, CANCEL, self._encode((slot.account, number, number, order_id, symbol)))

    def _send(self, slot: Slot, method: int, payload: bytes) -> None:
        if len(self._waiting) >= MAX_IN_FLIGHT:
            self._held.append((slot, method, payload))
            return
        self._last = number = self._last + 1
        self._waiting[number] = slot
        if not self._unsent:
            self._loop.call_soon(self._flush)
        size = AFTER_LENGTH + len(payload)
        head = HEADER.pack(size, VERSION, 0, SERVICE, method, 0, BUDGET_MS, number, 0)
        self._unsent += (head, payload)

    def _flush(self) -> None:
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        if not self._machine.is_open:
            self._shake_hands(data)
            return
        data = self._rest + data
        at, size, unpack, decode = 0, len(data), HEADER.unpack_from, self._decode
        while size - at >= HEADER.size:
            length, _, flags, service, _, code, _, number, _ = unpack(data, at)
            end = at + 4 + length
            if end > size:
                break
            if service == SERVICE and flags & REPLY:
                slot = self._waiting.pop(number)
                said = UNTAKEN if code else decode(data[at + HEADER.size : end])
                self.answered(slot, said.order_id, said.state)
            at = end
        self._rest = data[at:]
        while self._held and len(self._waiting) < MAX_IN_FLIGHT:
            self._send(*self._held.popleft())

    def _shake_hands(self, data: bytes) -> None:
        self._machine.receive(data)
        self._transport.write(self._machine.output())
        if self._machine.is_open:
            self._opened.set_result(None)
            self._ping()

    def _ping(self) -> None:
        """Else a server that is not asked for a while takes this for gone."""
        self._transport.write(PING_BYTES)
        self._loop.call_later(PING_S, self._ping)

    def connection_lost(self, error: Exception | None) -> None:
        sys.exit(f"no answer: {error or 'the server hung up'}")


class Naive(asyncio.Protocol):
    """JSON, a line for each command and answer."""

    answered: Answered

    def __init__(self, port: int) -> None:
        self._port = port
        self._rest = b""
        self._waiting: dict[int, Slot] = {}
        self._last = 0
        self._unsent: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(SaidInJson).decode

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport, _ = await self._loop.create_connection(lambda: self, "127.0.0.1", self._port)

    def new(self, slot: Slot, symbol: str, side: int, price: int, quantity: int) -> None:
        number = self._next(slot)
        asked = NewInJson(number, "new", slot.account, slot.number, symbol, side, price, quantity)
        self._unsent += (self._encode(asked), b"\n")

    def cancel(self, slot: Slot, order_id: int, symbol: str) -> None:
        number = self._next(slot)
        asked = CancelInJson(number, "cancel", slot.account, slot.number, symbol, order_id)
        self._unsent += (self._encode(asked), b"\n")

    def _next(self, slot: Slot) -> int:
        self._last = number = self._last + 1
        self._waiting[number] = slot
        if not self._unsent:
            self._loop.call_soon(self._flush)
        return number

    def _flush(self) -> None:
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        decode = self._decode
        for line in lines:
            said = decode(line)
            self.answered(self._waiting.pop(said.id), said.order, said.state)

    def connection_lost(self, error: Exception | None) -> None:
        sys.exit(f"no answer: {error or 'the server hung up'}")


class Trading:
    """What the accounts do, and what came of it."""

    def __init__(self, server: Ours | Naive, load: str, run: str) -> None:
        server.answered = self._answered
        self._server = server
        self._run = run
        self._symbols = drawn(load)
        self._rolls = rolls()
        self._at = 0
        self._slots = 0
        self.free: list[Slot] = []
        self.under_way = 0
        self.accepted = 0
        self.refused = 0
        self.not_taken = 0
        self.on_answer: Callable[[Slot], None] = self.free.append

    def slot(self) -> Slot:
        if self.free:
            return self.free.pop()
        self._slots += 1
        return Slot(f"{self._run}-{self._slots}")

    def act(self, slot: Slot) -> None:
        """The account's next command."""
        self._at = at = (self._at + 1) % DRAWN
        cancels, side, price, quantity = self._rolls[at]
        slot.number += 1
        self.under_way += 1
        if cancels and slot.open:
            order_id, symbol = slot.open.pop()
            self._server.cancel(slot, order_id, symbol)
        else:
            slot.open.append((0, self._symbols[at]))
            self._server.new(slot, self._symbols[at], side, price, quantity)

    def _answered(self, slot: Slot, order_id: int, state: int) -> None:
        self.under_way -= 1
        if state != REFUSED:
            self.accepted += 1
        elif order_id:
            self.refused += 1
        else:
            self.not_taken += 1
        if slot.open and not slot.open[-1][0]:
            _, symbol = slot.open.pop()
            if state == OPEN:
                slot.open.append((order_id, symbol))
        self.on_answer(slot)


def drawn(load: str) -> list[str]:
    """Symbols in the order in which commands name them."""
    names = [f"S{number:04}" for number in range(SYMBOLS)]
    if load == "single":
        return names[:1] * DRAWN
    weights = [1 / (rank + 1) if load == "zipf" else 1.0 for rank in range(SYMBOLS)]
    return random.Random(5).choices(names, weights, k=DRAWN)


def rolls() -> list[tuple[bool, int, int, int]]:
    """(cancels, side, price, quantity): buyers bid 98 to 102, sellers ask so too: a third of them meet."""
    chance = random.Random(7)
    found = []
    for _ in range(DRAWN):
        side, price = chance.choice((1, 2)), chance.randint(98, 102)
        found.append((chance.random() < CANCELS, side, price, chance.randint(1, 10)))
    return found


async def closed(trading: Trading, in_flight: int, seconds: float) -> dict[str, float]:
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    started = time.perf_counter()
    until = started + seconds

    def on_answer(slot: Slot) -> None:
        if time.perf_counter() < until:
            trading.act(slot)
        elif not trading.under_way and not ended.done():
            ended.set_result(None)

    trading.on_answer = on_answer
    for _ in range(in_flight):
        trading.act(trading.slot())
    await ended
    return found(trading, time.perf_counter() - started)


async def scheduled(trading: Trading, per_second: float, seconds: float) -> dict[str, float]:
    """The time of a command counts from when it was due, not from when it got its turn."""
    took: list[float] = []

    def on_answer(slot: Slot) -> None:
        took.append((time.perf_counter() - slot.due) * 1000)
        trading.free.append(slot)

    trading.on_answer = on_answer
    started, total, sent = time.perf_counter(), int(per_second * seconds), 0
    while sent < total:
        due = min(total, int((time.perf_counter() - started) * per_second) + 1)
        for number in range(sent, due):
            slot = trading.slot()
            slot.due = started + number / per_second
            trading.act(slot)
        sent = due
        await asyncio.sleep(0.001)
    while trading.under_way:
        await asyncio.sleep(0.01)
    cuts = quantiles(took, n=1000)
    times = {"p50": cuts[499], "p99": cuts[989], "p999": cuts[998]}
    return found(trading, time.perf_counter() - started) | times


def found(trading: Trading, seconds: float) -> dict[str, float]:
    return {
        "accepted": trading.accepted,
        "refused": trading.refused,
        "not_taken": trading.not_taken,
        "seconds": seconds,
    }


async def drive(kind: str, port: int, secret: str) -> None:
    server = Ours(port, secret.encode()) if kind == "ours" else Naive(port)
    await server.connect()
    print("ready", flush=True)
    loop, runs = asyncio.get_running_loop(), 0
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        how, number, seconds, load = line.split()
        runs += 1
        trading = Trading(server, load, f"{time.time_ns():x}-{runs}")
        run = closed(trading, int(number), float(seconds)) if how == "closed" else None
        result = await (run or scheduled(trading, float(number), float(seconds)))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    uvloop.run(drive(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
