"""An evening of trade on processes of its own: two order servers, traders who keep books, and a kill -9.

store-owner (with the database under it)   gateway (it notices who is gone)   901   902
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from roost.api import Message
from roost.core.errors import InvalidInput
from roost.drills.hot_update import EventView
from roost.drills.launch import GuaranteeView
from roost.drills.ledger import judged
from roost.drills.order_verdicts import Logged, counts, verdicts
from roost.drills.processes import DATABASE, OPS_PORT_ABOVE, Processes, free_port
from roost.drills.trader import Trader
from roost.drills.trader_book import TraderBook
from roost.lanes.appending import Appending
from roost.lanes.commands import Amend, Cancel, New, Side, decode_command
from roost.lanes.ids import SHARDS
from roost.lanes.log import Log
from roost.lanes.scripts import ShardScripts
from roost.lanes.snapshots import Snapshots
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.version import __version__
from roost.wire.client import Peer
from roost.wire.trust import wire_secret

KILLS = ("owner", "store")
SERVERS = ("901", "902")
TTL_S = "6"
TRADERS = 4
"""Who share connections."""
BURST = 2.5
"""Commands of a burst, about."""
GIVE_UP_S = 60.0
"""After the last burst: a kill costs leases and takeovers."""
SETTINGS = {"ROOST_LANES__SNAPSHOT_COMMANDS": "1000000000"}
"""The whole log is kept: the verdict reads it."""
SETTLE_S = 30.0
LOOK_S = 0.1
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OrdersPlan:
    folder: Path
    rate: int = 400
    symbols: int = 40
    seconds: float = 20.0
    kill: str = ""

    def check(self) -> None:
        if self.kill and self.kill not in KILLS:
            raise InvalidInput(f"nobody can kill {self.kill!r}", hint=f"--kill {'|'.join(KILLS)}")


class OrdersReport(Message):
    kill: str
    rate: int
    symbols: int
    seconds: float
    counts: dict[str, int]
    slowest_s: float
    """From the first attempt to send a burst until all its outcomes were known."""
    timeline: list[EventView]
    verdicts: list[GuaranteeView]
    folder: str

    @property
    def passed(self) -> bool:
        return all(one.held for one in self.verdicts)


class Exchange(Processes):
    """A store, two order servers, and a gateway: only gateways let the leases of discovery run out."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SETTINGS)
        self.add("gateway", "gateway", "--port", str(free_port()))
        self.ports = {server: free_port(OPS_PORT_ABOVE) for server in SERVERS}
        for server, port in self.ports.items():
            self.add(server, "orders", "serve", "--id", server, "--port", str(port), "--ttl", TTL_S)

    def peers(self, first: int) -> list[Peer]:
        """The ways to the servers, another one first for every trader."""
        ports = list(self.ports.values())
        secret = wire_secret("", self.data)
        return [
            Peer("127.0.0.1", port, secret=secret, role="trader", version=__version__)
            for port in ports[first % len(ports) :] + ports[: first % len(ports)]
        ]


async def orders(plan: OrdersPlan, say: Say = lambda line: None) -> OrdersReport:
    """Run it to its end, whatever happens in it; the report says what held."""
    plan.check()
    exchange = Exchange(plan.folder)
    started = time.monotonic()
    async with exchange.open():
        return await _Drill(plan, exchange, say, started).run()


@dataclass(slots=True)
class _Drill:
    plan: OrdersPlan
    exchange: Exchange
    say: Say
    started: float
    timeline: list[EventView] = field(default_factory=list)
    books: list[TraderBook] = field(default_factory=list)
    killed: str = ""
    pid: int = 0
    """Of the process that was killed."""

    async def run(self) -> OrdersReport:
        plan = self.plan
        self._tell(f"a store and order servers {', '.join(SERVERS)} are up")
        await self._settled()
        self._tell("each of them owns its share of the shards")
        desks = [self.exchange.peers(number) for number in range(TRADERS)]
        traders = [self._trader(number, desks[number % TRADERS]) for number in range(2 * plan.symbols)]
        until = time.monotonic() + plan.seconds
        burst_s = BURST * len(traders) / plan.rate
        running = [asyncio.create_task(one.run(until, burst_s, until + GIVE_UP_S)) for one in traders]
        try:
            await asyncio.sleep(plan.seconds / 2)
            await self._kill()
            await asyncio.gather(*running)
            self._tell("every trader has its answers, or gave up")
            await asyncio.gather(*(one.ask_again() for one in traders))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(*(peer.close() for desk in desks for peer in desk))
        logged = await self._logged()
        self._tell(f"{len(logged.commands)} commands are in the logs")
        return self._report(logged)

    def _trader(self, number: int, peers: list[Peer]) -> Trader:
        side = Side.SELL if number % 2 else Side.BUY
        book = TraderBook(f"{side.name.lower()}er-{number // 2}", f"SYM{number // 2}")
        self.books.append(book)
        return Trader(book, peers, side)

    async def _kill(self) -> None:
        if not self.plan.kill:
            return
        self.killed = DATABASE if self.plan.kill == "store" else SERVERS[0]
        answered = sum(not one.is_open for book in self.books for one in book.commands)
        self.pid = self.exchange.pid(self.killed)
        self._tell(f"kill -9 of {self.killed} after {answered} answers")
        await self.exchange.end(self.killed)  # the store comes back by itself, the other server takes over

    async def _logged(self) -> Logged:
        """Every command of traders in the logs of all shards."""
        found = Logged()
        async with self._store() as store:
            for shard in range(SHARDS):
                snapshot = await Snapshots(store, shard).load()
                first = 0
                keys = shard_keys(store.keys, shard_scope(shard))
                async for entry in Log(store, keys, Appending(store)).read():
                    first = first or entry.seq
                    for seq, (method, _, _, payload) in enumerate(entry.batch.commands, entry.seq):
                        command = decode_command(method, payload)
                        if isinstance(command, New | Cancel | Amend):
                            found.commands[shard, seq] = command.account, command.client_seq
                if snapshot is not None:
                    found.cut[shard] = min(snapshot.seq, first - 1)
        return found

    async def _settled(self) -> None:
        """Until both servers have their share of the shards."""
        async with self._store() as store, asyncio.timeout(SETTLE_S):
            scripts = [ShardScripts(store.library, store.keys, shard_scope(n)) for n in range(SHARDS)]
            owners: set[str] = set()
            while owners != set(SERVERS):
                owners = {(await one.shards(max_step_ms=0)).server for one in scripts}
                await asyncio.sleep(LOOK_S)

    @contextlib.asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        folder = self.exchange.data / "store"
        store = await Store.open(parse_store_url("embedded:"), folder=folder, attach=True)
        try:
            yield store
        finally:
            await store.close()

    def _report(self, logged: Logged) -> OrdersReport:
        plan = self.plan
        found = verdicts(self.books, logged)
        if plan.kill:
            lives = self.killed == DATABASE and self.exchange.pid(DATABASE) == self.pid
            missed = [f"{self.killed} is still process {self.pid}"] if lives else []
            found.append(
                judged("killed in the middle", missed, f"kill -9 of {self.killed}, process {self.pid}")
            )
        return OrdersReport(
            kill=plan.kill,
            rate=plan.rate,
            symbols=plan.symbols,
            seconds=round(time.monotonic() - self.started, 1),
            counts=counts(self.books),
            slowest_s=round(max(book.slowest_s for book in self.books), 2),
            timeline=self.timeline,
            verdicts=[GuaranteeView(one.guarantee, one.held, one.said) for one in found],
            folder=str(plan.folder),
        )

    def _tell(self, what: str) -> None:
        at_s = round(time.monotonic() - self.started, 1)
        self.timeline.append(EventView(at_s, what))
        self.say(f"{at_s:7.1f} s  {what}")
