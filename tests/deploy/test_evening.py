"""An evening on `compose.yaml`, through a real HAProxy, with one gateway killed: its story is golden text."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from roost.core.passes import sign_entry
from roost.core.signing import parse_keys
from roost.testing import Command, StoryRunner, Verb, eventually, missing_database
from tests.deploy.containers import Containers, run_containers
from tests.stories.people import Person
from tests.stories.test_stories import REWRITE

STORY = Path(__file__).parents[1] / "stories" / "containers" / "an_evening_behind_haproxy.txt"
PATIENCE_S = 40.0
POLL_S = 0.3
"""Between two questions of one person, who may ask five times a second."""
OPS = {"gateway": 8400, "manager": 9400, "entity": 9430, "gate": 9410, "gameserver": 9420}


class Guest(Person):
    """Knows one address, HAProxy's."""

    def __init__(self, name: str, session: ClientSession, containers: Containers, world: str) -> None:
        super().__init__(name, session, lambda: [containers.url(8400)])
        self._keys = parse_keys(containers.secrets["ROOST_QUEUE_KEYS"])
        self._world = world

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if self._wants_in:
                await self._ask("GET", f"/api/queue/status?userId={self.name}&world={self._world}")

    async def _enters(self) -> bool:
        signature = sign_entry(self._keys, user=self.name, world=self._world)
        body = {"userId": self.name, "world": self._world, "signature": signature}
        return await self._ask("POST", "/api/queue/entry", body)


class Evening:
    def __init__(self, containers: Containers, session: ClientSession) -> None:
        self._containers = containers
        self._session = session
        self._guests: dict[str, Guest] = {}

    def runner(self) -> StoryRunner:
        verbs: list[Verb] = [self.start, self.kill, self.enter, self.operator]
        named: dict[str, Verb] = {verb.__name__: verb for verb in verbs}
        return StoryRunner(named | dict.fromkeys(("ann", "bob", "cat", "dan"), self.guest))

    async def start(self, command: Command) -> str:
        """`start` all of them, `start gateway-1` again"""
        containers = self._containers
        if command.args:
            (name,) = command.args
            await asyncio.to_thread(containers.running[name].start)
            await self._is_ready(name)
            return f"{name} is ready"
        containers.start()
        for name in containers.running:
            if name.rstrip("-12") in OPS:
                await self._is_ready(name)
        await asyncio.to_thread(containers.wait_until_up, "haproxy", 8410)
        for server in ("501", "502"):
            await self._takes_users(server)
        return f"ready: {', '.join(containers.running)}"

    async def kill(self, command: Command) -> str:
        (name,) = command.args
        await asyncio.to_thread(self._containers.running[name].kill)
        return f"{name} is dead"

    async def enter(self, command: Command) -> str:
        (name,) = command.args
        world = command.options.get("world", "main")
        guest = self._guests[name] = Guest(name, self._session, self._containers, world)
        await guest.enter()
        return f"{name} stands in line for {world}"

    async def guest(self, command: Command) -> str:
        guest = self._guests[command.verb]
        match command.args:
            case ("gets", "a", "ticket"):
                await guest.has(lambda place: place.status == "PROMOTED", "to get a ticket")
                said = "has a ticket"
            case ("asks", times, "times", "more"):
                until = guest.answers + int(times)
                await eventually(
                    lambda: guest.answers >= until, "answers", PATIENCE_S, lambda: str(guest.place)
                )
                said = f"was answered {times} times more"
            case ("logs", "in"):
                await guest.log_in()
                said = "is welcome"
            case ("goes", "in"):
                await guest.go_in()
                said = "is in"
            case ("speaks",):
                await guest.speak()
                said = "is heard"
            case ("plays",):
                await guest.play()
                said = "plays"
            case ("counts",):
                said = f"has counted to {await guest.count()}"
            case ("stops", "playing"):
                said = f"missed no number, on {await guest.stop_playing()} connection"
            case _:
                raise ValueError(f"nobody knows how to {' '.join(command.args)}")
        assert guest.unanswered == 0, f"{guest.name} was not answered {guest.unanswered} times"
        return f"{guest.name} {said}"

    async def operator(self, command: Command) -> str:
        match command.args:
            case ("drains", server):
                return await self._drain(server)
            case ("sees", "that", server, "takes", "users"):
                await self._takes_users(server)
                return f"{server} takes users"
            case ("sees", "every", "process", "in", "prometheus"):
                return await self._scraped()
        raise ValueError(f"nobody knows how to {' '.join(command.args)}")

    async def _drain(self, server: str) -> str:
        """By the command line, through HAProxy, as a stop hook does."""
        roost = self._containers.running["gateway-2"]
        command = [roost.command[0], "drain", "start", server, "--wait", str(PATIENCE_S), "--json"]
        env = roost.environment | {"ROOST_URL": self._containers.url(8400)}
        done = await asyncio.to_thread(
            subprocess.run, command, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        job = json.loads(done.stdout.splitlines()[-1])
        process = self._containers.running["entity-1"].process
        assert process is not None
        code = await asyncio.to_thread(process.wait, PATIENCE_S)
        found = job["certificate"]
        counts = ", ".join(
            f"{found[name]} {name}" for name in ("lost", "doubled", "reordered", "disconnected")
        )
        return f"{server} is empty and ended with {code}; {counts}; the certificate holds"

    async def _takes_users(self, server: str) -> None:
        rows: dict[str, Any] = {}

        async def does() -> bool:
            rows.update(await self._get(f"{self._containers.url(8400)}/bind/v1/servers"))
            return rows.get("availableEntities", {}).get(server) is True

        await eventually(does, f"{server} to take users", PATIENCE_S, lambda: str(rows))

    async def _scraped(self) -> str:
        wanted = sorted(
            f"{one.address}:{OPS[name.rstrip('-12')]}"
            for name, one in self._containers.running.items()
            if name.rstrip("-12") in OPS
        )
        seen: list[Any] = []

        async def all_up() -> bool:
            found = await self._get(f"{self._containers.url(9090)}/api/v1/query?query=up")
            seen[:] = found.get("data", {}).get("result", [])
            up = {one["metric"]["instance"] for one in seen if one["value"][1] == "1"}
            return up >= set(wanted)

        await eventually(all_up, "Prometheus to scrape all", PATIENCE_S, lambda: f"{wanted}: {seen}")
        return f"prometheus scrapes {len(wanted)} processes"

    async def _is_ready(self, name: str) -> None:
        one, port = self._containers.running[name], OPS[name.rstrip("-12")]

        async def is_ready() -> bool:
            assert one.process is not None
            assert one.process.poll() is None, one.tail()
            return (await self._get(f"http://{one.address}:{port}/readyz")).get("status") == "ready"

        await eventually(is_ready, f"{name} to be ready", PATIENCE_S, one.tail)

    async def _get(self, url: str) -> dict[str, Any]:
        """What is answered; empty if nothing good is."""
        await asyncio.sleep(0.05)
        headers = {"X-API-Token": self._containers.secrets["ROOST_API_TOKEN"]}
        with suppress(ClientError, TimeoutError, OSError):
            async with self._session.get(url, headers=headers, timeout=ClientTimeout(total=3)) as answer:
                if answer.status == 200:
                    found: dict[str, Any] = await answer.json()
                    return found
        return {}

    async def close(self) -> None:
        for guest in self._guests.values():
            await guest.leave()


@asynccontextmanager
async def evening_in(folder: Path) -> AsyncIterator[Evening]:
    with run_containers(folder) as containers:
        async with ClientSession() as session:
            evening = Evening(containers, session)
            try:
                yield evening
            finally:
                await evening.close()


def missing() -> str:
    """Why this evening cannot be played here; empty if it can."""
    for program in ("haproxy", "prometheus"):
        if not (shutil.which(program) or shutil.which(program, path="/usr/sbin")):
            return f"no {program} here (Debian: {program}; `make deps-ci` installs it)"
    return missing_database("postgresql")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(bool(missing()), reason=missing())
async def test_an_evening_through_haproxy_in_which_a_gateway_dies(tmp_path: Path) -> None:
    async with evening_in(tmp_path) as evening:
        await evening.runner().run(STORY, rewrite=REWRITE)
