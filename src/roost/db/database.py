"""Durable user state: read, claim, flush, release. A refusal by a rule is a value, a fault is an exception.

    async with open_database("sqlite:///users.db") as db:
        match await db.claim("entity", "anna", owner, epoch, judged=0):
            case Claimed(row): …

Every verb may be repeated. A verb whose connection is lost is repeated by itself within its time; after that
`DatabaseUnavailable` is raised and the caller may repeat it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from roost.core.errors import InvalidInput, RoostError
from roost.core.ids import check_id, check_name
from roost.core.owner import Owner
from roost.db import verbs
from roost.db.backend import Backend
from roost.db.errors import DriverMissing, StateTooLarge
from roost.db.model import MAX_NUMBER, Claimed, Flush, FlushResult, Refused, Row
from roost.db.network import Driver, NetworkBackend
from roost.db.options import DatabaseOptions
from roost.db.orders import OrderRow, check_orders, newest
from roost.db.sqlite import SqliteBackend
from roost.db.url import DatabaseUrl, parse_database_url

MAX_VERSION = 2**31 - 1
MAX_LEASE_MS = 3_600_000


class Database:
    """The verbs, the same on every database; bad values are refused before anything is sent."""

    def __init__(self, backend: Backend, options: DatabaseOptions) -> None:
        self._backend, self._options = backend, options

    @property
    def healthy(self) -> bool:
        """Whether the last call reached the database."""
        return self._backend.healthy

    async def ping(self) -> None:
        """Ask the database something; `DatabaseUnavailable` where it does not answer."""
        await self.read("ping", "ping")

    async def read(self, type_: str, user: str) -> Row | None:
        _check_user(type_, user)
        return await self._backend.perform(
            partial(verbs.read, self._backend.known, type_, user), writes=False
        )

    async def claim(
        self,
        type_: str,
        user: str,
        owner: Owner,
        epoch: int,
        *,
        judged: int,
        unless_leased: bool = False,
    ) -> Claimed | Refused:
        """Make `owner` the user's owner under `epoch`, if the row's epoch is `judged` and below it (R5).

        `judged` 0 also makes the row of a user who has none. State, revision and sequence stay as they are.
        `unless_leased`: refused also while the row's owner, if another, holds a lease by `keep_lease`.
        """
        _check_user(type_, user)
        _check_owner(owner)
        _check_number("epoch", epoch, 1)
        _check_number("judged", judged, 0)
        asked = verbs.Claim.make(type_, user, owner, epoch, judged, unless_leased)
        return await self._backend.perform(partial(verbs.claim, self._backend.known, asked), writes=True)

    async def flush(self, flush: Flush) -> FlushResult:
        """Write the state, if the row's epoch is the flush's and its revision is below (R4)."""
        self._check_flush(flush)
        return await self._backend.perform(partial(verbs.flush, self._backend.known, flush), writes=True)

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        """A result for each, in their order: one that fails is its exception and sinks no other."""
        results: list[FlushResult | Exception | None] = [self._fault_of(flush) for flush in flushes]
        good = [at for at, fault in enumerate(results) if fault is None]
        if good:
            answers = await self._backend.flush_many([flushes[at] for at in good])
            for at, answer in zip(good, answers, strict=True):
                results[at] = answer
        return [result for result in results if result is not None]

    async def release(self, type_: str, user: str, owner: Owner, epoch: int) -> bool:
        """Clear the owner and keep the epoch (R8); False where the row is not this owner's at this epoch."""
        _check_user(type_, user)
        _check_owner(owner)
        _check_number("epoch", epoch, 1)
        asked = verbs.Release(type_, user, owner, epoch)
        return await self._backend.perform(partial(verbs.release, self._backend.known, asked), writes=True)

    async def keep_lease(self, type_: str, owner: Owner, ttl_ms: int) -> None:
        """For so long from when the database does it no claim `unless_leased` takes a user from `owner`."""
        _check_lease(type_, owner)
        _check_number("ttl_ms", ttl_ms, 1, MAX_LEASE_MS)
        make = partial(verbs.keep_lease, self._backend.known, type_, owner, ttl_ms)
        await self._backend.perform(make, writes=True)

    async def drop_lease(self, type_: str, owner: Owner) -> None:
        """Nothing happens where none stands."""
        _check_lease(type_, owner)
        make = partial(verbs.drop_lease, self._backend.known, type_, owner)
        await self._backend.perform(make, writes=True)

    async def put_orders(self, rows: Sequence[OrderRow]) -> None:
        """Keep them all, or raise; of two rows of an order the newer stays (`orders.is_newer`)."""
        check_orders(rows)
        if rows:
            make = partial(verbs.put_orders, self._backend.known, newest(rows))
            await self._backend.perform(make, writes=True)

    async def order(self, order_id: int) -> OrderRow | None:
        if not 0 <= order_id <= MAX_NUMBER:
            return None
        make = partial(verbs.order, self._backend.known, order_id)
        return await self._backend.perform(make, writes=False)

    async def last_seq(self, shard: int) -> int:
        """The last command of the shard that wrote one of the rows; 0: none."""
        _check_number("shard", shard, 0, MAX_VERSION)
        return await self._backend.perform(partial(verbs.last_seq, self._backend.known, shard), writes=False)

    async def newest_order_id(self, at_least: int, mask: int, bits: int) -> int:
        """The largest order id from `at_least` on that has these `bits` under the `mask`; 0: none."""
        make = partial(verbs.newest_order_id, self._backend.known, at_least, mask, bits)
        return await self._backend.perform(make, writes=False)

    async def orders_between(self, shard: int, after: int, before: int) -> list[OrderRow]:
        """The rows that commands of the shard between these two numbers have written; neither is included."""
        make = partial(verbs.orders_between, self._backend.known, shard, after, before)
        return await self._backend.perform(make, writes=False)

    async def close(self) -> None:
        await self._backend.close()

    def _fault_of(self, flush: Flush) -> RoostError | None:
        try:
            self._check_flush(flush)
        except RoostError as error:
            return error
        return None

    def _check_flush(self, flush: Flush) -> None:
        _check_user(flush.type, flush.user)
        _check_number("epoch", flush.epoch, 1)
        _check_number("revision", flush.revision, 1)
        _check_number("last_sequence", flush.last_sequence, 0)
        _check_number("schema_version", flush.schema_version, 0, MAX_VERSION)
        _check_number("min_reader", flush.min_reader, 0, MAX_VERSION)
        self._check_size("state", flush.state)
        self._check_size("replies", flush.replies)

    def _check_size(self, what: str, blob: bytes) -> None:
        if not isinstance(blob, bytes):
            raise InvalidInput(f"{what} must be bytes, not {type(blob).__name__}")
        if len(blob) > self._options.max_state_bytes:
            raise StateTooLarge(
                f"{what} has {len(blob)} bytes, at most {self._options.max_state_bytes} are kept"
            )


@asynccontextmanager
async def open_database(
    url: str | DatabaseUrl, *, options: DatabaseOptions | None = None
) -> AsyncIterator[Database]:
    """The database behind a URL, its tables made or brought up to date; closed on the way out."""
    options = options or DatabaseOptions()
    parsed = parse_database_url(url) if isinstance(url, str) else url
    database = Database(await _open_backend(parsed, options), options)
    try:
        yield database
    finally:
        await database.close()


async def _open_backend(url: DatabaseUrl, options: DatabaseOptions) -> Backend:
    """The driver is loaded with the first database that needs it."""
    if url.kind == "sqlite":
        return await SqliteBackend.open(url, options)
    try:
        driver = _driver(url, options)
    except ImportError as error:
        package, extra = ("asyncpg", "postgres") if url.kind == "postgresql" else ("asyncmy", "mariadb")
        raise DriverMissing(
            f"{url.kind}:// needs the package {package} ({error})",
            hint=f"install Roost with its extra: pip install 'roost[{extra}]'",
        ) from None
    return await NetworkBackend.open(url, driver, options)


def _driver(url: DatabaseUrl, options: DatabaseOptions) -> Driver:
    if url.kind == "postgresql":
        from roost.db.postgresql import PostgresqlDriver

        return PostgresqlDriver(url)
    from roost.db.mariadb import MariadbDriver

    return MariadbDriver(url, options)


def _check_user(type_: str, user: str) -> None:
    check_name(type_, "type")
    check_id(user, "user")


def _check_owner(owner: Owner) -> None:
    check_id(owner.server_id, "server id")
    check_id(owner.life, "life")


def _check_lease(type_: str, owner: Owner) -> None:
    check_name(type_, "type")
    _check_owner(owner)


def _check_number(what: str, value: object, least: int, most: int = MAX_NUMBER) -> None:
    if value.__class__ is int and least <= value <= most:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from {least} to {most}")
