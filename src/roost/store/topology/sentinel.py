"""A primary that Sentinel watches, followed through failovers.

The sentinels are asked all at once and the answer with the highest configuration epoch counts, so one
that was cut off cannot lead us back to the old primary. They are asked before every connect, every
second, and at once when the link is in trouble: a primary that hangs without closing its sockets is
left as soon as the sentinels have agreed on another.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from roost.core.backoff import jittered
from roost.core.errors import StoreError, StoreRefused, StoreUnavailable
from roost.core.loops import Loops
from roost.store.connection import Access, Connection, ask, dial
from roost.store.link import Link, LinkOptions
from roost.store.topology import single_primary_policy
from roost.store.url import Address, Shape

log = logging.getLogger("roost.store.sentinel")

LOOK_INTERVAL_S = 1.0
ASK_TIMEOUT_S = 1.0


class Sentinel:
    shape: Shape = "sentinel"

    def __init__(
        self,
        sentinels: tuple[Address, ...],
        master: str,
        access: Access,
        sentinel_access: Access,
        options: LinkOptions,
        loops: Loops | None = None,
    ) -> None:
        loops = loops or Loops()
        self.access = access
        self.sentinel_access = sentinel_access
        self._master = master
        self._options = options
        self._open: dict[Address, Connection | None] = dict.fromkeys(sentinels)
        self._dialling = {sentinel: asyncio.Lock() for sentinel in sentinels}
        self._primary: Address | None = None
        self._look_now = asyncio.Event()
        self._link = Link(
            f"primary of {master}",
            self._connect,
            options,
            single_primary_policy,
            self._look_now.set,
            loops=loops,
        )
        self.submit = self._link.submit
        self._watcher = asyncio.create_task(
            loops.keep_running(f"sentinel watch {master}", self._watch, pause_s=LOOK_INTERVAL_S / 10)
        )

    async def ready(self, timeout_s: float | None) -> None:
        await self._link.ready(timeout_s)

    def links(self) -> list[Link]:
        return [self._link]

    def address_for(self, key: bytes) -> Address | None:
        connection = self._link.connection
        return connection.address if connection is not None else self._primary

    def connection_for(self, key: bytes) -> Connection | None:
        return self._link.connection

    def doubt(self) -> None:
        self._look_now.set()

    async def close(self) -> None:
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
        await self._link.close()
        for connection in self._open.values():
            if connection is not None:
                connection.abort()

    async def _connect(self) -> Connection:
        address = await self.find_primary()
        connection = await dial(address, self.access, self._options.connect_timeout_s)
        if not await self._is_primary(connection):
            connection.abort()
            raise StoreUnavailable(f"{address} is not the primary of {self._master} (yet)")
        self._primary = address
        return connection

    async def _is_primary(self, connection: Connection) -> bool:
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                role = await ask(connection, "ROLE", timeout_s=ASK_TIMEOUT_S)
        except StoreRefused:
            return True  # an ACL user without ROLE: a replica will say READONLY to the first write
        except TimeoutError:
            return False
        return bool(role[0] == b"master")

    async def _watch(self) -> None:
        """Ask once a second, or at once when the link is in trouble."""
        try:
            async with asyncio.timeout(jittered(LOOK_INTERVAL_S)):
                await self._look_now.wait()
        except TimeoutError:
            pass
        self._look_now.clear()
        found = await self.find_primary()
        for (
            line
        ) in self._link.lines():  # each by itself: one may have found the new primary before the others
            if line.connection is not None and line.connection.address != found:
                was = str(line.connection.address)
                log.warning("primary changed", extra={"primary": str(found), "was": was})
                line.drop(f"the primary is now {found}")

    async def find_primary(self) -> Address:
        """The primary by the newest configuration that any sentinel knows."""
        answers = await asyncio.gather(*map(self._ask, self._open), return_exceptions=True)
        known = [answer for answer in answers if not isinstance(answer, BaseException)]
        if not known:
            problem = next((str(answer) for answer in answers if isinstance(answer, StoreError)), "no answer")
            raise StoreUnavailable(f"no sentinel knows {self._master}: {problem}")
        return max(known, key=lambda answer: answer[0])[1]

    async def _ask(self, sentinel: Address) -> tuple[int, Address]:
        async with self._dialling[sentinel]:  # two who ask at once must not dial the same sentinel twice
            connection = self._open[sentinel]
            if connection is None or connection.lost.done():
                connection = await dial(sentinel, self.sentinel_access, ASK_TIMEOUT_S)
                self._open[sentinel] = connection
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                reply = await ask(connection, "SENTINEL", "MASTER", self._master, timeout_s=ASK_TIMEOUT_S)
        except TimeoutError:
            connection.abort()
            raise StoreUnavailable(f"sentinel {sentinel} did not answer") from None
        return _primary_of(reply)


def _primary_of(reply: list[Any]) -> tuple[int, Address]:
    """(configuration epoch, address) from the flat field list that SENTINEL MASTER returns."""
    fields = dict(zip(reply[::2], reply[1::2], strict=True))
    return int(fields[b"config-epoch"]), Address(fields[b"ip"].decode(), int(fields[b"port"]))
