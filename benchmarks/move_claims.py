"""The target of bench_move.py's bare loop of two processes: what it is told of it claims.

move_claims.py DATABASE_URL    reads lines `user epoch`, answers each with the user when the claim stands
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvloop

from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.model import Claimed

TYPE = "bare"
OWNER = Owner("502", "life")
READ_BYTES = 65536


class Lines:
    """Lines that come and go through pipes; those of one turn of the loop leave together."""

    def __init__(self, reader: asyncio.StreamReader, write: Callable[[bytes], object]) -> None:
        self._reader = reader
        self._write = write
        self._unsent: list[str] = []
        self._loop = asyncio.get_running_loop()

    def send(self, line: str) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(line)

    def _flush(self) -> None:
        self._write("".join(f"{line}\n" for line in self._unsent).encode())
        self._unsent.clear()

    async def heard(self) -> AsyncIterator[list[str]]:
        rest = b""
        while data := await self._reader.read(READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            yield [line.decode() for line in lines]


class Claims:
    """The process, as its caller sees it."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def claim(self, user: str, epoch: int) -> None:
        self._waiting[user] = asyncio.get_running_loop().create_future()
        self._lines.send(f"{user} {epoch}")
        await self._waiting[user]

    async def listen(self) -> None:
        async for users in self._lines.heard():
            for user in users:
                self._waiting.pop(user).set_result(None)
        sys.exit("the process that claims has ended")


@asynccontextmanager
async def claims_on(url: str) -> AsyncIterator[Claims]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).resolve()),
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    claims = Claims(Lines(process.stdout, process.stdin.write))
    listening = asyncio.create_task(claims.listen())
    try:
        yield claims
    finally:
        listening.cancel()
        process.terminate()
        await process.wait()


async def serve(url: str) -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    lines = Lines(reader, partial(os.write, sys.stdout.fileno()))
    async with (
        open_database(url) as database,
        asyncio.TaskGroup() as claims,
    ):  # one that fails ends the process
        print("ready", flush=True)
        async for asked in lines.heard():
            for line in asked:
                claims.create_task(_claim(database, lines, line))


async def _claim(database: Database, lines: Lines, line: str) -> None:
    user, epoch = line.split()
    claimed = await database.claim(TYPE, user, OWNER, int(epoch), judged=int(epoch) - 1)
    assert isinstance(claimed, Claimed), claimed
    lines.send(user)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
