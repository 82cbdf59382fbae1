"""Players who send at a constant rate, whatever comes back: a stall shows as waiting, not as fewer sent."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import roost
from roost.core.errors import OutcomeUnknown, RoostError
from roost.sdk.play import GateRefused, Player, Reply
from tests.faults.homes import Acknowledged, Town

TICK_S = 0.01
LOGINS = 50
"""At once."""
UNKNOWN = "OUTCOME_UNKNOWN"


@dataclass
class Sender:
    """One user, who has rising numbers written into their book."""

    player: Player
    sent: int = 0
    acknowledged: dict[int, Acknowledged] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)
    book: list[int] = field(default_factory=list)
    version: str = ""
    _answers: set[asyncio.Future[Reply]] = field(default_factory=set)

    async def send(self) -> asyncio.Future[Reply]:
        self.sent += 1
        number, began = self.sent, time.monotonic()
        answer = await self.player.send({"n": number})
        self._answers.add(answer)
        answer.add_done_callback(lambda done: self._settle(number, began, done))
        return answer

    def _settle(self, number: int, began: float, answer: asyncio.Future[Reply]) -> None:
        self._answers.discard(answer)
        error = None if answer.cancelled() else answer.exception()
        self.waits.append(time.monotonic() - began)
        if isinstance(error, OutcomeUnknown) or answer.cancelled():
            self.unknown.add(number)
        elif isinstance(error, GateRefused):
            self.refused[number] = error.reason
        elif error is None:
            self.acknowledged[number] = Acknowledged(time.monotonic(), answer.result().result)
        else:
            self.refused[number] = str(error)

    async def read(self, within_s: float) -> None:
        """What the book holds in the end, and the version of whoever has it."""
        if self._answers:
            await asyncio.wait(set(self._answers), timeout=within_s)
        deadline = time.monotonic() + within_s
        while not self.version:
            try:
                self.book = await self.player.request({})
                self.version = await self.player.request({"version": 1})
            except RoostError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.player.user} reads nothing: {error.message}") from error
                await asyncio.sleep(0.5)


class SteadyCrowd:
    def __init__(self, town: Town, users: int, messages_per_s: float) -> None:
        self._town = town
        self._users = [f"u{number:05d}" for number in range(users)]
        self._rate = messages_per_s
        self._sending: asyncio.Task[None] | None = None
        self.senders: list[Sender] = []
        self.gate_of: dict[str, str] = {}
        """By user, the gate to which they connected first."""

    async def come(self) -> None:
        for start in range(0, len(self._users), LOGINS):
            self.senders += await asyncio.gather(*map(self._log_in, self._users[start : start + LOGINS]))
        self._sending = asyncio.create_task(self._send())

    async def _log_in(self, user: str) -> Sender:
        first, *others = random.sample(list(self._town.gates), len(self._town.gates))
        self.gate_of[user] = first
        urls = ",".join(self._town.gates[name] for name in (first, *others))
        player = roost.play(urls, self._town.token(user))
        await player.__aenter__()
        return Sender(player)

    async def _send(self) -> None:
        """Open loop: what is due goes out, also if nothing of the last ones came back."""
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * self._rate)
            batch = [self.senders[number % len(self.senders)] for number in range(sent, due)]
            sent = max(sent, due)
            for sender in batch:
                await sender.send()
            await asyncio.sleep(TICK_S)

    async def all_at_once(self) -> None:
        """Everybody sends something; until a good half has the answer."""
        answers = [await sender.send() for sender in self.senders]
        for answer in answers[: len(answers) * 2 // 3]:
            await asyncio.wait([answer], timeout=1.0)

    async def stop_sending(self) -> None:
        assert self._sending is not None
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)

    async def leave(self, within_s: float) -> None:
        """Send no more, wait for every answer, and read every book."""
        await self.stop_sending()
        await asyncio.gather(*(sender.read(within_s) for sender in self.senders))
        await asyncio.gather(*(sender.player.close() for sender in self.senders))

    # -- what became of it

    def check_books(self) -> None:
        """Order and exactly-once hold for everybody; what was acknowledged is there."""
        for sender in self.senders:
            user, book = sender.player.user, sender.book
            assert book == sorted(set(book)), f"{user}: doubled or out of order: {book}"
            executed = set(book)
            assert not executed & sender.refused.keys(), f"{user}: refused and executed all the same"
            assert executed <= sender.acknowledged.keys() | sender.unknown, f"{user}: never sent"

    def lost(self) -> list[Acknowledged]:
        """Acknowledged, and not in the book."""
        return [
            answer
            for sender in self.senders
            for number, answer in sender.acknowledged.items()
            if number not in sender.book
        ]

    def unanswered(self) -> Counter[str]:
        """Requests without a result, by what was said of them."""
        told = Counter(reason for sender in self.senders for reason in sender.refused.values())
        return told + Counter({UNKNOWN: sum(len(sender.unknown) for sender in self.senders)})

    def sent(self) -> int:
        return sum(sender.sent for sender in self.senders)

    def reconnected(self) -> set[str]:
        """Users who were disconnected at least once."""
        return {sender.player.user for sender in self.senders if sender.player.connects > 1}

    def versions(self) -> set[str]:
        return {sender.version for sender in self.senders}

    def summary(self) -> str:
        waits = sorted(wait for sender in self.senders for wait in sender.waits)
        lost, without = len(self.lost()), dict(self.unanswered())
        return (
            f"{len(self.senders)} users, {self.sent()} requests at {self._rate:g}/s: {lost} lost, "
            f"without a result {without}, {len(self.reconnected())} reconnected; "
            f"answers p50 {waits[len(waits) // 2] * 1000:.0f} ms, "
            f"p99 {waits[len(waits) * 99 // 100] * 1000:.0f} ms, longest {waits[-1] * 1000:.0f} ms"
        )
