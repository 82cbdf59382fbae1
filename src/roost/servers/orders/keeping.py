"""The shards of one order server from takeover to hand-over: brought back, served, written now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from roost.core.errors import RoostError, StoreUnavailable
from roost.lanes.appending import Appending
from roost.lanes.clock import IdClock
from roost.lanes.commands import Durability
from roost.lanes.committing import Committing
from roost.lanes.ids import LANES
from roost.lanes.log import Log, NotLeading
from roost.lanes.recovery import Recovered, Recovery
from roost.lanes.scripts import Fenced, Leading, OtherBase, Saved, Unstaged
from roost.lanes.settling import Settling
from roost.lanes.shard import Shard
from roost.lanes.snapshots import Snapshots
from roost.servers.orders.engine import Engine
from roost.servers.orders.host import Host
from roost.servers.orders.outlet import Outlet
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

log = logging.getLogger("roost.orders")

QUEUE_S = 5.0
"""How long a hand-over waits for what is queued."""

LOOK_S = 0.02

Erase = Callable[[int], Awaitable[None]]
"""Forgets everything that the store holds of a shard."""

_encode = msgspec.msgpack.Encoder().encode


class Kept:
    """One shard that is served, and how far its state is written."""

    def __init__(self, shard: Shard, snapshots: Snapshots, base: str, seq: int) -> None:
        self.shard = shard
        self.snapshots = snapshots
        self.base = base
        """`<epoch>-<seq>` of the snapshot that is kept; empty: none is."""
        self.seq = seq
        """The last command that it includes."""
        self.unwritten: dict[str, bytes] = {}
        """Parts that were taken out of the machine and may not be written."""
        self.is_owed = False
        """Whether the state is in memory only, and no replay would come to it."""
        self.is_served = False
        """Whether commands have been let in; they are not while the state is owed, or when it is given up."""
        self.writing = asyncio.Lock()
        self.replayed = 0
        self.lost = 0
        self.mismatches = 0


class Keeping:
    """The `Keeper` of an order server. `logs` is a store of its own: its connection may wait for the disk."""

    def __init__(
        self,
        logs: Store,
        host: Host,
        outlet: Outlet,
        ids: IdClock,
        durability: Durability,
        *,
        server: str,
        snapshot_commands: int,
    ) -> None:
        self.kept: dict[int, Kept] = {}
        self.lost_commands = 0
        self.mismatches = 0
        self._logs = logs
        self._host = host
        self._outlet = outlet
        self._ids = ids
        self._durability = durability
        self._server = server
        self._snapshot_commands = snapshot_commands
        self.erase: Erase | None = None
        """Called for a shard that is handed over, while it is still ours."""
        self._appending = Appending(logs)
        waits = durability in (Durability.FSYNC, Durability.REPLICA)
        self._settling = Settling(logs, durability) if waits else None

    # -- what ownership asks for

    async def take_over(
        self, number: int, holder: str, leading: Leading, former: Shard | None
    ) -> Shard | None:
        keys = shard_keys(self._logs.keys, shard_scope(number))
        entries, snapshots = Log(self._logs, keys, self._appending), Snapshots(self._logs, number)
        recovery = Recovery(number, Engine, entries, snapshots, self._outlet)
        at_ms = self._now_ms()
        found = await recovery.run(
            holder, leading.epoch, self._server, at_ms, self._durability, leading.high_water_ms, former
        )
        if isinstance(found, NotLeading):
            return None
        kept = self._kept(number, leading.epoch, found, snapshots)
        if found.is_unwritten:
            kept.unwritten, kept.is_owed = kept.shard.machine.all_parts(), True
            await self._write_if_possible(kept)
        self._serve(kept)
        return kept.shard

    async def hand_over(self, shard: Shard) -> None:
        """Commands that are queued still run; new ones are sent to the next owner by whoever asks again."""
        kept = self.kept.get(shard.number)
        if kept is None:  # lost already
            return
        kept.is_served = True
        self._host.routes.disown(shard.number)
        deadline = time.monotonic() + QUEUE_S
        while self._host.queued(shard.number) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        await shard.commits.quiesce()
        await self._write_if_possible(kept)
        if self.kept.get(shard.number) is not kept:  # lost meanwhile
            return
        if kept.is_owed and shard.serves:
            kept.is_served = False
            raise StoreUnavailable(f"what shard {shard.number} has in memory alone cannot be written")
        self.kept.pop(shard.number, None)
        shard.commits.end("handed over")
        if self.erase is not None:
            await self.erase(shard.number)

    def lost(self, shard: Shard, why: str) -> None:
        self._host.routes.disown(shard.number)
        self.kept.pop(shard.number, None)
        shard.commits.end(why, keeps_memory=True)

    def status(self, shard: Shard) -> dict[str, object]:
        kept = self.kept.get(shard.number)
        engine = shard.machine
        assert isinstance(engine, Engine)
        return {
            "seq": shard.commits.seq,
            "snapshotSeq": kept.seq if kept else 0,
            "depth": self._host.queued(shard.number),
            "waitMs": self._host.executor.oldest_wait_ms(shard.number),
            "rate": self._host.routes.rates.total(shard.number),
            "lanes": self._host.routes.lane_rates.hot(shard.number, LANES),
            "workers": [
                {"depth": depth, "waitMs": wait_ms, "rejected": rejected}
                for depth, wait_ms, rejected in self._host.executor.loads(shard.number)
            ],
            "failed": shard.tally.failed,
            "violations": shard.tally.violations,
            "lost": kept.lost if kept else 0,
            "mismatches": kept.mismatches if kept else 0,
            "durability": self._durability.word,
            "halted": len(engine.halts()),
            "hot": self._host.routes.rates.hot(shard.number),
            "rejected": dict(self._host.intake.totals()),
        }

    # -- snapshots

    async def step(self) -> None:
        """Write the shards that have gone on for long enough, and cut their logs."""
        due = [
            kept
            for kept in self.kept.values()
            if kept.is_owed or kept.shard.seq - kept.seq >= self._snapshot_commands
        ]
        ahead = [kept for kept in due if self._is_ahead(kept)]
        for kept in due:
            if kept not in ahead:
                await self._write(kept)
                self._serve(kept)
        if ahead:
            await self._outlet.flush()
        for kept in ahead:
            await self._write(kept)

    def _is_ahead(self, kept: Kept) -> bool:
        """Whether a replay from here would lack rows of closed orders that the database does not have yet.

        A replay from the snapshot before makes them anew. What is owed has no log that it could come from.
        """
        return not kept.is_owed and kept.shard.machine.forgotten_seq() > self._outlet.written_seq(
            kept.shard.number
        )

    async def _write_if_possible(self, kept: Kept) -> None:
        try:
            await self._write(kept)
        except RoostError as error:
            log.warning("no snapshot for now", extra={"shard": kept.shard.number, "reason": error.message})

    async def _write(self, kept: Kept) -> None:
        """One at a time: parts that one call has taken out must not be dropped by the end of another."""
        async with kept.writing:
            await self._write_alone(kept)

    async def _write_alone(self, kept: Kept) -> None:
        shard = kept.shard
        if not shard.serves or self._is_ahead(kept):
            return
        seq, digest = shard.seq, shard.machine.digest()
        kept.unwritten |= shard.machine.dirty()
        ids = _encode(shard.ids.newest())
        await self._committed(shard, seq)
        if not shard.serves:
            return
        answer = await kept.snapshots.save(
            shard.epoch, seq, kept.unwritten, base=kept.base, digest=digest, ids=ids
        )
        if isinstance(answer, Saved):
            kept.base, kept.seq, kept.unwritten = f"{shard.epoch}-{seq}", seq, {}
            kept.is_owed = False
            await self._cut(kept)
        elif isinstance(answer, Fenced):
            is_gone = answer.epoch < shard.epoch  # with the log: nobody else has one
            why = "the store has lost its log" if is_gone else "another owner has written"
            shard.commits.end(why, keeps_memory=is_gone)
        elif isinstance(answer, OtherBase | Unstaged):
            kept.unwritten = shard.machine.all_parts()
            kept.base = ""

    async def _committed(self, shard: Shard, seq: int) -> None:
        """Returns when the log has everything up to this command, or the shard is over."""
        while shard.serves and shard.commits.seq < seq:
            reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            shard.commits.read(partial(_reach, reached))
            shard.commits.send()
            await reached

    async def _cut(self, kept: Kept) -> None:
        """Forget what snapshot and database both have."""
        await kept.shard.commits.log.trim(min(kept.seq, self._outlet.written_seq(kept.shard.number)))

    def _kept(self, number: int, epoch: int, found: Recovered, snapshots: Snapshots) -> Kept:
        settle = None
        if self._settling is not None:
            settle = partial(self._settling.settle, found.log.key)
        commits = Committing(number, epoch, found.log, self._outlet, settle, partial(self._gone, number))
        shard = Shard(found.machine, found.ids, commits, self._now_ms, self._durability)
        kept = Kept(shard, snapshots, found.base, found.snapshot_seq)
        kept.replayed, kept.lost, kept.mismatches = found.replayed, found.lost, found.mismatches
        self.lost_commands += found.lost
        self.mismatches += found.mismatches
        self.kept[number] = kept
        commits.untold = found.events
        self._outlet.recovered(number, found.seq, found.rows)
        return kept

    def _serve(self, kept: Kept) -> None:
        """Let commands in, once what happened before stands in the store, and tell of it."""
        shard = kept.shard
        if kept.is_served or kept.is_owed or not shard.serves:
            return
        kept.is_served = True
        self._host.routes.own(shard)
        if events := shard.commits.untold:
            shard.commits.untold = []
            self._outlet.happened(shard.number, shard.commits.seq, events, [])

    def _gone(self, number: int, why: str) -> None:
        log.warning("shard is over here", extra={"shard": number, "reason": why})
        self._host.routes.disown(number)

    def _now_ms(self) -> int:
        return self._ids.now_ms(time.monotonic())


def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_result(None)
