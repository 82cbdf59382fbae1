"""SQLite: a file beside the process, one writer thread in each process that uses it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from roost.core.errors import StartFailed
from roost.db import verbs
from roost.db.errors import DatabaseOverloaded, DatabaseUnavailable
from roost.db.model import Flush, FlushResult
from roost.db.options import DatabaseOptions
from roost.db.statements import statements
from roost.db.steps import upgrade
from roost.db.url import DatabaseUrl
from roost.db.verbs import Steps
from roost.db.writer import LEAST_SQLITE, Writer

T = TypeVar("T")


class SqliteBackend:
    def __init__(self, url: DatabaseUrl, options: DatabaseOptions) -> None:
        self.known = statements("sqlite")
        self._url, self._options = url, options
        self._writer = Writer(url, options, partial(upgrade, "sqlite"))

    @classmethod
    async def open(cls, url: DatabaseUrl, options: DatabaseOptions) -> SqliteBackend:
        if sqlite3.sqlite_version_info < LEAST_SQLITE:
            least = ".".join(map(str, LEAST_SQLITE))
            raise StartFailed(
                f"SQLite here is {sqlite3.sqlite_version}, {least} is needed", hint="take a newer Python"
            )
        backend = cls(url, options)
        await backend._writer.open()
        return backend

    @property
    def healthy(self) -> bool:
        return self._writer.healthy

    async def perform(self, make: Callable[[], Steps[T]], *, writes: bool) -> T:
        self._check_room(1)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                result: T = await self._writer.submit(make, writes)
                return result
        except TimeoutError:
            raise self._late() from None

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        try:
            self._check_room(len(flushes))
        except DatabaseOverloaded as error:
            return [error] * len(flushes)
        futures: list[asyncio.Future[Any]] = [
            self._writer.submit(partial(verbs.flush, self.known, one), True) for one in flushes
        ]
        if futures:
            await asyncio.wait(futures, timeout=self._options.timeout_s)
        return [self._result(future) for future in futures]

    async def close(self) -> None:
        await self._writer.close()

    def _result(self, future: asyncio.Future[Any]) -> FlushResult | Exception:
        if not future.done():
            future.cancel()
            return self._late()
        error = future.exception()
        if error is not None:
            assert isinstance(error, Exception)
            return error
        result: FlushResult = future.result()
        return result

    def _check_room(self, more: int) -> None:
        if self._writer.waiting + more > self._options.max_waiting:
            raise DatabaseOverloaded(f"{self._writer.waiting} calls wait for {self._url}")

    def _late(self) -> DatabaseUnavailable:
        return DatabaseUnavailable(f"{self._url} did not answer within {self._options.timeout_s:g} s")
