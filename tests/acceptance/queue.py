"""One gateway in this process on a real store, and a world whose time passes when the test says so."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roost.app import Platform
from roost.core.lease import MAX_STEP_MS
from roost.core.passes import sign_entry
from roost.core.signing import parse_keys
from roost.gateway.settings import GatewaySettings
from roost.settings import Settings
from roost.testing import Answer, Gateway, Leader, RunningServer, open_gateway, open_store
from roost.waitingroom.settings import QueueSettings
from roost.waitingroom.worlds import World
from tests.acceptance.role_users import in_process

TOKEN = "a-token-for-the-tests"
QUEUE_KEYS = "q1:" + base64.b64encode(b"queue-key-of-the-tests-32-bytes!").decode()
OTHER_KEYS = "q2:" + base64.b64encode(b"another-queue-key-32-bytes-long!").decode()
TICKET_KEYS = "t1:" + base64.b64encode(b"ticket-key-of-the-tests-32-bytes").decode()
UNLIMITED = QueueSettings(ip_per_second=100_000, user_per_second=1000, user_burst=10_000)
LIFE = "7"


@dataclass(kw_only=True)
class Gate(Gateway):
    """A gateway and its world `main`."""

    server: RunningServer
    leader: Leader
    now_us: int = field(default_factory=lambda: time.time_ns() // 1000)
    _shown: dict[str, str] = field(default_factory=dict)
    _reports: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def world(self) -> World:
        return self.platform.worlds.of("main")

    # -- players

    async def try_to_enter(self, user: str = "ann", *, receipt: str = "", **fields: Any) -> Answer:
        body = {"userId": user, **fields}
        return await self.ask("POST", "/api/queue/entry", body, headers=proof(receipt))

    async def enter(self, user: str = "ann", **fields: Any) -> Any:
        answer = await self.try_to_enter(user, **fields)
        assert answer.status == 200, answer.body
        return answer.json

    async def try_status(self, user: str, receipt: str, headers: Mapping[str, str] | None = None) -> Answer:
        sent = {**proof(receipt), **(headers or {})}
        return await self.ask("GET", f"/api/queue/status?userId={user}", headers=sent)

    async def leave(self, user: str, receipt: str) -> Answer:
        return await self.ask("DELETE", f"/api/queue/entry?userId={user}", headers=proof(receipt))

    async def status(self, user: str, receipt: str) -> Any:
        answer = await self.try_status(user, receipt)
        assert answer.status == 200, answer.body
        return answer.json

    async def crowd(self, count: int) -> dict[str, str]:
        """So many people in the line: user → receipt, in their order."""
        return {user: (await self.enter(user))["receipt"] for user in (f"u{n:03}" for n in range(count))}

    # -- game servers

    async def report(self, server: str = "501", capacity: int = 10, users: int = 0, **more: Any) -> Answer:
        """Of a server that discovery shows under `LIFE`, or under the life that is given."""
        given = {"life": LIFE, "number": next(self._reports), "capacity": capacity, "users": users, **more}
        life = given["life"] if given["life"] in ("8", "9") else LIFE
        if life > self._shown.get(server, ""):
            self._shown[server] = life
            await self.leader.shows(server, life)
        path = f"/queue/v1/worlds/main/servers/{server}/report"
        return await self.ask("POST", path, {"counted": 0, **given}, token=TOKEN)

    async def consume(self, ticket: str, server: str = "501", conn: str = "c1", **more: Any) -> Answer:
        given = {"ticketId": ticket, "serverId": server, "life": LIFE, "connection": conn, **more}
        return await self.ask("POST", "/api/queue/tickets/consume", given, token=TOKEN)

    # -- operators and time

    async def govern(self, **patch: Any) -> Answer:
        return await self.ask("PATCH", "/queue/v1/worlds/main", patch, token=TOKEN)

    async def seen(self) -> Any:
        return (await self.ask("GET", "/queue/v1/worlds/main", token=TOKEN)).json

    async def tick(self, seconds: float = 0.0) -> int:
        """Let lease time pass in steps as a leader would, and return how many tickets were issued."""
        issued, left_ms = 0, int(seconds * 1000)
        while True:
            step_ms = min(left_ms, MAX_STEP_MS)
            self.now_us += step_ms * 1000
            ticked = await self.leader.tick()
            issued, left_ms = issued + ticked.issued, left_ms - step_ms
            if left_ms <= 0:
                self.world.room.board.forget()
                return issued

    def hold_the_clock(self, scripts: Any) -> None:
        """From now on whatever reads the clock reads `now_us`."""
        for name in ("admit", "sync", "touch", "enter", "status", "report"):
            setattr(scripts, name, self._at_now(getattr(scripts, name)))

    def _at_now(self, script: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        return lambda **given: script(**given, now=self.now_us)

    @property
    def calls(self) -> int:
        """Script calls so far."""
        return sum(script.stats.words.total() for script in self.platform.store.library.scripts.values())


def settings_for(
    folder: Path,
    profile: str = "dev",
    *,
    queue: QueueSettings = UNLIMITED,
    queue_keys: str = "",
    ticket_keys: str = "",
    trusted_proxies: str = "",
) -> Settings:
    return Settings(
        profile=profile,
        data=folder,
        api_token=TOKEN,
        queue_keys=queue_keys,
        ticket_keys=ticket_keys,
        gateway=GatewaySettings(trusted_proxies=trusted_proxies),
        queue=queue,
    )


@asynccontextmanager
async def open_gate(server: RunningServer, settings: Settings) -> AsyncIterator[Gate]:
    """The gateway, and a link for what a manager does; each under its user, where roles have users."""
    with in_process(server) as store:
        async with (
            open_gateway(store.url("gateway"), settings) as opened,
            open_store(store.url("manager")) as leading,
        ):
            store.note_users()
            room = Platform(settings, leading).worlds.of("main").room
            gate = Gate(
                session=opened.session,
                platform=opened.platform,
                address=opened.address,
                server=server,
                leader=await Leader.of(leading, room),
            )
            gate.hold_the_clock(room.scripts)
            gate.hold_the_clock(gate.world.room.scripts)
            room.scripts.touch = gate.world.room.scripts.touch  # a gateway signs
            await gate.tick()
            yield gate


def proof(receipt: str) -> dict[str, str]:
    """The header that shows whose place it is; none without a receipt."""
    return {"X-Queue-Receipt": receipt} if receipt else {}


def signature(user: str = "ann", keys: str = QUEUE_KEYS, **more: Any) -> str:
    """As a login service would sign."""
    return sign_entry(parse_keys(keys), user=user, **more)
