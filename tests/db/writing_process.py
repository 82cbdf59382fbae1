"""A process that flushes as fast as it can and says on its output what was acknowledged: `user revision`."""

from __future__ import annotations

import asyncio
import os
import sys

from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.model import Claimed, Flush, Flushed

CALLERS = 16


async def write(db: Database, user: str) -> None:
    assert isinstance(await db.claim("entity", user, Owner("501", "l"), 5, judged=0), Claimed)
    for revision in range(1, 1_000_000):
        answer = await db.flush(Flush("entity", user, 5, revision, f"{user} {revision}".encode() * 20))
        assert answer == Flushed()
        os.write(1, f"{user} {revision}\n".encode())


async def main(url: str) -> None:
    async with open_database(url) as db:
        await asyncio.gather(*(write(db, f"user-{n}") for n in range(CALLERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
