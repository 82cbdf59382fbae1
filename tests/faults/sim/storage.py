"""A real Valkey, asked synchronously: each call is one atomic step. It may lose its last writes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from hashlib import sha1
from typing import Any

import hiredis

from roost.store.call import Call, pack
from roost.store.link import LinkOptions
from roost.store.scripts import Library
from tests.faults.sim.loop import NODE, Node

Fault = Callable[[Node | None, str, str], str]
"""What becomes of a call, by who asks, whom and for what: "" (answered), unsent, lost (done, no answer), late
(done after that)."""

RANGE = b"*4\r\n$6\r\nXRANGE\r\n"


class Valkey:
    """One connection, used by everybody."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()
        self._read: dict[bytes, Any] = {}
        """What was read since the last change, by question."""

    def read(self, packed: bytes) -> Any:
        """What changes nothing, and is asked again and again: the followers' polls are half of all calls."""
        if packed not in self._read:
            self._read[packed] = self._asked(packed)
        return self._read[packed]

    def ask(self, packed: bytes) -> Any:
        self._read.clear()
        return self._asked(packed)

    def _asked(self, packed: bytes) -> Any:
        self._socket.sendall(packed)
        while (reply := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(262_144))
        return reply

    def command(self, *parts: Any) -> Any:
        return self.ask(pack(parts))

    def snapshot(self) -> dict[bytes, tuple[bytes, int]]:
        """What a replica has."""
        keys = sorted(self.command("KEYS", "*"))
        return {key: (self.command("DUMP", key), max(0, self.command("PTTL", key))) for key in keys}

    def restore(self, kept: dict[bytes, tuple[bytes, int]]) -> None:
        """The replica is the primary now."""
        self.command("FLUSHALL")
        for key, (dump, ttl) in kept.items():
            assert self.command("RESTORE", key, ttl, dump) == b"OK"

    def close(self) -> None:
        self._socket.close()


class SimTopology:
    """The `Topology` of every process; what befalls a call depends on who asks."""

    shape = "standalone"

    def __init__(self) -> None:
        self._valkey: Valkey
        self._fault: Fault
        self._latency: Callable[[], float]
        self._now_us: Callable[[], int]
        self._asked: Callable[[str], None]
        self._verbs: dict[bytes, str] = {}
        self._times: dict[bytes, int] = {}
        """By script, where among its parameters the time is; 0: it asks for none."""

    def begin(
        self,
        valkey: Valkey,
        fault: Fault,
        latency: Callable[[], float],
        now_us: Callable[[], int],
        asked: Callable[[str], None],
    ) -> None:
        """`asked` is told of each verb before it is done."""
        self._valkey, self._fault, self._latency, self._now_us = valkey, fault, latency, now_us
        self._asked = asked

    def end(self) -> None:
        del self._fault, self._latency, self._now_us, self._asked

    def submit(self, call: Call) -> None:
        loop, node = asyncio.get_running_loop(), NODE.get()
        verdict = self._fault(node, "store", self._verb(call))
        answer_s = self._latency()
        if verdict == "unsent":
            loop.call_later(answer_s, call.fail, _away())
            return
        if verdict == "late":
            loop.call_later(0.2, call.lose, "no answer in time")
            loop.call_later(0.2 + 20 * answer_s, self._ask, call)
            return
        reply = self._ask(call)
        if verdict == "lost":
            loop.call_later(0.2, call.lose, "the connection is lost")
        else:
            loop.call_later(answer_s, _answer, call, reply)

    def _verb(self, call: Call) -> str:
        if call.script is None:
            return ""
        source = call.script[1]
        if source not in self._verbs:
            self._verbs[source] = _name_of(source)
        return self._verbs[source]

    def _ask(self, call: Call) -> Any:
        self._asked(self._verb(call))
        if call.script is not None:
            self._tell_time(call, *call.script)
        elif call.packed.startswith(RANGE):
            return self._valkey.read(call.packed)
        reply = self._valkey.ask(call.packed)
        if isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT") and call.load_script():
            reply = self._valkey.ask(call.packed)
        return reply

    def _tell_time(self, call: Call, load: bytes, source: bytes, parameters: tuple[Any, ...]) -> None:
        """A script that asks for the time gets ours."""
        at = self._times.get(source)
        if at is None:
            at = self._times[source] = _place_of_time(source)
        if at:
            parameters = (*parameters[:at], self._now_us(), *parameters[at + 1 :])
            call.script = (load, source, parameters)
            run = load.replace(b"EVAL", b"EVALSHA")
            call.packed = pack((run, sha1(source).hexdigest(), *parameters))


def _name_of(source: bytes) -> str:
    return next(name for (_, name), one in LIBRARY.scripts.items() if one.contract.source.encode() == source)


def _place_of_time(source: bytes) -> int:
    contract = next(
        one.contract for one in LIBRARY.scripts.values() if one.contract.source.encode() == source
    )
    names = [parameter.name for parameter in (*contract.keys, *contract.args)]
    return names.index("now") + 1 if "now" in names else 0


def _answer(call: Call, reply: Any) -> None:
    if isinstance(reply, hiredis.ReplyError):
        call.refuse(str(reply))
    elif not call.future.done():
        call.future.set_result(reply)


def _away() -> Exception:
    from roost.core.errors import StoreUnavailable

    return StoreUnavailable("the store is away")


TOPOLOGY = SimTopology()
LIBRARY = Library(TOPOLOGY, LinkOptions())  # type: ignore[arg-type]
"""Scripts are read once for all seeds."""


class SimStore:
    """What is used of a `Store`."""

    def __init__(self, keys: Any) -> None:
        self.keys = keys
        self.library = LIBRARY

    def call(
        self,
        *args: Any,
        key: bytes | None = None,
        timeout_s: float = 5,
        idempotent: bool = False,
        bulk: bool = False,
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        TOPOLOGY.submit(Call(future, pack(args), loop.time() + timeout_s, key, idempotent, bulk))
        return future

    def feed(self, scope: Any) -> Any:
        return None
