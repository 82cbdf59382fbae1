"""How long does a move block a user, how many move per second, and what does document 001's order lose?"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from callers import rate
from move_claims import Claims, claims_on
from move_fleet import TYPE, Client, Fleet, Slowed, fleet_on, slowed
from report import Case, Figure, need, publish, result_file
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.model import Claimed, Flush, Flushed
from roost.settings import Loaded
from roost.testing import missing_database, run_postgresql

try:
    import move_documented as documented
except ImportError:
    need("redis")

PER_S = 100
PACED = 300
USERS = 600
ROUNDS = 3
IN_FLIGHT = 64
BARE_S = 1.0
VERBS = 100
DOCUMENTED = 100
LATENCIES_MS = (0.2, 1.0, 5.0)
BEFORE_S, AFTER_S, REQUEST_EVERY_S = 0.06, 0.06, 0.02
ABOVE_MS = 5.0
PROMISED = 0.4
STATE = b"0 " + b"x" * 400
OWNER = Owner("501", "life")

METHOD = (
    f"`roost up` (gateway, manager, embedded store) and two entity servers (501, 502), each a process; the "
    f"benchmark is gate and manager, over wire: one MOVE for each user, as the controller of a drain sends "
    f"them. States of 400 bytes; every user has changed before the move and again in its turn, so each move "
    f"writes twice and claims once. PostgreSQL with fsync behind a proxy (a process) that holds each request "
    f"back for 0.2, 1 or 5 ms; SQLite is the file of the data folder, which both servers write. Pauses: "
    f"{PACED} users at {PER_S}/s, each with a client that sends a request every "
    f"{REQUEST_EVERY_S * 1000:g} ms from {BEFORE_S * 1000:g} ms before to {AFTER_S * 1000:g} ms after; "
    f"`blocked` is what the source reports (from the user's turn to its end, the commit included), `slowest "
    f"request` what the client of each user saw. Promised is the median of one flush plus that of one claim, "
    f"asked by this process on the same database at {PER_S}/s, plus {ABOVE_MS:g} ms. Unthrottled: {USERS} "
    f"users, {IN_FLIGHT} moves under way (a drain's bound); beside it the bare loop in this process: "
    f"{IN_FLIGHT} callers that flush, flush and claim a row of their own, for {BARE_S:g} s, and the same "
    f"loop with the claims in a second process, as the target of a move is one; they take turns within "
    f"each of {ROUNDS} rounds, users go there and back. After every round each user is asked at the "
    f"target, and map and row are read: object, map and row say the same. Documented: {DOCUMENTED} users at "
    f"{PER_S}/s in document 001's order (mark, log out, write, unbind, publish before the new login is "
    f"done) with the same clients; `two owners` are users whom both servers hold in the end; servers and "
    f"load balancer in this process, on a throwaway store. NB: all processes share the machine's cores."
)


class Place(NamedTuple):
    """A fleet, and the database that it is on."""

    name: str
    fleet: Fleet
    database: Database
    target: Claims


class Bare:
    """What the database alone can do: a flush while serving, a flush in the turn, the claim."""

    def __init__(self, database: Database, target: Claims | None = None) -> None:
        """`target`: the process that claims; None: this one does."""
        self._database = database
        self._target = target
        self._names = itertools.count()
        self._free: list[tuple[str, int]] = []
        self._run = f"bare-{time.monotonic_ns()}"

    async def once(self) -> None:
        user, n = self._free.pop() if self._free else (f"{self._run}-{next(self._names)}", 0)
        if not n:
            n = 1
            await self.claim(user, n)
        await self.flush(user, n, 1)
        await self.flush(user, n, 2)
        await self.claim(user, n + 1)
        self._free.append((user, n + 1))

    async def flush(self, user: str, epoch: int, number: int) -> None:
        flush = Flush("bare", user, epoch, 2 * epoch + number, STATE)
        assert await self._database.flush(flush) == Flushed()

    async def claim(self, user: str, epoch: int) -> None:
        if self._target is not None:
            await self._target.claim(user, epoch)
            return
        assert isinstance(await self._database.claim("bare", user, OWNER, epoch, judged=epoch - 1), Claimed)


async def at_rate(act: Callable[[Any], Coroutine[Any, Any, Any]], whom: Sequence[Any]) -> None:
    """Begin one every so often, whatever became of those before."""
    started, tasks = time.perf_counter(), list[asyncio.Task[Any]]()
    for number, one in enumerate(whom):
        await asyncio.sleep(max(0.0, started + number / PER_S - time.perf_counter()))
        tasks.append(asyncio.create_task(act(one)))
    await asyncio.gather(*tasks)


async def many(act: Callable[[Any], Coroutine[Any, Any, Any]], whom: Sequence[Any]) -> float:
    """`IN_FLIGHT` at a time; how many per second."""
    left, started = iter(whom), time.perf_counter()

    async def worker() -> None:
        for one in left:
            await act(one)

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return len(whom) / (time.perf_counter() - started)


# -- ours


async def verbs_ms(database: Database) -> tuple[float, float]:
    """The medians of a flush and of a claim, asked at the rate of the moves."""
    bare, flushes, claims = Bare(database), list[float](), list[float]()

    async def both(number: int) -> None:
        user = f"{bare._run}-verbs-{number}"
        await bare.claim(user, 1)
        started = time.perf_counter()
        await bare.flush(user, 1, 1)
        flushed = time.perf_counter()
        await bare.claim(user, 2)
        flushes.append((flushed - started) * 1000)
        claims.append((time.perf_counter() - flushed) * 1000)

    await at_rate(both, range(VERBS))
    return median(flushes), median(claims)


async def arrived(clients: Sequence[Client], place: Place, at: str) -> None:
    """Everybody is there in the object, the map and the row, with all that was acknowledged."""

    async def check(client: Client) -> None:
        await client.check(at)
        row = await place.database.read(TYPE, client.user)
        assert row is not None
        assert row.owner == place.fleet.lives[at], row

    await many(check, clients)


async def moved(
    client: Client, fleet: Fleet, source: str, target: str, found: Counter[str]
) -> dict[str, float]:
    """Until it is: who went back is tried again, and counted."""
    while (report := await fleet.move(client.user, source, target)).outcome != "moved":
        found[f"{report.outcome}: {report.why}"] += 1
        await asyncio.sleep(0.05)
    client.at = target
    return report.phases


async def pauses(place: Place, clients: Sequence[Client]) -> tuple[list[dict[str, float]], Counter[str]]:
    phases: list[dict[str, float]] = []
    found: Counter[str] = Counter()

    async def one(client: Client) -> None:
        playing = asyncio.create_task(client.play(REQUEST_EVERY_S))
        await asyncio.sleep(BEFORE_S)
        phases.append(await moved(client, place.fleet, "501", "502", found))
        await asyncio.sleep(AFTER_S)
        client.is_over = True
        await playing

    await at_rate(one, clients)
    for client in clients:
        found.update(client.faults)
        found["requests"] += client.sent
    await arrived(clients, place, "502")
    return phases, found


async def unthrottled(place: Place, clients: Sequence[Client]) -> tuple[Case, Counter[str]]:
    case = Case(f"{place.name}: users/s unthrottled", {"bare loop": PROMISED})
    found = Counter[str]()
    peers = {"bare loop": Bare(place.database), "of two processes": Bare(place.database, place.target)}
    for bare in peers.values():
        await rate(bare.once, IN_FLIGHT, 0.3)
    for source, target in itertools.islice(itertools.cycle((("501", "502"), ("502", "501"))), ROUNDS):
        print(f"{place.name}: {source} to {target}", flush=True)
        move = partial(moved, fleet=place.fleet, source=source, target=target, found=found)
        case.add("ours", await many(move, clients))
        await arrived(clients, place, target)
        for peer, bare in peers.items():
            case.add(peer, await rate(bare.once, IN_FLIGHT, BARE_S))
    return case, found


async def entered(place: Place, name: str, count: int) -> list[Client]:
    clients = [Client(place.fleet, f"{name}-{n}", "501") for n in range(count)]

    async def enter(client: Client) -> None:
        await place.fleet.enter(client.user, "501")
        await client.request()

    await many(enter, clients)
    return clients


async def ours(place: Place, tag: str) -> list[Case | Figure]:
    flush_ms, claim_ms = await verbs_ms(place.database)
    clients = await entered(place, f"p{tag}", PACED)
    phases, found = await pauses(place, clients)
    print(f"{place.name}: {dict(found)}", flush=True)
    blocked = sorted(one["total"] for one in phases)
    seen = sorted(client.longest_ms for client in clients)
    most = flush_ms + claim_ms + ABOVE_MS
    figures: list[Case | Figure] = [
        Figure(f"{place.name}: one flush", "ms", [flush_ms]),
        Figure(f"{place.name}: one claim", "ms", [claim_ms]),
        Figure(f"{place.name}: blocked p50 at {PER_S}/s", "ms", [median(blocked)], round(most, 1)),
        Figure(f"{place.name}: blocked p99", "ms", [blocked[int(len(blocked) * 0.99)]]),
        Figure(f"{place.name}: blocked max", "ms", [blocked[-1]]),
        Figure(f"{place.name}: slowest request p50", "ms", [median(seen)]),
        Figure(f"{place.name}: slowest request max", "ms", [seen[-1]]),
        Figure(f"{place.name}: of {found['requests']} requests lost", "requests", [found["lost"]], 0),
        Figure(f"{place.name}: doubled", "requests", [found["doubled"]], 0),
    ]
    for phase in ("freeze", "flush", "accept"):
        took = [one.get(phase, 0.0) for one in phases]
        figures.append(Figure(f"{place.name}: of it {phase} p50", "ms", [median(took)]))
    case, went_back = await unthrottled(place, await entered(place, f"u{tag}", USERS))
    print(f"{place.name}: unthrottled {dict(went_back)}", flush=True)
    return [*figures, case]


# -- document 001


async def in_documented_order(name: str, database: Database, tag: str) -> list[Case | Figure]:
    found: Counter[str] = Counter()
    async with documented.town_on(database) as town:
        users = [f"d{tag}-{n}" for n in range(DOCUMENTED)]
        for user in users:
            await town.enter(user)
        await town.close_source()

        async def one(user: str) -> None:
            client = documented.Client(town, user)
            playing = asyncio.create_task(client.play(REQUEST_EVERY_S))
            await asyncio.sleep(BEFORE_S)
            await town.move(user)
            await asyncio.sleep(AFTER_S)
            client.is_over = True
            await playing
            await asyncio.gather(*town.logins)
            client.settle()
            found.update(client.found)

        await at_rate(one, users)
        took = sorted(town.pauses_ms)
    print(f"{name}, documented order: {dict(found)}", flush=True)
    lost = ("served by nobody", "waited 5 s in vain", "forgotten", "doubled")
    return [
        Figure(f"{name}: documented order, away p50", "ms", [median(took)]),
        Figure(f"{name}: documented order, away max", "ms", [took[-1]]),
        *(
            Figure(f"{name}: documented, of {found['sent']} {what}", "requests", [found[what]])
            for what in lost
        ),
        Figure(f"{name}: documented, of {DOCUMENTED} two owners", "users", [found["two owners"]]),
    ]


# -- databases


@asynccontextmanager
async def place_on(name: str, url: str, folder: Path) -> AsyncIterator[Place]:
    async with fleet_on(url, folder) as fleet:
        url = url or Loaded.load(environ={"ROOST_DATA": str(folder)}).settings.database_url
        async with open_database(url) as database, claims_on(url) as target:
            yield Place(name, fleet, database, target)


async def on_sqlite(folder: Path) -> list[Case | Figure]:
    async with place_on("SQLite", "", folder) as place:
        return [*await ours(place, "s"), *await in_documented_order(place.name, place.database, "s")]


async def on_postgresql(url: str, proxy: Slowed, folder: Path) -> list[Case | Figure]:
    cases: list[Case | Figure] = []
    async with place_on("", url, folder) as place:
        for tag, added in enumerate(LATENCIES_MS):
            proxy.delay(added)
            here = place._replace(name=f"PostgreSQL +{added:g} ms")
            cases += await ours(here, f"{tag}")
            cases += await in_documented_order(here.name, here.database, f"{tag}")
    return cases


def main() -> list[Case | Figure]:
    if reason := missing_database("postgresql"):
        sys.exit(f"this benchmark {reason}")
    with tempfile.TemporaryDirectory() as folder:
        cases = uvloop.run(on_sqlite(Path(folder)))
    with run_postgresql(durable=True) as server, slowed(server.port) as proxy:
        url = server.url.replace(f":{server.port}/", f":{proxy.port}/")
        with tempfile.TemporaryDirectory() as folder:
            cases += uvloop.run(on_postgresql(url, proxy, Path(folder)))
    return cases


if __name__ == "__main__":
    path = result_file()
    sys.exit(publish("move", "users per second, and milliseconds", METHOD, main(), path))
