"""A launch evening against a running system: people arrive, poll, vanish, crash, and all get in and out.

It speaks to the gateway as players and servers do, so it can run against anything, and while somebody kills
processes. What it cannot see from outside (who was let in by whom) it learns from its own players.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from aiohttp import ClientSession, ClientTimeout, TCPConnector

from roost.api import Message
from roost.api.errors import ErrorReply, error_of
from roost.api.queue import WorldView
from roost.core.errors import InvalidInput, StoreUnavailable
from roost.core.loops import Loops
from roost.core.passes import sign_entry
from roost.core.signing import MasterKey
from roost.drills.doors import AnyDoors, OwnDoors, SocketDoors
from roost.drills.ledger import Book, percentile
from roost.drills.player import TIMEOUTS, Habits, Player, Refused
from roost.sdk.connect import connect

OWN_SERVERS = 3
LOOK_S = 0.25


class GuaranteeView(Message):
    guarantee: str
    held: bool
    said: str


class DrillReport(Message):
    users: int
    finished: int
    seconds: float
    entry_to_ticket_p50_s: float
    entry_to_ticket_p99_s: float
    ticket_to_consumed_p50_ms: float
    ticket_to_consumed_p99_ms: float
    most_inside: int
    overadmit: int
    counts: dict[str, int]
    guarantees: list[GuaranteeView]

    @property
    def passed(self) -> bool:
        return all(one.held for one in self.guarantees)


@dataclass(frozen=True, slots=True)
class Plan:
    urls: Sequence[str]
    token: str
    users: int = 5000
    world: str = "main"
    capacity: int = 0
    """Of the drill's own servers together; 0: a tenth of the people."""
    bring_servers: bool | None = None
    """None: only if the world has none."""
    keys: tuple[MasterKey, ...] = ()
    habits: Habits = field(default_factory=Habits)
    seed: int = 0
    people: str = ""
    """In the names of the people; empty: others on every evening."""


Progress = Callable[[Book, float], None]


async def launch(plan: Plan, progress: Progress = lambda book, seconds: None) -> DrillReport:
    """Run the evening to its end; every person either got in and out, or is named in the verdict."""
    for url in plan.urls:
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"the gateway URL {url} must begin with http:// or https://")
    book = Book(plan.users)
    started = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        gateways = [await stack.enter_async_context(_session(plan, url)) for url in plan.urls]
        before = await _look(gateways, plan.world)
        own = OwnDoors()
        await _bring_servers(plan, before, own, stack)
        sockets = await stack.enter_async_context(
            ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=15))
        )
        doors = AnyDoors(own, SocketDoors(sockets))
        keep = Loops().keep_running
        watcher = asyncio.create_task(
            keep("drill watch", lambda: _watch(gateways, plan.world, book), pause_s=LOOK_S)
        )
        reporter = asyncio.create_task(
            keep("drill progress", lambda: _report(book, started, progress), pause_s=LOOK_S)
        )
        try:
            await _play(plan, gateways, doors, book)
        finally:
            for task in (watcher, reporter):
                task.cancel()
            await asyncio.gather(watcher, reporter, return_exceptions=True)
        after = await _look(gateways, plan.world)
    # NB: a store that lost its last writes may count less than before.
    overadmit = max(0, after.counters["overadmit"] - before.counters["overadmit"])
    progress(book, time.monotonic() - started)
    return _summary(plan, book, time.monotonic() - started, overadmit)


async def _play(plan: Plan, gateways: list[ClientSession], doors: AnyDoors, book: Book) -> None:
    rng = random.Random(plan.seed or secrets.randbits(64))
    run = plan.people or secrets.token_hex(3)

    async def play(number: int) -> None:
        user = f"drill-{run}-{number}"
        signature = sign_entry(plan.keys, user=user, world=plan.world, ttl_s=86_400) if plan.keys else ""
        player = Player(
            user,
            gateways[number % len(gateways)],
            doors,
            book,
            plan.habits,
            random.Random(rng.getrandbits(64)),
            world=plan.world,
            signature=signature,
        )
        try:
            async with asyncio.timeout(plan.habits.patience_s):
                await player.run()
        except TimeoutError:
            book.counts["out of patience"] += 1
        except Refused as refusal:
            book.counts[f"refused: {refusal}"] += 1

    await asyncio.gather(*(play(number) for number in range(plan.users)))


def _session(plan: Plan, url: str) -> ClientSession:
    return ClientSession(
        url,
        headers={"X-API-Token": plan.token} if plan.token else {},
        connector=TCPConnector(limit=200),
        timeout=ClientTimeout(total=15),
    )


async def _bring_servers(
    plan: Plan, before: WorldView, own: OwnDoors, stack: contextlib.AsyncExitStack
) -> None:
    """Servers of our own, where the world has none."""
    wanted = not before.servers if plan.bring_servers is None else plan.bring_servers
    if not wanted:
        if before.capacity <= 0:
            raise InvalidInput(f"the servers of {plan.world} take nobody", hint="`roost queue status`")
        return
    capacity = max(OWN_SERVERS, plan.capacity or plan.users // 10)
    client = await stack.enter_async_context(connect(plan.urls[0], token=plan.token))
    await stack.enter_async_context(own.open(client, OWN_SERVERS, capacity // OWN_SERVERS, before))


async def _look(gateways: list[ClientSession], world: str) -> WorldView:
    """The world, from whichever gateway answers."""
    problem = ""
    for gateway in gateways:
        try:
            async with gateway.get(f"/queue/v1/worlds/{world}") as response:
                raw = await response.read()
                if response.status == 200:
                    return msgspec.json.decode(raw, type=WorldView)
                refusal = error_of(msgspec.json.decode(raw, type=ErrorReply).error)
                if response.status in (401, 403, 404):
                    raise refusal
                problem = refusal.message
        except msgspec.DecodeError:
            problem = "what answers is not Roost"
        except TIMEOUTS as error:
            problem = str(error) or type(error).__name__
    raise StoreUnavailable(
        f"no gateway shows the world {world}: {problem}",
        hint="start one with `roost up`, or name another with --url",
    )


async def _watch(gateways: list[ClientSession], world: str, book: Book) -> None:
    """Learn what each server takes, so that our own count of people on it can be held against it."""
    for server in (await _look(gateways, world)).servers:
        book.saw_server(server.url, server.capacity)


async def _report(book: Book, started: float, progress: Progress) -> None:
    progress(book, time.monotonic() - started)


def _summary(plan: Plan, book: Book, seconds: float, overadmit: int) -> DrillReport:
    waits, entries = book.entry_to_ticket_s, book.ticket_to_consumed_s
    return DrillReport(
        users=plan.users,
        finished=book.counts["finished"],
        seconds=round(seconds, 1),
        entry_to_ticket_p50_s=round(percentile(waits, 0.5), 2),
        entry_to_ticket_p99_s=round(percentile(waits, 0.99), 2),
        ticket_to_consumed_p50_ms=round(percentile(entries, 0.5) * 1000, 1),
        ticket_to_consumed_p99_ms=round(percentile(entries, 0.99) * 1000, 1),
        most_inside=book.most_inside,
        overadmit=overadmit,
        counts=dict(sorted(book.counts.items())),
        guarantees=[GuaranteeView(v.guarantee, v.held, v.said) for v in book.verdicts(overadmit)],
    )
