"""The verbs of evenings: people, game servers and operators, all of them real processes and connections.

A verb waits until what it says holds, and then tells it: so a line is a fact and its cause, and no line
depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, WSServerHandshakeError

from roost.testing import Command, RunningServer, StoryRunner, Verb, eventually
from tests.acceptance.conftest import Home
from tests.acceptance.queue import TOKEN
from tests.stories.houses import Houses, open_houses
from tests.stories.patching import PatchNight
from tests.stories.people import Person
from tests.stories.trading import TradingFloor

NAMES = ("ann", "bob", "cat", "dan", "eve")
PATIENCE_S = 40.0
"""The longest that a fact of these stories may take to become true."""
LOOK_S = 0.05
"""Between two looks of the operator."""
POLL_S = 2
"""How often people near the front are told to ask."""
ORDERS = {
    "takes out of service": ("--out-of-service",),
    "drains": ("--drain",),
    "lifts the order on": ("--lift",),
}


class Evening:
    """One evening: its houses, its people, and what its operator sees."""

    def __init__(self, houses: Houses, session: ClientSession) -> None:
        self._houses = houses
        self._session = session
        self._people: dict[str, Person] = {}
        self._patch = PatchNight(houses, self._get)
        self._floor = TradingFloor(houses)

    def runner(self) -> StoryRunner:
        verbs: list[Verb] = [
            *(self.given, self.lay, self.start, self.stop, self.kill, self.freeze, self.wake),
            *(self.cut, self.mend, self.operator, self.wait, self.enter, self.broker),
        ]
        named: dict[str, Verb] = {verb.__name__: verb for verb in verbs}
        return StoryRunner(named | dict.fromkeys(NAMES, self.person))

    # -- processes

    async def given(self, command: Command) -> str:
        """`given late_seconds=3`: rules of the waiting room"""
        self._houses.rules |= {
            f"ROOST_QUEUE__{name.upper()}": value for name, value in command.options.items()
        }
        return ", ".join(f"{name} {value}" for name, value in command.options.items())

    async def start(self, command: Command) -> str:
        """`start gateway 1`, `start game 501 capacity=2 ttl=20`; `start store` after its end"""
        name = " ".join(command.args)
        if name == "store":
            self._houses.store.start()
            return "store is up and empty"
        flags = [part for option, value in command.options.items() for part in (f"--{option}", value)]
        await self._houses.start(name, *flags)
        if command.args[0] == "game":
            await self._row(command.args[1], lambda row: bool(row and row["open"]))
        return f"{name} is up"

    async def stop(self, command: Command) -> str:
        """`stop manager 1`: as in a rolling restart"""
        name = " ".join(command.args)
        return f"{name} ended with {await self._houses.stop(name)}"

    async def kill(self, command: Command) -> str:
        """`kill gateway 1`: kill -9"""
        name = " ".join(command.args)
        if name == "store":
            self._houses.store.kill()
        else:
            await self._houses.kill(name)
        return f"{name} is dead"

    async def freeze(self, command: Command) -> str:
        """`freeze game 501`: it hangs, its connections stay"""
        self._houses.freeze(" ".join(command.args))
        return f"{' '.join(command.args)} hangs"

    async def wake(self, command: Command) -> str:
        self._houses.wake(" ".join(command.args))
        return f"{' '.join(command.args)} runs again"

    async def lay(self, command: Command) -> str:
        """`lay wire`: game servers that are started after it reach the first gateway by it alone"""
        await self._houses.lay_wire()
        return "game servers talk to gateway 1 over one wire"

    async def cut(self, command: Command) -> str:
        """`cut wire`: nothing passes any more, and nobody is told"""
        assert self._houses.wire is not None
        self._houses.wire.go_dark()
        return "nothing passes the wire"

    async def mend(self, command: Command) -> str:
        assert self._houses.wire is not None
        self._houses.wire.come_back()
        return "the wire is mended"

    # -- people

    async def enter(self, command: Command) -> str:
        """`enter ann`"""
        (name,) = command.args
        person = self._people.setdefault(name, Person(name, self._session, lambda: self._houses.gateways))
        await person.enter()
        return f"{name} is at the gate"

    async def person(self, command: Command) -> str:
        """`ann gets a ticket`, `ann goes in`, `ann waits rank=1` …"""
        does = {
            "gets a ticket": self._gets_ticket,
            "keeps the ticket": self._keeps_ticket,
            "waits": self._waits,
            "goes in": self._goes_in,
            "tries": self._tries,
            "logs in": self._logs_in,
            "logs in from a train": self._logs_in,
            "counts": self._counts,
            "plays": self._plays,
            "stops playing": self._stops_playing,
            "asks for the version": self._asks_version,
            "is cut off": self._cut_off,
            "speaks": self._speaks,
            "buys AAPL at": self._buys,
            "leaves": self._leaves,
            "is sent away": self._is_sent_away,
        }
        did = " ".join(word for word in command.args if not word.isdigit())
        return await does[did](self._people[command.verb], command)

    async def _gets_ticket(self, person: Person, command: Command) -> str:
        await person.has(lambda place: place.status == "PROMOTED", "to get a ticket")
        return f"{person.name} PROMOTED"

    async def _keeps_ticket(self, person: Person, command: Command) -> str:
        """Whatever happened since the last answer, the next shows the same ticket."""
        ticket = person.place.ticket_id
        place = await person.has(lambda place: bool(place.status), "to be answered")
        assert place.status == "PROMOTED", place
        assert place.ticket_id == ticket, "it is another ticket"
        return f"{person.name} PROMOTED, the same ticket"

    async def _waits(self, person: Person, command: Command) -> str:
        rank = int(command.options["rank"])
        await person.has(lambda place: (place.status, place.rank) == ("WAITING", rank), f"at rank {rank}")
        return f"{person.name} WAITING, rank {rank}"

    async def _goes_in(self, person: Person, command: Command) -> str:
        return f"{person.name} is in {self._houses.server_at(await person.go_in())}"

    async def _tries(self, person: Person, command: Command) -> str:
        """`bob tries 501`, whatever the last answer named"""
        server = command.args[-1]
        try:
            await person.connect(self._houses.url_of(server))
        except WSServerHandshakeError as error:
            return f"{server} refuses {person.name}: {error.status}"
        return f"{person.name} is in {server}"

    async def _logs_in(self, person: Person, command: Command) -> str:
        await person.log_in(from_a_train="train" in command.args)
        return f"{person.name} is welcome"

    async def _counts(self, person: Person, command: Command) -> str:
        return f"{person.name} has counted to {await person.count()}"

    async def _plays(self, person: Person, command: Command) -> str:
        """Counts without pause from now on, beside everything else that happens."""
        await person.play()
        return f"{person.name} plays"

    async def _stops_playing(self, person: Person, command: Command) -> str:
        return f"{person.name} missed no number, on {await person.stop_playing()} connection"

    async def _buys(self, person: Person, command: Command) -> str:
        """`ann buys 10 AAPL at 100`"""
        return await self._floor.buys(person, int(command.args[1]), int(command.args[-1]))

    async def _asks_version(self, person: Person, command: Command) -> str:
        return f"{person.name} sees version {await person.version()}"

    async def _cut_off(self, person: Person, command: Command) -> str:
        await person.cut_off()
        return f"{person.name} is cut off"

    async def _speaks(self, person: Person, command: Command) -> str:
        await person.speak()
        return f"{person.name} is heard"

    async def _leaves(self, person: Person, command: Command) -> str:
        await person.leave()
        return f"{person.name} is out"

    async def _is_sent_away(self, person: Person, command: Command) -> str:
        await person.sent_away()
        return f"{person.name} is out"

    async def broker(self, command: Command) -> str:
        """`broker sells 4 AAPL at 100`, `broker goes on selling`, `broker stops selling`"""
        return await self._floor.broker(command)

    # -- operators

    async def operator(self, command: Command) -> str:
        """`operator takes 501 out of service`, `… lifts the order on 501`, `… hot-updates 501`"""
        match command.args:
            case ("hot-updates", server):
                return await self._patch.order(server)
            case ("reads", "the", "certificate"):
                return await self._patch.certificate()
        (server,) = (word for word in command.args if word.isdigit())
        order = " ".join(word for word in command.args if word != server)
        await self._houses.order("instances", "override", server, *ORDERS[order])
        return await self._shows(server, lambda row: _is_ordered(row) == (order != "lifts the order on"))

    async def wait(self, command: Command) -> str:
        """`wait until 501 is suspect`, `wait until queue shows inside=2 free=0`, …"""
        match command.args:
            case ("until", server, "is", status):
                return await self._shows(server, lambda row: row.get("status") == status)
            case ("until", "operator", "hears", "that", server, "is" | "has", turned):
                return await self._hears(server, turned)
            case ("until", "checkers", "agree", "on", server):
                return await self._agreed(server)
            case ("until", "all", "are", "suspect"):
                return await self._panic()
            case ("until", "places", "and", "tickets", "would", "have", "ended"):
                return await self._outlast()
            case ("until", name, "lives", "on", server):
                return await self._lives(name, server)
            case ("until", "home", server, "takes", "new", "people"):
                return await self._open_home(server)
            case ("until", "home", server, "takes", "nobody", "new"):
                return await self._patch.closed(server)
            case ("until", "home", server, "has", "ended"):
                return await self._patch.ended(server)
            case ("until", "the", "hot", "update", "of", server, "is", "done"):
                return await self._patch.done(server)
            case ("until", name, "holds", quantity, "AAPL"):
                return await self._floor.holds(self._people[name], int(quantity))
            case ("until", name, "holds", "what", "the", "broker", "sold"):
                return await self._floor.holds_all(self._people[name])
            case ("until", "queue", "shows"):
                return await self._queue({name: int(value) for name, value in command.options.items()})
        raise ValueError(f"nobody knows how to wait for {' '.join(command.args)}")

    async def _shows(self, server: str, holds: Callable[[dict[str, Any]], bool]) -> str:
        """What discovery shows of it, once that holds and the waiting room goes by it."""
        found: dict[str, Any] = {}

        async def shown() -> bool:
            listed = await self._get("/sd/v1/instances")
            found.clear()
            found.update(next((one for one in listed.get("instances", ()) if one["serverId"] == server), {}))
            return bool(found) and holds(found)

        await eventually(shown, f"what is waited for of {server}", PATIENCE_S, lambda: str(found))
        willing = found["willing"]
        await self._row(server, lambda row: bool(row) and row["open"] == willing)
        ordered = ", out of service" if _is_ordered(found) else ""
        takes = "takes new people" if willing else "takes nobody new"
        return f"{server} {found['status']}{ordered}, {takes}"

    async def _agreed(self, server: str) -> str:
        """Before that, one who asked it long ago could still turn the verdict later."""
        found: dict[str, Any] = {}

        async def all_voted() -> bool:
            found.update(await self._get("/sd/v1/health"))
            rows = [row for row in found.get("servers", ()) if row["serverId"] == server]
            return [row["votes"] for row in rows] == [found.get("checkers")]

        await eventually(all_voted, f"the votes on {server}", PATIENCE_S, lambda: str(found))
        return f"{found['checkers']} of {found['checkers']} checkers find {server} unhealthy"

    async def _hears(self, server: str, turned: str) -> str:
        alerts = self._houses.pager.alerts
        await eventually(lambda: f"{server} {turned}" in alerts, f"an alert of {server}", PATIENCE_S)
        return f"alerts so far: {', '.join(alerts)}"

    async def _panic(self) -> str:
        """All are suspect, so none of them is taken out: each still takes new people, says discovery."""
        rows: list[dict[str, Any]] = []

        async def shown() -> bool:
            rows[:] = (await self._get("/sd/v1/instances")).get("instances", [])
            return bool(rows) and all(row["status"] == "suspect" and row["willing"] for row in rows)

        await eventually(shown, "a panic", PATIENCE_S, lambda: str(rows))
        servers = sorted(str(row["serverId"]) for row in rows)
        return "\n".join([await self._shows(server, lambda row: bool(row["willing"])) for server in servers])

    async def _outlast(self) -> str:
        """The one wait for time alone: for as long as would cost everybody everything, were they heard."""
        rules = {name.removeprefix("ROOST_QUEUE__"): int(value) for name, value in self._houses.rules.items()}
        lasts_s = max(rules["TICKET_SECONDS"], rules["GONE_SECONDS"] + POLL_S) + 1
        loop = asyncio.get_running_loop()
        until = loop.time() + lasts_s
        await eventually(lambda: loop.time() > until, "the time to pass", 2 * lasts_s)
        return "nobody could be asked for that long"

    async def _row(self, server: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until that holds of the server's row in the ledger."""
        rows: list[dict[str, Any]] = []

        async def held() -> bool:
            rows[:] = (await self._get("/queue/v1/worlds/main")).get("servers", [])
            return holds(next((row for row in rows if row["serverId"] == server), {}))

        await eventually(held, f"the ledger's row of {server}", PATIENCE_S, lambda: str(rows))

    async def _lives(self, name: str, server: str) -> str:
        """As the operator finds them."""
        home: dict[str, Any] = {}

        async def found() -> bool:
            home.update(await self._get(f"/bind/v1/users/{name}"))
            return home.get("serverId") == server

        await eventually(found, f"{name} to live on {server}", PATIENCE_S, lambda: str(home))
        return f"{name} lives on {server}"

    async def _open_home(self, server: str) -> str:
        rows: dict[str, Any] = {}

        async def found() -> bool:
            rows.update(await self._get("/bind/v1/servers"))
            return rows.get("availableEntities", {}).get(server) is True

        await eventually(found, f"home {server} to take people", PATIENCE_S, lambda: str(rows))
        return f"home {server} takes new people"

    async def _queue(self, wanted: dict[str, int]) -> str:
        seen: dict[str, Any] = {}

        async def shown() -> bool:
            found = await self._get("/queue/v1/worlds/main")
            seen.update(found.get("counters", {}) | found)
            return all(seen.get(name) == value for name, value in wanted.items())

        await eventually(shown, f"the queue to show {wanted}", PATIENCE_S, lambda: str(seen))
        return ", ".join(f"{name} {value}" for name, value in wanted.items())

    async def _get(self, path: str) -> dict[str, Any]:
        """What the first gateway that answers says; empty if none does."""
        await asyncio.sleep(LOOK_S)
        for gateway in self._houses.gateways:
            try:
                asking = self._session.get(
                    gateway + path, headers={"X-API-Token": TOKEN}, timeout=ClientTimeout(total=3)
                )
                async with asking as answer:
                    if answer.status == 200:
                        found: dict[str, Any] = await answer.json()
                        return found
            except (ClientError, TimeoutError, OSError):
                continue
        return {}

    async def close(self) -> None:
        await self._floor.close()
        for person in self._people.values():
            await person.leave()


def _is_ordered(row: dict[str, Any]) -> bool:
    return any((row.get("override") or {}).values())


@asynccontextmanager
async def open_evening(home: Home, store: RunningServer) -> AsyncIterator[Evening]:
    async with ClientSession() as session, open_houses(home, store) as houses:
        evening = Evening(houses, session)
        try:
            yield evening
        finally:
            await evening.close()
