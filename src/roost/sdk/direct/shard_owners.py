"""Which order server owns which shard, and where each symbol belongs, as the servers themselves say it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from roost.core.errors import RoostError
from roost.lanes.commands import SERVICE, Method, Places
from roost.lanes.ids import extract_shard
from roost.lanes.placement import Moving, Place, Table
from roost.lanes.selector import Spot
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.pool import Pool

log = logging.getLogger("roost.sdk.trading")

ASK_MS = 1000
LIST_S = 3.0
"""How long discovery may take to list the servers, where some are known: they can be asked without it."""

_decode = msgspec.msgpack.Decoder(Places).decode


class Owners:
    """`servers` gives the addresses (host:port) of all order servers at this moment."""

    def __init__(self, servers: Callable[[], Awaitable[list[str]]], peers: Pool) -> None:
        self.by_shard: dict[int, str] = {}
        self._servers = servers
        self._known: list[str] = []
        self._peers = peers
        self._table = Table()
        self._asking: asyncio.Task[None] | None = None

    def shard_of(self, symbol: str, order_id: int) -> int | None:
        """By the symbol, which is normalised, or else by the bits of the id; None: nobody serves it."""
        if not symbol:
            return extract_shard(order_id)
        place = self._table.of(symbol)
        if isinstance(place, Moving):
            place = place.source
        return place.shard if isinstance(place, Place) else None

    def shards_by_address(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for shard, address in self.by_shard.items():
            found.setdefault(address, set()).add(shard)
        return {address: frozenset(shards) for address, shards in found.items()}

    def peer_of(self, address: str) -> Peer:
        host, _, port = address.rpartition(":")
        return self._peers.at(host, int(port))

    async def look_up(self) -> None:
        """Ask all order servers; whoever wants to know meanwhile shares the answers. `close` ends it."""
        asking = self._asking
        if asking is None:
            asking = self._asking = asyncio.get_running_loop().create_task(self._ask_all())
            asking.add_done_callback(self._asked)
        await asyncio.wait([asking])
        if not asking.cancelled():
            asking.result()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _asked(self, _: asyncio.Task[None]) -> None:
        self._asking = None

    async def _ask_all(self) -> None:
        try:
            async with asyncio.timeout(LIST_S if self._known else None):
                self._known = await self._servers() or self._known
        except (RoostError, TimeoutError) as error:
            log.info("order servers cannot be looked up", extra={"reason": str(error) or "it takes too long"})
        answers = await asyncio.gather(*(self._ask(address) for address in self._known))
        heard = [(address, places) for address, places in zip(self._known, answers, strict=True) if places]
        if not heard:
            return
        newest = max((places for _, places in heard), key=lambda places: places.version)
        if newest.version > self._table.version or newest.selector != self._table.selector:
            pins = {symbol: Spot(*spot) for symbol, spot in newest.pins.items()}
            self._table = Table(newest.version, newest.selector, pins)
        self.by_shard = _merged(heard)

    async def _ask(self, address: str) -> Places | None:
        try:
            answer = await self.peer_of(address).call(SERVICE, Method.PLACES, b"", budget_ms=ASK_MS)
            return _decode(answer.payload) if answer.code is Code.OK else None
        except (RoostError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.info("an order server does not say its places", extra={"reason": str(error)})
            return None


def _merged(heard: list[tuple[str, Places]]) -> dict[int, str]:
    """What a server says of itself counts more than what others have heard of it."""
    of_others: dict[int, str] = {}
    own: dict[int, str] = {}
    for address, places in heard:
        for shard, owner in places.owners.items():
            (own if owner == address else of_others)[shard] = owner
    return of_others | own
