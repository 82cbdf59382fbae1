"""The clients of a hot update: those who play without pause, and those who came once and are still cached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from roost.core.errors import OutcomeUnknown, RoostError
from roost.drills.client_book import ClientBook
from roost.sdk.play import GateRefused, Player, Reply, play

ROUND = ("version", "count", "count", "count")
"""Sent in one go, so that messages could overtake one another if anything let them."""
PAUSE_S = 0.01
"""Between two rounds: the clients share a machine with what they rehearse."""
REFUSED_S = 0.2
FAILED = "FAILED"
AT_ONCE = 50
"""Visitors at the gate at once."""
TRIES_S = 60.0


class Asker:
    """One client: plays until it is told to stop, and writes down everything that it hears."""

    def __init__(self, book: ClientBook, urls: str) -> None:
        self.book = book
        self._urls = urls
        self._stop = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> None:
        """Until `stop`, then what was under way is answered and the last number is read."""
        try:
            async with play(self._urls, f"dev:{self.book.user}") as player:
                try:
                    while not self._stop.is_set():
                        await self._round(player)
                    self.book.close(await persist(lambda: _standing(player)))
                finally:
                    self.book.connects = player.connects
        except (RoostError, TimeoutError) as error:
            self.book.ended = str(error) or type(error).__name__

    async def _round(self, player: Player) -> None:
        sent = [(op, await self._send(player, op)) for op in ROUND]
        pauses = [await self._take(op, answer) for op, answer in sent]
        await asyncio.sleep(max(PAUSE_S, *pauses))

    async def _send(self, player: Player, op: str) -> asyncio.Future[Reply]:
        at = time.monotonic()
        answer = await player.send({"op": op})
        self.book.asked += 1
        answer.add_done_callback(lambda _: self.book.seconds.append(time.monotonic() - at))
        return answer

    async def _take(self, op: str, answer: asyncio.Future[Reply]) -> float:
        """Write the answer down; how long to wait before the next round."""
        book = self.book
        try:
            result: Any = (await answer).result
        except OutcomeUnknown:
            book.no_answer(counts=op == "count")
            return REFUSED_S
        except GateRefused as refused:
            if refused.reason == FAILED:
                book.failed += 1
            else:
                book.refused[refused.reason] += 1
            return refused.retry_after_s or REFUSED_S
        book.answered += 1
        if op == "count":
            book.counted(result)
        else:
            book.saw_version(result["version"], result["serverId"])
        return 0.0


async def _standing(player: Player) -> int:
    return int((await player.request("get"))["count"])


async def visit(users: Sequence[str], urls: str, op: str) -> dict[str, Any]:
    """Each logs in, asks one thing and leaves: what they were answered. Their servers keep them in memory."""
    room, heard = asyncio.Semaphore(AT_ONCE), dict[str, Any]()

    async def come(user: str) -> None:
        async with room:
            heard[user] = await persist(lambda: _visit(user, urls, op))

    async with asyncio.TaskGroup() as group:
        for user in users:
            group.create_task(come(user))
    return heard


async def _visit(user: str, urls: str, op: str) -> Any:
    async with play(urls, f"dev:{user}") as player:
        return await player.request(op)


async def persist(ask: Callable[[], Any]) -> Any:
    """What it returns; a refusal is asked again, for a while."""
    deadline = time.monotonic() + TRIES_S
    while time.monotonic() < deadline:
        try:
            return await ask()
        except GateRefused as refused:
            await asyncio.sleep(refused.retry_after_s or REFUSED_S)
    return await ask()
