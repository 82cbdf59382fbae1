"""Taking over a shard: fence the former owner, load the snapshot, replay the log to its end.

Nothing is read before the first entry of our own stands in the log: whatever the former owner had appended by
then is before it, and nothing of it comes after. A number that the database has and the log has not, or one
that is missing between two entries, was acknowledged and lost: it is reported, never used again, and orders
that only the database knows are marked there as lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from roost.db.orders import LOST, OrderRow
from roost.lanes.commands import Batch, Method, Turn, decode_command, encode
from roost.lanes.ids import LaneIds, extract_shard, extract_time
from roost.lanes.log import Log, Logged, NotLeading, Tail, Taken
from roost.lanes.shard import Machine, Shard
from roost.lanes.snapshots import Snapshots

log = logging.getLogger("roost.lanes")

_decode_ids = msgspec.msgpack.Decoder(list[int]).decode

_TAKEOVER, _CHECK = int(Method.TAKEOVER), int(Method.CHECK)


@dataclass(slots=True)
class Recovered:
    """A shard as its log left it."""

    machine: Machine
    ids: LaneIds
    log: Log
    rows: list[OrderRow] = field(default_factory=list)
    """Of commands that the database may lack."""
    events: list[tuple[str, bytes]] = field(default_factory=list)
    """Those that nobody was told of, though the state here has them."""
    seq: int = 0
    base: str = ""
    """`<epoch>-<seq>` of the snapshot that it began with; empty: of none, or all of it has to be written."""
    snapshot_seq: int = 0
    replayed: int = 0
    lost: int = 0
    """Commands that were acknowledged once and that the store no longer has."""
    holes: list[tuple[int, int]] = field(default_factory=list)
    """The commands before and after those that are lost."""
    is_unwritten: bool = False
    """Whether the state is in memory only."""
    mismatches: int = 0
    """Points at which the replay came to another state than the former owner had."""


class Written(Protocol):
    """What the database knows of a shard."""

    async def last_seq(self, shard: int) -> int:
        """The last command that it has heard of."""

    async def newest_id(self, shard: int, at_ms: int) -> int:
        """The largest order id that the shard made for this time or a later one; 0: none.

        Whoever has written it since: a symbol that was moved took its orders along.
        """

    async def rows_between(self, shard: int, after: int, before: int) -> Sequence[OrderRow]:
        """Those that commands between these two have written."""


class Recovery:
    """Brings back one shard under a lease that was just granted."""

    def __init__(
        self,
        number: int,
        machine: Callable[[int], Machine],
        entries: Log,
        snapshots: Snapshots,
        written: Written,
    ) -> None:
        self._number = number
        self._machine = machine
        self._log = entries
        self._snapshots = snapshots
        self._written = written

    async def run(
        self,
        holder: str,
        epoch: int,
        server: str,
        at_ms: int,
        durability: int,
        high_water_ms: int,
        former: Shard | None = None,
    ) -> Recovered | NotLeading:
        """`former`: ours until the store forgot the lease; its memory counts if nobody has written since."""
        written = await self._written.last_seq(self._number)
        newest_id = await self._written.newest_id(self._number, at_ms)
        floor = max(written, former.seq if former is not None else 0)
        marker = Batch(at_ms, durability, [(_TAKEOVER, 0, 0, server.encode())])
        taken = await self._log.take_over(holder, epoch, floor, encode(marker))
        if isinstance(taken, NotLeading):
            return taken
        if former is not None and Tail.parse(taken.previous).epoch <= former.epoch:
            found = self._remembered(former, taken)
        else:
            found = await self._from_log()
            for after, before in found.holes:
                for row in await self._written.rows_between(self._number, after, before):
                    found.rows.append(self._corrected(found, row, epoch, taken.seq, at_ms))
                    self._seed(found, row.order_id)
        found.ids.raise_floor(max(high_water_ms, extract_time(newest_id)))
        self._report(found, written)
        return found

    def _remembered(self, former: Shard, taken: Taken) -> Recovered:
        """The state as it is in memory; the whole of it has to be written before anything else."""
        lost = max(0, former.seq - taken.last)
        log.warning("the store forgot a shard", extra={"shard": self._number, "entries_missing": lost})
        unreleased, untold = former.commits.unreleased, former.commits.untold
        rows = [row for collected in unreleased for row in collected.rows]
        events = [*untold, *(event for collected in unreleased for event in collected.events)]
        return Recovered(former.machine, former.ids, self._log, rows, events, taken.seq, is_unwritten=True)

    async def _from_log(self) -> Recovered:
        found = Recovered(self._machine(self._number), LaneIds(self._number), self._log)
        await self._load(found)
        async for entry in self._log.read(found.seq):
            self._replay(found, entry)
            await asyncio.sleep(0)
        found.rows += found.machine.rows_since(self._log.first_seq)
        return found

    async def _load(self, found: Recovered) -> None:
        snapshot = await self._snapshots.load()
        if snapshot is None:
            return
        found.machine.restore(snapshot.parts)
        found.seq = found.snapshot_seq = snapshot.seq
        found.base = snapshot.at
        for order_id in _decode_ids(snapshot.ids):
            found.ids.seed(order_id)
        if found.machine.digest() != snapshot.digest:
            found.mismatches += 1

    def _replay(self, found: Recovered, entry: Logged) -> None:
        if entry.seq > found.seq + 1:
            found.lost += entry.seq - found.seq - 1
            found.holes.append((found.seq, entry.seq))
            found.machine.skip_lost()
        batch = entry.batch
        turn = Turn(self._number, entry.epoch, batch.at_ms, batch.durability)
        for seq, (method, lane, order_id, payload) in enumerate(batch.commands, entry.seq):
            if seq <= found.seq:
                continue
            rows = self._apply(found, turn, seq, method, lane, order_id, payload)
            found.seq = seq
            if rows:
                found.rows += rows
            self._seed(found, order_id)

    def _seed(self, found: Recovered, order_id: int) -> None:
        if order_id and extract_shard(order_id) == self._number:
            found.ids.seed(order_id)

    def _apply(
        self, found: Recovered, turn: Turn, seq: int, method: int, lane: int, order_id: int, payload: bytes
    ) -> Sequence[OrderRow] | None:
        found.replayed += 1
        if method == _CHECK and found.machine.digest() != payload:
            found.mismatches += 1
        try:
            return found.machine.apply(turn, seq, method, lane, order_id, decode_command(method, payload))[2]
        except Exception:  # it failed when it was live, and was answered so
            return None

    def _corrected(self, found: Recovered, row: OrderRow, epoch: int, seq: int, at_ms: int) -> OrderRow:
        """A row that a lost command has written: the order as it is here, newer than what was lost."""
        known = found.machine.order(row.order_id) or row._replace(state=LOST)
        # Epochs of a store that lost everything, and whose clock is behind, begin below those of the rows.
        return known._replace(
            shard=self._number,
            epoch=max(row.epoch, epoch),
            seq=seq,
            updated_ms=max(row.updated_ms, at_ms),
        )

    def _report(self, found: Recovered, written: int) -> None:
        said = {"shard": self._number, "replayed": found.replayed, "seq": found.seq}
        if found.lost:
            log.error(
                "commands were lost by the store", extra=said | {"lost": found.lost, "written": written}
            )
        if found.mismatches:
            log.error("a replay came to another state", extra=said | {"mismatches": found.mismatches})
        log.info("shard taken over", extra=said)
