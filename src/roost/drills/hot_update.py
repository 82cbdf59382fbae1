"""A hot update while people play, on processes of its own: the rehearsal of document 001.

501 (version 1.0) holds the users, clients ask it for its version without pause; 502 (version 2.0) is started,
501 is emptied by the hot update and ends by itself. With `kill` one of those who take part dies meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession

from roost.api import Message
from roost.api.drain import CertificateView, JobView
from roost.core.errors import InvalidInput, Unavailable
from roost.drills.asking import Asker, visit
from roost.drills.client_book import ClientBook
from roost.drills.homes import NEW_VERSION, OLD, OLD_VERSION, Homes, Operator
from roost.drills.launch import GuaranteeView
from roost.drills.ledger import Verdict, judged
from roost.drills.processes import DATABASE
from roost.drills.update_verdicts import answer_ms, certificate_verdict, job_verdict, old_server, verdicts
from roost.store import scopes
from roost.store.store import Store
from roost.store.url import parse_store_url

KILLS = ("source", "target", "controller", "gate", "store")
LOOK_S = 0.1
READY_S = 60.0
"""For a server to take users, for a client to see a version, for the old server to end."""
JOB_S = 120.0
"""Beyond what the rate alone would take: a kill costs leases, and whoever returned is tried again."""
QUARTERS = 4
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class HotUpdatePlan:
    folder: Path
    clients: int = 10
    users: int = 2000
    """Bound and cached, the clients among them."""
    rate: int = 100
    kill: str = ""

    def check(self) -> None:
        if self.kill and self.kill not in KILLS:
            raise InvalidInput(f"nobody can kill {self.kill!r}", hint=f"--kill {'|'.join(KILLS)}")
        if not 1 <= self.clients <= self.users:
            raise InvalidInput("at least one client, and no more of them than users")


class EventView(Message):
    at_s: float
    what: str


class ClientView(Message):
    user: str
    gate: str
    asked: int
    answered: int
    refused: dict[str, int]
    unknown: int
    versions: list[str]
    connects: int
    slowest_ms: float


class HotUpdateReport(Message):
    kill: str
    users: int
    rate: int
    seconds: float
    requests: int
    answer_p50_ms: float
    answer_p99_ms: float
    answer_max_ms: float
    timeline: list[EventView]
    clients: list[ClientView]
    certificate: CertificateView | None
    verdicts: list[GuaranteeView]
    folder: str
    """Of the logs."""

    @property
    def passed(self) -> bool:
        return all(one.held for one in self.verdicts)


async def hot_update(plan: HotUpdatePlan, say: Say = lambda line: None) -> HotUpdateReport:
    """Run it to its end, whatever happens in it; the report says what held."""
    plan.check()
    homes = Homes(
        plan.folder,
        class_name="JournalReference" if plan.kill else "Reference",
        gates=2 if plan.kill == "gate" else 1,
        managers=2 if plan.kill == "controller" else 1,
        targets=2 if plan.kill == "target" else 1,
    )
    started = time.monotonic()
    async with homes.open(homes.first), ClientSession() as session:
        return await _Drill(plan, homes, Operator(homes, session), say, started).run()


@dataclass(slots=True)
class _Drill:
    plan: HotUpdatePlan
    homes: Homes
    operator: Operator
    say: Say
    started: float
    timeline: list[EventView] = field(default_factory=list)
    books: list[ClientBook] = field(default_factory=list)
    job: JobView | None = None
    killed: str = ""
    """Name of the process that was killed."""

    async def run(self) -> HotUpdateReport:
        plan = self.plan
        self._tell(f"{', '.join(self.homes.first)} are up")
        await self._until(self._takes_users(OLD), f"{OLD} to take users")
        cached = [f"cached-{number}" for number in range(plan.users - plan.clients)]
        await visit(cached, self._urls(0), "count")
        self._tell(f"{len(cached)} users came and left, {OLD} keeps them in memory")
        askers = [self._client(number) for number in range(plan.clients)]
        asking = [asyncio.create_task(asker.run()) for asker in askers]
        try:
            await self._all_see(OLD_VERSION)
            await self._update()
            await self._all_see(NEW_VERSION)
            await self._until(self._old_has_ended, f"{OLD} to end", must=False)
        finally:
            for asker in askers:
                asker.stop()
            await asyncio.gather(*asking)
        strayed = await self._strayed(cached)
        return self._report(strayed, await self.operator.users_on(OLD))

    def _client(self, number: int) -> Asker:
        gates = list(self.homes.gates)
        book = ClientBook(f"client-{number}", gates[number % len(gates)])
        self.books.append(book)
        return Asker(book, self._urls(number))

    def _urls(self, number: int) -> str:
        """Of all gates, another one first for every client."""
        urls = list(self.homes.gates.values())
        first = number % len(urls)
        return ",".join(urls[first:] + urls[:first])

    # -- the update

    async def _update(self) -> None:
        plan = self.plan
        for server in self.homes.targets:
            await self.homes.start(server)
            await self._until(self._takes_users(server), f"{server} to take users")
            self._tell(f"{server} (version {NEW_VERSION}) is up and takes users")
        self.job = await self.operator.hot_update(OLD, plan.rate)
        self._tell(f"hot update of {OLD} ordered: job {self.job.id}, {plan.rate} users a second")
        await self._until(
            self._job_is_over, "the hot update to be over", plan.users / plan.rate + JOB_S, must=False
        )
        self._tell(f"job {self.job.id} is {self.job.state}{f' ({self.job.why})' if self.job.why else ''}")

    async def _job_is_over(self) -> bool:
        assert self.job is not None
        before, self.job = _done(self.job), await self.operator.job(self.job.id) or self.job
        total, done = max(1, self.job.counts.users), _done(self.job)
        if QUARTERS * done // total > QUARTERS * before // total:
            why = f", {self.job.rate_why}" if self.job.rate_why else ""
            self._tell(f"{done} of {total} users have moved, {self.job.rate_now:.0f}/s{why}")
        is_over = bool(self.job.ended_at)
        if self.plan.kill and not self.killed and not is_over and self._is_time(done / total):
            await self._kill()
        return is_over

    def _is_time(self, share: float) -> bool:
        """A quarter has moved. The target dies later: those who play move last, and some are to be there."""
        if self.plan.kill == "target":
            return bool(self._moved_clients())
        return 1 / QUARTERS <= share < 1

    def _moved_clients(self) -> list[ClientBook]:
        return [book for book in self.books if book.version == NEW_VERSION]

    async def _kill(self) -> None:
        homes = self.homes
        match self.plan.kill:
            case "source":
                self.killed = OLD
            case "target":
                self.killed = self._moved_clients()[0].server
            case "gate":
                self.killed = next(iter(homes.gates))
            case "store":
                self.killed = DATABASE
            case "controller":
                self.killed = await self._controller()
        await homes.end(self.killed)
        there = len(self._moved_clients())
        self._tell(f"kill -9 of the {self.plan.kill}: {self.killed}; {there} clients had seen {NEW_VERSION}")

    async def _controller(self) -> str:
        """The manager that leads the drains."""
        store = await Store.open(parse_store_url("embedded:"), folder=self.homes.data / "store", attach=True)
        try:
            holder = await store.call("HGET", store.keys.leader(scopes.drain()), "holder", idempotent=True)
        finally:
            await store.close()
        name = self.homes.holder_is_in(str(holder, "utf-8") if isinstance(holder, bytes) else str(holder))
        if not name:
            raise Unavailable(f"no manager is known by the leader's name {holder!r}")
        return name

    # -- what it waits for

    def _takes_users(self, server: str) -> Callable[[], Awaitable[bool]]:
        async def takes() -> bool:
            return (await self.operator.servers()).get(server, False)

        return takes

    async def _all_see(self, version: str) -> None:
        async def seen() -> bool:
            return all(book.version == version or book.ended for book in self.books)

        await self._until(seen, f"all clients to see {version}", must=version == OLD_VERSION)
        saw = sum(book.version == version for book in self.books)
        self._tell(f"{saw} of {len(self.books)} clients see version {version}")

    async def _old_has_ended(self) -> bool:
        code = self.homes.ended(OLD)
        if code is not None:
            self._tell(f"{OLD} has ended with {code}")
        return code is not None

    async def _until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within_s: float = READY_S, *, must: bool = True
    ) -> None:
        """Wait for it. `must`: without it the drill cannot go on; else the verdict will tell."""
        deadline = time.monotonic() + within_s
        while not await holds():
            if time.monotonic() > deadline:
                if must:
                    raise Unavailable(f"waited {within_s:g} s for {what}", hint=f"logs: {self.homes.folder}")
                self._tell(f"waited {within_s:g} s in vain for {what}")
                return
            await asyncio.sleep(LOOK_S)

    async def _strayed(self, cached: Sequence[str]) -> list[str]:
        """Users who were never asked anything meanwhile, and are not as they left."""
        urls = [url for name, url in self.homes.gates.items() if name != self.killed]
        found = await visit(cached, ",".join(urls), "get")
        self._tell(f"{len(found)} cached users came again")
        return [
            f"{user} has {state['count']} instead of 1"
            for user, state in found.items()
            if state["count"] != 1
        ]

    def _tell(self, what: str) -> None:
        at_s = round(time.monotonic() - self.started, 1)
        self.timeline.append(EventView(at_s, what))
        self.say(f"{at_s:7.1f} s  {what}")

    # -- what is judged

    def _job_verdict(self) -> Verdict:
        job = self.job
        if job is None:
            return job_verdict("", "", None)
        return job_verdict(job.state, job.why, job.counts, lost_source=OLD if self.killed == OLD else "")

    def _report(self, strayed: Sequence[str], left: int | None) -> HotUpdateReport:
        books, plan = self.books, self.plan
        certificate = self.job.certificate if self.job is not None else None
        found = [
            *verdicts(books, NEW_VERSION, lost_gate=self.killed if plan.kill == "gate" else ""),
            judged("cached users as they were", strayed, f"{plan.users - plan.clients} users"),
            old_server(OLD, self.homes.ended(OLD), left, was_killed=self.killed == OLD),
            self._job_verdict(),
            certificate_verdict(certificate, self.killed if plan.kill == "gate" else ""),
        ]
        if plan.kill:
            missed = [] if self.killed else ["everybody had moved before: more users, or a lower rate"]
            found.append(judged("killed in the middle", missed, f"kill -9 of {self.killed}"))
        return HotUpdateReport(
            kill=plan.kill,
            users=plan.users,
            rate=plan.rate,
            seconds=round(time.monotonic() - self.started, 1),
            requests=sum(book.asked for book in books),
            answer_p50_ms=answer_ms(books, 0.5),
            answer_p99_ms=answer_ms(books, 0.99),
            answer_max_ms=answer_ms(books, 1.0),
            timeline=self.timeline,
            clients=[_client_view(book) for book in books],
            certificate=certificate,
            verdicts=[GuaranteeView(one.guarantee, one.held, one.said) for one in found],
            folder=str(plan.folder),
        )


def _done(job: JobView) -> int:
    counts = job.counts
    return counts.moved + counts.released + counts.gone


def _client_view(book: ClientBook) -> ClientView:
    return ClientView(
        user=book.user,
        gate=book.gate,
        asked=book.asked,
        answered=book.answered,
        refused=dict(book.refused),
        unknown=book.unknown,
        versions=book.versions,
        connects=book.connects,
        slowest_ms=round(book.slowest_s * 1000, 1),
    )
