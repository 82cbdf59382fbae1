"""Doorbells: a shard channel rings when a scope's feed has grown. A bell may be missed, never trusted alone.

Every node with a bell has one subscriber connection. Shard channels are used on every topology: they
work on a standalone server too, and on a cluster they stay with the slot of their scope instead of
being sent to every node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

import hiredis

from roost.core.backoff import Backoff
from roost.core.errors import StoreError
from roost.core.loops import Loops
from roost.store.call import pack
from roost.store.connection import dial, reason_of
from roost.store.topology import Topology
from roost.store.url import Address

log = logging.getLogger("roost.store.pubsub")

PING_INTERVAL_S = 5.0
Ring = Callable[[bytes], None]
"""Gets the message; an empty one after a (re)subscription, when rings may have been missed."""


class Doorbells:
    """Channel → who is to be rung. Channels follow their slot from node to node."""

    def __init__(self, topology: Topology, connect_timeout_s: float, loops: Loops | None = None) -> None:
        self._topology = topology
        self._loops = loops or Loops()
        self._backoff = Backoff(0.05, 1.0)
        self._connect_timeout_s = connect_timeout_s
        self._rings: dict[bytes, Ring] = {}
        self._lines: dict[Address, _Line] = {}
        self._changed = asyncio.Event()
        self._troubled = False
        self._keeper: asyncio.Task[None] | None = None

    def listen(self, channel: bytes, ring: Ring) -> Callable[[], None]:
        """Have `ring` called for every message on `channel`; returns the way to stop it."""
        self._rings[channel] = ring
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._loops.keep_running("doorbells", self._keep_subscribed))
        self._changed.set()

        def stop() -> None:
            if self._rings.get(channel) is ring:
                del self._rings[channel]
                self._changed.set()

        return stop

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        for line in self._lines.values():
            line.hang_up()

    async def _keep_subscribed(self) -> None:
        self._changed.clear()
        settled = await self._place()
        for line in self._lines.values():
            line.ping()
        try:
            async with asyncio.timeout(PING_INTERVAL_S if settled else self._backoff.next()):
                await self._changed.wait()
        except TimeoutError:
            if settled:
                self._backoff.reset()
        if self._troubled:
            # A node that takes the connection and refuses the channel must not be stormed.
            self._troubled = False
            await asyncio.sleep(self._backoff.next())

    async def _place(self) -> bool:
        """Put every channel on the line of its node; False if something is still to be done."""
        wanted: dict[Address, set[bytes]] = {}
        settled = True
        for channel in self._rings:
            address = self._topology.address_for(channel)
            if address is None:
                settled = False
            else:
                wanted.setdefault(address, set()).add(channel)
        for address in list(self._lines):
            if address not in wanted or self._lines[address].is_dead():
                self._lines.pop(address).hang_up()
        for address, channels in wanted.items():
            settled &= await self._subscribe(address, channels)
        return settled

    async def _subscribe(self, address: Address, channels: set[bytes]) -> bool:
        line = self._lines.get(address)
        if line is None:
            try:
                line = await _open_line(address, self)
            except (StoreError, OSError) as error:
                log.debug("no doorbell", extra={"node": str(address), "reason": reason_of(error)})
                return False
            self._lines[address] = line
        line.have(channels)
        return True

    async def open_transport(self, address: Address) -> asyncio.Transport:
        connection = await dial(address, self._topology.access, self._connect_timeout_s)
        return connection.hand_over()

    def ring(self, channel: bytes, message: bytes) -> None:
        ring = self._rings.get(channel)
        if ring is not None:
            ring(message)

    def rearrange(self) -> None:
        """A line was lost or a channel moved away: subscribe the channels again."""
        self._topology.doubt()
        self._troubled = True
        self._changed.set()


async def _open_line(address: Address, bells: Doorbells) -> _Line:
    transport = await bells.open_transport(address)
    line = _Line(bells, transport)
    transport.set_protocol(line)
    return line


class _Line(asyncio.Protocol):
    """The subscriber connection of one node."""

    def __init__(self, bells: Doorbells, transport: asyncio.Transport) -> None:
        self._bells = bells
        self._transport = transport
        self._reader = hiredis.Reader()
        self._channels: set[bytes] = set()
        self._pings_owed = 0
        self._pinged_at = 0.0

    def have(self, channels: set[bytes]) -> None:
        self._send("SSUBSCRIBE", channels - self._channels)
        self._send("SUNSUBSCRIBE", self._channels - channels)
        self._channels = set(channels)

    def ping(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._pinged_at >= PING_INTERVAL_S:
            self._pinged_at = now
            self._pings_owed += 1
            self._transport.write(pack(("PING",)))

    def is_dead(self) -> bool:
        return self._transport.is_closing() or self._pings_owed > 2

    def hang_up(self) -> None:
        self._transport.abort()

    def _send(self, command: str, channels: Iterable[bytes]) -> None:
        for channel in channels:  # one each: several channels of one command must share a slot
            self._transport.write(pack((command, channel)))

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                self._on_reply(reply)
        except hiredis.ProtocolError:
            self.hang_up()

    def _on_reply(self, reply: Any) -> None:
        if isinstance(reply, hiredis.ReplyError):
            log.info("subscription refused", extra={"reason": str(reply)})
            self.hang_up()  # the slot lives elsewhere now: start over with a fresh map
            return
        self._pings_owed = 0
        if not isinstance(reply, list):
            return
        kind, channel, *rest = reply
        if kind == b"smessage":
            self._bells.ring(channel, rest[0])
        elif kind == b"ssubscribe":
            self._bells.ring(channel, b"")
        elif kind == b"sunsubscribe" and channel in self._channels:
            self._channels.discard(channel)
            self._bells.rearrange()

    def connection_lost(self, error: Exception | None) -> None:
        self._bells.rearrange()
