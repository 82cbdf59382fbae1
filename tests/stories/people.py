"""People of an evening: clients of a waiting room as `docs/clients.md` has them, impatient ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import (
    ClientError,
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    ClientWSTimeout,
    WSMsgType,
)

from roost.api.queue import RECEIPT_HEADER, TICKET_HEADER, PlaceReply
from roost.sdk.play import GateRefused, Player, play
from roost.testing import eventually
from tests.faults.harness import Proxy

PAUSE_S = 0.2
BREATH_S = 0.002
"""Between two messages of somebody who plays without pause: on a fast machine 128 KiB/s, which one connection
may send, would be too few."""
"""Between two questions: they ask more often than they are told to, lest the evening take all night."""
PATIENCE = ClientTimeout(total=3)
FAULTS = (ClientError, TimeoutError, OSError)


class Person:
    """Enters, asks again and again until they are in, comes back by the receipt where the place is gone."""

    def __init__(self, name: str, session: ClientSession, gateways: Callable[[], list[str]]) -> None:
        self.name = name
        self.place = PlaceReply("NONE")
        self.answers = 0
        self.unanswered = 0
        """Questions to which no gateway had a good answer."""
        self.heard: list[str] = []
        self._session = session
        self._gateways = gateways
        self._receipt = ""
        self._wants_in = False
        self._inside: ClientWebSocketResponse | None = None
        self._player: Player | None = None
        self._train: Proxy | None = None
        self._playing: asyncio.Task[None] | None = None
        self._has_enough = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_inside(self) -> bool:
        return self._inside is not None and not self._inside.closed

    # -- the line

    async def enter(self) -> None:
        """Ask to come in, and go on asking until they are in."""
        self._wants_in = True
        await eventually(self._enters, f"an answer for {self.name}")
        if not self._tasks:
            self._tasks.append(asyncio.create_task(self._keep_asking()))

    async def has(self, holds: Callable[[PlaceReply], bool], what: str) -> PlaceReply:
        """Wait for it in an answer that is yet to come."""
        before = self.answers
        await eventually(
            lambda: self.answers > before and holds(self.place), f"{self.name} {what}", 30, self._details
        )
        return self.place

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_S)
            if self._wants_in:
                await self._ask("GET", f"/api/queue/status?userId={self.name}")
            if self._must_enter_again:
                await self._enters()

    @property
    def _must_enter_again(self) -> bool:
        """Their place is gone, or held inside for them."""
        return self._wants_in and self.place.status in ("NONE", "ENTERED")

    async def _enters(self) -> bool:
        return await self._ask("POST", "/api/queue/entry", {"userId": self.name})

    async def _ask(self, method: str, path: str, body: Any = None) -> bool:
        """At the first gateway that answers; False if none did."""
        headers = {RECEIPT_HEADER: self._receipt} if self._receipt else {}
        for gateway in self._gateways():
            with contextlib.suppress(*FAULTS):
                asking = self._session.request(
                    method, gateway + path, json=body, headers=headers, timeout=PATIENCE
                )
                async with asking as answer:
                    if answer.status == 200:
                        self._take(await answer.read())
                        return True
        self.unanswered += 1
        return False

    def _take(self, body: bytes) -> None:
        self.place = msgspec.json.decode(body, type=PlaceReply)
        self._receipt = self.place.receipt or self._receipt
        self.answers += 1

    def _details(self) -> str:
        return f"The last answer: {self.place}"

    # -- the game

    async def go_in(self) -> str:
        """With the ticket, to wherever the last answer says, until a server lets them in; its URL."""
        urls: list[str] = []

        async def is_in() -> bool:
            place = self.place
            if place.status != "PROMOTED" or not place.server_url:
                return False
            urls.append(place.server_url)
            return await self._is_let_in(place.server_url)

        await eventually(is_in, f"{self.name} to be let in", 30, lambda: f"{self._details()} after {urls}")
        return urls[-1]

    async def _is_let_in(self, url: str) -> bool:
        """If not they ask again where to go."""
        before = self.answers
        try:
            await self.connect(url)
        except FAULTS:
            await eventually(lambda: self.answers > before, f"another answer for {self.name}")
            return False
        return True

    async def connect(self, url: str) -> None:
        """To this server with the ticket of the last answer; a refusal is a `WSServerHandshakeError`."""
        headers = {TICKET_HEADER: self.place.ticket_id}
        async with asyncio.timeout(2):
            ws = await self._session.ws_connect(url, headers=headers, timeout=ClientWSTimeout(ws_close=2))
        self._inside, self._wants_in = ws, False
        self._tasks.append(asyncio.create_task(self._listen(ws)))

    async def _listen(self, ws: ClientWebSocketResponse) -> None:
        async for message in ws:
            if message.type is WSMsgType.TEXT:
                self.heard.append(message.json().get("message", ""))

    async def log_in(self, *, from_a_train: bool = False) -> None:
        """At the gate that the ticket is for; from there on every message finds its way home.

        Who sits in a train can be cut off, see `cut_off`.
        """
        place = self.place
        assert place.status == "PROMOTED", place
        url = place.server_url
        if from_a_train:
            self._train = Proxy(int(url.rpartition(":")[2]))
            await self._train.start()
            url = self._train.url.replace("redis", "ws")
        self._player = await play(url, place.ticket_id).__aenter__()
        self._wants_in = False

    async def count(self) -> object:
        """One more, at home, wherever that is."""
        return await self.request("count")

    async def request(self, body: object) -> Any:
        """What their home answers; whoever is refused asks again when told to."""
        assert self._player is not None, f"{self.name} has not logged in"
        async with asyncio.timeout(30):
            while True:
                try:
                    return await self._player.request(body)
                except GateRefused as refused:
                    await asyncio.sleep(refused.retry_after_s or PAUSE_S)

    async def version(self) -> str:
        """Of the program that answers for them."""
        assert self._player is not None, f"{self.name} has not logged in"
        return str((await self._player.request("version"))["version"])

    async def play(self) -> None:
        """Count without pause until `stop_playing`, and see that every number is the one after the last."""
        first = int(str(await self.count()))
        self._playing = asyncio.create_task(self._keep_counting(first))

    async def _keep_counting(self, last: int) -> None:
        while not self._has_enough:
            number = int(str(await self.count()))
            assert number == last + 1, f"{self.name} had counted to {last} and was told {number}"
            last = number
            await asyncio.sleep(BREATH_S)

    async def stop_playing(self) -> int:
        """On how many connections that was."""
        assert self._playing is not None, f"{self.name} does not play"
        assert self._player is not None
        self._has_enough = True
        await self._playing
        return self._player.connects

    async def cut_off(self) -> None:
        """Gone without a farewell; coming back they show a ticket for the place that is held for them."""
        assert self._player is not None, f"{self.name} has not logged in"
        assert self._train is not None, f"nothing can cut {self.name} off"
        player, self._player = self._player, None
        await self._train.close()
        await player.close()  # which finds nobody to take leave of

    async def speak(self) -> None:
        """Say something that is heard by everybody there, so by themselves."""
        assert self._inside is not None, f"{self.name} is in no game"
        word = f"{self.name} says {len(self.heard)}"
        await self._inside.send_str(word)
        await eventually(lambda: word in self.heard, f"{self.name} to be heard", 30)

    async def sent_away(self) -> None:
        await eventually(lambda: not self.is_inside, f"{self.name} to be sent away", 30)

    async def leave(self) -> None:
        """For good, in whatever they are."""
        tasks, self._tasks = self._tasks, []
        tasks += [self._playing] if self._playing is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._player is not None:
            await self._player.close()
        if self._inside is not None:
            await self._inside.close()
