"""A database behind a network: sessions from a pool, and verbs that begin anew when a connection is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from roost.core.backoff import Backoff
from roost.db import verbs
from roost.db.errors import DatabaseError, DatabaseUnavailable
from roost.db.model import Flush, FlushResult
from roost.db.options import DatabaseOptions
from roost.db.pool import Pool, Session
from roost.db.statements import DialectName, statements
from roost.db.steps import LOCK_WAIT_S, upgrade
from roost.db.url import DatabaseUrl
from roost.db.verbs import Steps

T = TypeVar("T")

MAX_GROUP_BYTES = 4 << 20
"""Of states that travel together; one larger travels alone."""


class Driver(Protocol):
    """What differs from driver to driver."""

    dialect: DialectName

    async def connect(self) -> Session: ...

    async def check(self, session: Session) -> None:
        """Refuse a server that cannot do what we need; once, at the start."""

    def translated(self, error: Exception) -> Exception:
        """An error of the driver as one of ours; `DatabaseUnavailable` itself is worth another try."""


class NetworkBackend:
    def __init__(self, url: DatabaseUrl, driver: Driver, options: DatabaseOptions) -> None:
        self.known = statements(driver.dialect)
        self.healthy = True
        self._url, self._driver, self._options = url, driver, options
        self._last_fault = ""
        self._pool = Pool(self._connected, options.pool_size, options.max_waiting)

    @classmethod
    async def open(cls, url: DatabaseUrl, driver: Driver, options: DatabaseOptions) -> NetworkBackend:
        backend = cls(url, driver, options)
        session = await backend._connected()
        try:
            async with asyncio.timeout(options.timeout_s + LOCK_WAIT_S):
                await driver.check(session)
                await walk(session, upgrade(driver.dialect))
        except TimeoutError:
            raise backend._late() from None
        except Exception as error:
            raise driver.translated(error) from None
        finally:
            session.terminate()
        return backend

    async def perform(self, make: Callable[[], Steps[T]], *, writes: bool) -> T:
        try:
            async with asyncio.timeout(self._options.timeout_s):
                return await self._until_done(make)
        except TimeoutError:
            self._pool.discard_idle()
            self.healthy = False
            raise self._late() from None

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        results: list[FlushResult | Exception | None] = [None] * len(flushes)
        for group in groups(flushes, self._options.group_size):
            answers = await self._flush_group([flushes[at] for at in group])
            for at, answer in zip(group, answers, strict=True):
                results[at] = answer
        return [result for result in results if result is not None]

    async def close(self) -> None:
        await self._pool.close()

    async def _until_done(self, make: Callable[[], Steps[T]]) -> T:
        """Lost connections and lost deadlocks are repeated; the time of the verb ends it."""
        backoff = Backoff(0.02, 0.5)
        while True:
            try:
                result = await self._once(make)
            except DatabaseUnavailable as error:
                if type(error) is not DatabaseUnavailable:
                    raise
                self.healthy = False
                self._last_fault = error.message
                await asyncio.sleep(backoff.next())
            else:
                self.healthy, self._last_fault = True, ""
                return result

    async def _once(self, make: Callable[[], Steps[T]]) -> T:
        session = await self._pool.take()
        try:
            result: T = await walk(session, make())
        except BaseException as error:
            # Cut in mid-statement or in mid-transaction: nobody knows what its next answer belongs to.
            self._pool.discard(session)
            if not isinstance(error, Exception):
                raise
            found = self._driver.translated(error)
            if isinstance(found, DatabaseUnavailable):
                self._pool.discard_idle()
            raise found from None
        self._pool.put_back(session)
        return result

    async def _flush_group(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        """Together, or each on its own where the group is refused for the fault of one."""
        if len(flushes) == 1:
            return [await self._flush_alone(flushes[0])]
        together = verbs.flush_by_arrays if self.known.flush_many else verbs.flush_in_transaction
        try:
            return list(await self.perform(partial(together, self.known, flushes), writes=True))
        except DatabaseUnavailable as error:
            return [error] * len(flushes)
        except Exception:
            return [await self._flush_alone(flush) for flush in flushes]

    async def _flush_alone(self, flush: Flush) -> FlushResult | Exception:
        try:
            return await self.perform(partial(verbs.flush, self.known, flush), writes=True)
        except Exception as error:
            return error

    async def _connected(self) -> Session:
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                return await self._driver.connect()
        except TimeoutError:
            seconds = self._options.connect_timeout_s
            raise DatabaseUnavailable(f"{self._url} did not answer within {seconds:g} s") from None
        except Exception as error:
            raise self._driver.translated(error) from None

    def _late(self) -> DatabaseError:
        why = f": {self._last_fault}" if self._last_fault else ""
        return DatabaseUnavailable(f"{self._url} did not do it within {self._options.timeout_s:g} s{why}")


async def walk(session: Session, steps: Steps[Any]) -> Any:
    """Step a verb through on this session; what it returns."""
    try:
        statement, args = next(steps)
        while True:
            statement, args = steps.send(await session.run(statement, args))
    except StopIteration as end:
        return end.value


def groups(flushes: Sequence[Flush], most: int) -> Iterator[list[int]]:
    """Places of flushes that may travel together: no user twice, not too many, not too large; sorted by user.

    All locks are taken in one order, so two groups do not wait for each other.
    """
    left = list(range(len(flushes)))
    while left:
        group: dict[tuple[str, str], int] = {}
        later: list[int] = []
        size = 0
        for at in left:
            flush = flushes[at]
            size += len(flush.state) + len(flush.replies)
            key = (flush.type, flush.user)
            full = len(group) >= most or (size > MAX_GROUP_BYTES and group)
            if full or key in group:
                later.append(at)
            else:
                group[key] = at
        yield [group[key] for key in sorted(group)]
        left = later
