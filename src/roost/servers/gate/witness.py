"""Counts for drains: sees which jobs run, opens a book for each, and tells what is in it.

A job that is seen is told of at once, because the first user is not moved before every gate counts. When no
move is under way any more, what was taken until then is waited for, and the last report is told. A store that
does not answer stops no counting.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from roost.binding.drain.certificate import GateReport, together
from roost.binding.drain.model import RunningJob
from roost.core.errors import RoostError
from roost.servers.gate.carrier import Carrier
from roost.servers.gate.counting import MOST_USERS, Book, Books

LOOK_S = 1.0
"""How often it is asked which jobs run."""
TELL_S = 3.0
"""How often a report is told that is not the last."""
MOST_CLOSED = 200
"""Jobs that have ended whose count is kept: as many as the store keeps."""
LEAVE_S = 2.0
"""How long a gate that stops tries to tell its last reports."""


class Jobs(Protocol):
    """What is used of `Drains`."""

    async def running(self) -> Sequence[RunningJob]: ...

    async def tell(self, job_id: str, gate: str, report: GateReport) -> None: ...


class Watched(Protocol):
    """The gate, as its witness sees it."""

    def carriers(self, type_: str) -> Iterable[Carrier]: ...


class Account:
    """A book, and what was told of it."""

    def __init__(self, book: Book, gate: str, before: GateReport | None = None) -> None:
        self.book = book
        self.gate = gate
        """The gate's name when it began to count."""
        self.before = before
        """What it had counted when the job had ended, before it went on by a rollback."""
        self.state = ""
        """Of the job, as it was seen last; `told_state`: when something was told."""
        self.told_state = ""
        self.is_counting = False
        self.told_at: float | None = None
        self.is_told = False
        """Whether the last report was taken."""

    @property
    def is_final(self) -> bool:
        return not self.is_counting and self.book.open == 0

    def is_due(self, now: float) -> bool:
        if self.is_told:
            return False
        is_news = self.told_at is None or self.told_state != self.state
        return self.is_final or is_news or now - (self.told_at or 0.0) >= TELL_S

    def report(self) -> GateReport:
        counted = self.book.report(self.gate, time.time(), is_final=self.is_final, seen=self.state)
        return counted if self.before is None else together(self.before, counted)


class Witness:
    def __init__(
        self,
        jobs: Jobs,
        gate: Watched,
        books: Books,
        name: Callable[[], str],
        *,
        clock: Callable[[], float] = time.monotonic,
        most_users: int = MOST_USERS,
    ) -> None:
        """`name`: `gate_name` of this gate as discovery has it now, by which its reports are known."""
        self.accounts: dict[str, Account] = {}
        """By job."""
        self.closed: dict[tuple[str, str], GateReport] = {}
        """(job, the gate's name) → what was counted for a job that has ended."""
        self.told = 0
        self.is_over = False
        self._jobs = jobs
        self._gate = gate
        self._books = books
        self._name = name
        self._clock = clock
        self._most_users = most_users
        self._one_at_a_time = asyncio.Lock()

    async def step(self) -> None:
        """See which jobs run, and tell what is due. Raises if something could not be told, after the rest."""
        async with self._one_at_a_time:
            if not self.is_over:
                self._heed(await self._jobs.running())
                await self._tell()

    async def leave(self) -> None:
        """The gate stops and has sent everybody away: its last reports, within a bounded time."""
        self.is_over = True
        with contextlib.suppress(TimeoutError, RoostError):
            async with asyncio.timeout(LEAVE_S), self._one_at_a_time:
                for account in self.accounts.values():
                    self._stop(account)
                await self._tell()

    def _heed(self, running: Sequence[RunningJob]) -> None:
        """Begin and end to count as the jobs say."""
        for gone in self.accounts.keys() - {job.id for job in running}:
            self._close(gone, self.accounts.pop(gone))
        for job in running:
            account = self.accounts.get(job.id)
            if account is None:
                account = self.accounts[job.id] = self._open(job)
            account.state = job.state
            if job.is_settled:
                self._stop(account)
            else:
                self._begin(account)

    def _book(self, job: RunningJob) -> Book:
        return Book(job.id, job.type, self._clock, most_users=self._most_users)

    def _open(self, job: RunningJob) -> Account:
        name = self._name()
        return Account(self._book(job), name, self.closed.pop((job.id, name), None))

    def _close(self, job: str, account: Account) -> None:
        """The job has ended; if it goes on, what was counted is told with what will be."""
        self._stop(account)
        self.closed[job, account.gate] = account.report()
        if len(self.closed) > MOST_CLOSED:
            del self.closed[next(iter(self.closed))]

    def _begin(self, account: Account) -> None:
        """Also of a job that goes on, by a rollback, after its last report was told."""
        if account.is_counting:
            return
        account.is_counting, account.is_told, account.told_at = True, False, None
        self._books.add(account.book)
        for carrier in self._gate.carriers(account.book.type):
            carrier.count_for(account.book)

    def _stop(self, account: Account) -> None:
        if not account.is_counting:
            return
        account.is_counting = False
        self._books.remove(account.book)
        for carrier in self._gate.carriers(account.book.type):
            carrier.leave_out(account.book)

    async def _tell(self) -> None:
        failed: RoostError | None = None
        for job, account in self.accounts.items():
            if account.is_due(self._clock()):
                try:
                    await self._tell_one(job, account)
                except RoostError as error:
                    failed = error
        if failed is not None:
            raise failed

    async def _tell_one(self, job: str, account: Account) -> None:
        """NB: the report is made before the call; what happens meanwhile is in the next one."""
        told = account.report()
        await self._jobs.tell(job, told.gate, told)
        if (other := self._name()) != told.gate:  # registered again: what it counted is under the first name
            bare = GateReport(gate=other, is_final=told.is_final, seen=told.seen, at=told.at)
            await self._jobs.tell(job, other, bare)
        self.told += 1
        account.told_at, account.told_state = self._clock(), told.seen
        account.is_told = told.is_final
