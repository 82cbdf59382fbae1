"""Order servers as real processes, a crowd that trades through all that befalls them, and what must hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections import defaultdict
from pathlib import Path

import aiohttp

from roost.api.orders import ShardStatus
from roost.core.errors import RoostError
from roost.lanes.commands import (
    SERVICE,
    Cancel,
    Method,
    New,
    Outcome,
    Query,
    Side,
    Standing,
    State,
    decode_outcome,
    decode_standing,
    encode,
)
from roost.lanes.log import Logged
from roost.lanes.views import status_of
from roost.testing import eventually, free_port, open_store
from roost.web.ops import OPS_PORT_ABOVE
from roost.wire.answer import Answer
from roost.wire.client import Peer
from roost.wire.codes import Code
from tests.forking import Process, forker
from tests.store.lanes.hall import Hall

LEASE_MS = 3000
SYMBOLS = [f"SYM{n}" for n in range(12)]
ROOT = Path(__file__).parents[2]
Key = tuple[str, int]


class Exchange:
    """Order servers on one store; each can be killed, frozen and started again."""

    def __init__(self, folder: Path, store: str, *, durability: str = "everysec") -> None:
        self.store = store
        self.ports: dict[str, int] = {}
        self.up: set[str] = set()
        """Those that were not killed: the others need not be asked."""
        self._running: dict[str, Process] = {}
        self._folder = folder
        self._peers: list[Peer] = []
        self.database = folder / "orders.db"
        self._secret = secrets.token_hex(16)
        self._token = secrets.token_hex(16)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
        self._env = kept | {
            "PYTHONPATH": str(ROOT),
            "ROOST_PROFILE": "lan",
            "ROOST_STORE": store,
            "ROOST_DATABASE": f"sqlite:///{self.database}",
            "ROOST_API_TOKEN": self._token,
            "ROOST_WIRE_SECRET": self._secret,
            "ROOST_LANES__LEASE_MS": str(LEASE_MS),
            "ROOST_LANES__DURABILITY": durability,
            "ROOST_ORDERS__SHARDS": "0-15",
            "ROOST_LANES__SNAPSHOT_COMMANDS": "100",
        }

    def start(self, name: str) -> None:
        port = self.ports.setdefault(name, free_port())
        self.up.add(name)
        command = ("orders", "serve", "--id", name, "--port", str(port), "--data", str(self._folder / name))
        with open(self._folder / f"{name}.out", "ab") as out:
            self._running[name] = forker().start(command, self._env, self._folder, out, out)

    def kill(self, name: str) -> None:
        self.up.discard(name)
        self._running[name].kill()
        self._running[name].wait()

    def freeze(self, name: str) -> None:
        os.kill(self._running[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        os.kill(self._running[name].pid, signal.SIGCONT)

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.out").read_text(errors="replace")

    def peer(self, name: str) -> Peer:
        secret = self._secret.encode()
        self._peers.append(Peer("127.0.0.1", self.ports[name], secret=secret, role="trader"))
        return self._peers[-1]

    async def hang_up(self) -> None:
        """The connections of everybody who trades."""
        await asyncio.gather(*(peer.close() for peer in self._peers))

    async def metric(self, name: str, sample: str) -> float:
        """A sample without labels of a server's metrics page; -1: there is none yet."""
        where = f"http://127.0.0.1:{self.ports[name] + OPS_PORT_ABOVE}/metrics"
        headers = {"Authorization": f"Bearer {self._token}"}
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with aiohttp.ClientSession() as http, http.get(where, headers=headers) as answer:
                for line in (await answer.text()).splitlines():
                    if line.startswith(f"{sample} "):
                        return float(line.split()[1])
        return -1

    async def statuses(self) -> list[ShardStatus]:
        """What the owners say of their shards: `roost orders shards` shows it."""
        async with open_store(self.store, wait_s=30) as store:
            hall = Hall(store)
            found = [await hall.scripts(number).shards(max_step_ms=0) for number in range(16)]
            return [status_of(one.status) for one in found]

    async def entries(self) -> dict[int, list[Logged]]:
        async with open_store(self.store, wait_s=30) as store:
            hall = Hall(store)
            return {number: await hall.entries(number) for number in range(16)}


class Crowd:
    """Accounts that send one command after the other, each until somebody says what became of it."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._peers: dict[str, Peer] = {}
        self.sent: dict[Key, tuple[int, New | Cancel]] = {}
        self.outcomes: dict[Key, Outcome] = {}
        self.tries = 0

    async def trade(self, accounts: int, commands: int, first: int = 0) -> None:
        """`first`: of the accounts; those below it have traded already."""
        several = (self._account(f"acc{n}", commands) for n in range(first, first + accounts))
        await asyncio.gather(*several)

    async def _account(self, account: str, commands: int) -> None:
        resting: Outcome | None = None
        for number in range(1, commands + 1):
            if resting is not None and number % 4 == 0:
                await self.ask(Method.CANCEL, Cancel(account, number, 0, resting.order_id))
                resting = None
                continue
            symbol = SYMBOLS[(number * 7 + len(account)) % len(SYMBOLS)]
            side = Side.BUY if number % 2 else Side.SELL
            made = await self.ask(Method.NEW, New(account, number, 0, symbol, side, 10 + number % 3, 2))
            resting = made if made.state == State.OPEN else resting

    async def ask(self, method: int, command: New | Cancel) -> Outcome:
        """The same command to one server after the other, until one has carried it out."""
        key = (command.account, command.client_seq)
        self.sent[key] = method, command
        while True:
            for name in sorted(self._exchange.up):
                self.tries += 1
                answer = await self._try(name, method, encode(command))
                if answer is not None and not answer.code:
                    outcome = decode_outcome(answer.payload)
                    assert self.outcomes.setdefault(key, outcome) == outcome, "another answer (G16)"
                    return outcome
            await asyncio.sleep(0.05)

    async def once(self, name: str, method: int, command: New | Cancel) -> Answer | None:
        return await self._try(name, method, encode(command))

    async def _try(self, name: str, method: int, payload: bytes) -> Answer | None:
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = self._exchange.peer(name)
        try:
            return await peer.call(SERVICE, method, payload, budget_ms=2000)
        except RoostError:
            return None

    async def reaches(self, count: int) -> None:
        await eventually(lambda: len(self.outcomes) >= count, f"{count} answers", timeout_s=60)

    async def answers_more(self, count: int, timeout_s: float = 60) -> None:
        """So many answers from now on."""
        wanted = len(self.outcomes) + count
        await eventually(lambda: len(self.outcomes) >= wanted, f"{count} more answers", timeout_s=timeout_s)

    async def once_more(self) -> None:
        """A command of each symbol, by an account that comes only now."""
        for number, symbol in enumerate(SYMBOLS, start=1):
            await self.ask(Method.NEW, New("later", number, 0, symbol, Side.BUY, 5, 1))

    async def all_again(self) -> None:
        """Every answer a second time."""
        for method, command in list(self.sent.values()):
            await self.ask(method, command)

    def forget(self, account: str) -> None:
        """The commands of this account, and what they were answered."""
        for key in [key for key in self.sent if key[0] == account]:
            del self.sent[key], self.outcomes[key]

    async def standing(self, query: Query) -> Standing:
        """How an order stands, by whoever says it."""
        return decode_standing((await self._told(query)).payload)

    async def has_answer(self, query: Query) -> bool:
        """Whether the shard knows an answer to a command."""
        return (await self._told(query)).code is Code.OK

    async def _told(self, query: Query) -> Answer:
        while True:
            for name in sorted(self._exchange.up):
                answer = await self._try(name, Method.QUERY, encode(query))
                if answer is not None and answer.code in (Code.OK, Code.REFUSED):
                    return answer
            await asyncio.sleep(0.05)

    def check(
        self, logged: dict[int, list[Logged]], *, lost: bool = False, from_memory: bool = False
    ) -> None:
        """What was answered is in the log where its receipt says, and the log is whole and in order.

        `lost`: the store has lost some, so numbers may be missing; what they were answered is forgotten.
        `from_memory`: an owner whose lease ran out may have gone on from memory: what a primary lost
        is before its takeover then, in a snapshot and not in the log.
        """
        commands: dict[tuple[int, int, int], int] = {}
        first: dict[int, int] = {}
        in_snapshots: set[tuple[int, int]] = set()
        for shard, entries in logged.items():
            newest: defaultdict[int, int] = defaultdict(int)
            epochs = [entry.epoch for entry in entries]
            assert epochs == sorted(epochs), "an owner wrote after the next one (G13)"
            expected = first[shard] = entries[0].seq if entries else 1
            before = 0
            for entry in entries:
                bridged = from_memory and entry.epoch > before
                assert lost or bridged or entry.seq == expected, "a hole in the log (G16)"
                in_snapshots |= {(shard, seq) for seq in range(expected, entry.seq)}
                before, expected = entry.epoch, entry.last_seq + 1
                for seq, (method, lane, order_id, _) in enumerate(entry.batch.commands, entry.seq):
                    commands[shard, entry.epoch, seq] = method
                    if order_id:
                        assert order_id > newest[lane], "ids of a lane do not rise (G15)"
                        newest[lane] = order_id
        for key, outcome in self.outcomes.items():
            if outcome.seq >= first[outcome.shard] and (outcome.shard, outcome.seq) not in in_snapshots:
                found = commands.get((outcome.shard, outcome.epoch, outcome.seq))
                assert found == self.sent[key][0], f"{key} was answered and is not in the log (G16)"
        made = [outcome.order_id for key, outcome in self.outcomes.items() if self.sent[key][0] == Method.NEW]
        assert len(set(made)) == len(made), "an id was given out twice (G15)"
