"""Books on a database that fails 15 % of all calls: half of them before, half after they were carried out."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

from roost.db.database import Database
from roost.db.errors import DatabaseUnavailable
from tests.faults.book import JournaledBook

__all__ = ["JournaledBook"]

SHARE = 0.15
VERBS = ("claim", "flush", "flush_many", "release")

Verb = Callable[..., Coroutine[Any, Any, Any]]


def failing(verb: Verb) -> Verb:
    async def call(*args: Any, **more: Any) -> Any:
        fate = random.random()
        if fate < SHARE / 2:
            raise DatabaseUnavailable("it failed, as it was told to")
        answer = await verb(*args, **more)
        if fate < SHARE:
            raise DatabaseUnavailable("its answer was lost, as it was told to")
        return answer

    return call


for name in VERBS:
    setattr(Database, name, failing(getattr(Database, name)))
