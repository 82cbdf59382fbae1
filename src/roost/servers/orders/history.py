"""Answers how a book stood at an earlier command, from the shard's own log: beside the trade, not in it."""

from __future__ import annotations

import asyncio

import msgspec

from roost.api.orders import BookView, LogCut, encode_book
from roost.lanes.appending import Appending
from roost.lanes.commands import DECODERS, SERVICE, Method, ReplayTo
from roost.lanes.log import Log
from roost.lanes.owner import Ownership
from roost.lanes.snapshots import Snapshots
from roost.lanes.work import refused
from roost.servers.orders.replay import Replay
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code
from roost.wire.server import Call, WireServer

OPERATORS = frozenset({"gateway", "orders"})
NEWEST = 2**63 - 1
ATTEMPTS = 3
"""The log may be cut while it is read."""


class History:
    """`logs` is read in small pieces; one replay at a time, because each holds a whole shard in memory."""

    def __init__(self, logs: Store, ownership: Ownership) -> None:
        self._logs = logs
        self._ownership = ownership
        self._one_at_a_time = asyncio.Lock()

    def serve(self, server: WireServer) -> None:
        server.register(SERVICE, Method.REPLAY, self.replay)

    async def replay(self, call: Call) -> Answer:
        if call.peer.peer_role not in OPERATORS:
            return refusal(Code.UNAUTHENTICATED, "only operators replay a log")
        try:
            asked: ReplayTo = DECODERS[Method.REPLAY](call.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return refusal(Code.BAD_REQUEST, f"it cannot be read: {error}", reason="BAD_REQUEST")
        if not self._ownership.holds(asked.shard):
            return refused("NOT_OWNER", shard=asked.shard, owner=self._ownership.address_of(asked.shard))
        async with self._one_at_a_time:
            try:
                return Answer(encode_book(await self.book(asked.shard, asked.symbol, asked.to_seq or NEWEST)))
            except LogCut as error:
                return refusal(Code.REFUSED, error.message, reason=LogCut.code)

    async def book(self, shard: int, symbol: str, to_seq: int) -> BookView:
        """The symbol as it stood at a command of this shard; `LogCut` if that is too long ago."""
        for _ in range(ATTEMPTS):
            replay = await self._run(shard, to_seq)
            if replay is not None:
                return replay.book(symbol)
        raise LogCut(f"the log of shard {shard} is cut faster than it is read")

    async def _run(self, shard: int, to_seq: int) -> Replay | None:
        """None: the log was cut meanwhile."""
        snapshots = Snapshots(self._logs, shard)
        kept = await snapshots.load()
        base = kept.seq if kept is not None and kept.seq <= to_seq else 0
        replay = Replay(shard, to_seq, kept.parts if kept is not None and base else {}, base)
        keys = shard_keys(self._logs.keys, shard_scope(shard))
        async for entry in Log(self._logs, keys, Appending(self._logs)).read(base):
            lost = min(entry.seq - 1, to_seq) - replay.seq
            if lost > 0:  # of any entry: between two pages of the log it may be cut
                if kept is not None and to_seq < kept.seq and not replay.seq:
                    raise LogCut(f"the log of shard {shard} begins with command {entry.seq}")
                later = await snapshots.load()
                if later is not None and (kept is None or later.seq > kept.seq):
                    return None
                replay.missing += lost
            if not replay.feed((entry.epoch, entry.seq, entry.batch)):
                break
            await asyncio.sleep(0)
        return replay
