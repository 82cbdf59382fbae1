"""What a database must be able to do: step a verb through its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from roost.db.model import Flush, FlushResult
from roost.db.statements import Statements
from roost.db.verbs import Steps

T = TypeVar("T")


class Backend(Protocol):
    known: Statements

    @property
    def healthy(self) -> bool:
        """Whether the last call reached the database."""

    async def perform(self, make: Callable[[], Steps[T]], *, writes: bool) -> T:
        """Step a verb through; `make` begins it, and begins it anew where it must be repeated."""

    async def flush_many(self, flushes: Sequence[Flush]) -> list[FlushResult | Exception]:
        """One result for each, in their order; never raises."""

    async def close(self) -> None: ...
