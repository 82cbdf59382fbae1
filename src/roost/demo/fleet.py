"""The demo fleet inside `roost up`: its world, its processes, and the acts of its tour.

Two entity servers run, of two versions. A hot update moves the users of the older one to the newer, the
older one leaves, and a server of the next version appears; so it can be done again. One that did not leave by
itself comes back under its id, never older than the one that took its users.
"""

from __future__ import annotations

import asyncio
import time

from roost.api.demo import DemoNotReady, DemoStep, DemoView, NoDemo
from roost.api.drain import DrainInput
from roost.app import Platform
from roost.binding.drain import views
from roost.core.errors import Conflict, NotFound
from roost.demo.leftovers import clean_up, forget_loops, keep_note, quiet_logs
from roost.demo.market import choose_symbols, is_served_by_others
from roost.demo.names import CROWD, ENTITY, GAME, TYPES, WORLD, entity_id, entity_version, folder_of
from roost.demo.processes import Child, Ports, start_entity, start_rest
from roost.settings import Settings

LOOK_S = 2.0
DEAD_S = 12.0
"""How long a killed server stays away, so that its end can be watched."""
ENTITIES = 2
DRAIN_RATE = 2
"""Users in a second that a hot update of the demo moves: slow enough to watch."""

STEPS = {
    "hot-update": "Update a server while its users play",
    "flood": "Flood the waiting room",
    "kill": "Kill a server and watch its users find another home",
}


class Fleet:
    """The demo of one `roost up`; `stop` leaves nothing of it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._platform: Platform | None = None
        self._url = ""
        self._ports = Ports()
        self._entities: dict[int, Child] = {}
        """By the number of their server id."""
        self._versions: dict[int, int] = {}
        self._back_at: dict[int, float] = {}
        """Those that ended and come back, by the monotonic second at which they do."""
        self._next_server = self._next_version = 0
        self._rest: Child | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._symbols: dict[str, int] = {}
        """What is traded → its shard."""
        self._is_open = False
        self._done: set[str] = set()
        self._ending = asyncio.Lock()

    # -- from the start to the end

    def start(self, platform: Platform, url: str) -> None:
        """Begin. The gateway is ready already, and nothing waits for the demo."""
        self._platform, self._url = platform, url
        self._unmute = quiet_logs()
        looking = platform.store.loops.keep_running("demo", self._look, pause_s=LOOK_S)
        self._tasks.append(asyncio.create_task(looking))

    async def stop(self) -> str:
        """End it and take everything of it out of the store; `NoDemo` if it does not run."""
        platform, self._platform = self._here(), None
        async with self._ending:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            children = [*self._entities.values(), *([self._rest] if self._rest is not None else [])]
            await asyncio.gather(*(child.end() for child in children))
            platform.bindings.remove_type(ENTITY)
            platform.worlds.remove(WORLD)
            await clean_up(platform.store, self._settings)
            forget_loops(platform.store.loops)
            self._unmute()
        return "The demo has ended, and nothing of it is left."

    async def close(self) -> None:
        """For the end of the process, whether it runs or not."""
        if self._platform is not None:
            await self.stop()
        async with self._ending:  # of somebody else's stop
            pass

    def _here(self) -> Platform:
        if self._platform is None:
            raise NoDemo
        return self._platform

    # -- what runs

    async def _look(self) -> None:
        """Whatever should run and does not is started."""
        platform = self._here()
        if not self._is_open:
            await self._open(platform)
        self._note_ends()
        await self._complete()
        if self._rest is None or not self._rest.is_alive:
            shards = ",".join(str(shard) for shard in sorted(set(self._symbols.values())))
            symbols = ",".join(self._symbols)
            self._rest = await start_rest(self._settings, self._ports, self._url, shards, symbols)
        elif self._symbols and await is_served_by_others(platform):
            self._symbols = {}
            keep_note(self._settings, ())  # before the shards are anybody else's
            await self._rest.say("close-market")

    async def _open(self, platform: Platform) -> None:
        """What an earlier demo left is taken out, then the world begins."""
        await clean_up(platform.store, self._settings)
        folder_of(self._settings.data).mkdir(mode=0o700)
        self._symbols = await choose_symbols(platform, self._settings.lanes.selector)
        keep_note(self._settings, self._symbols.values())
        platform.bindings.add_type(ENTITY)
        world = platform.worlds.add(WORLD, GAME)
        loops = platform.worlds.loops_of(world, platform.roles)
        self._tasks += [asyncio.create_task(loop) for loop in loops]
        self._is_open = True

    def _note_ends(self) -> None:
        """Who left by itself is replaced by the next version; who did not comes back."""
        for number, child in list(self._entities.items()):
            if not child.is_alive:
                del self._entities[number]
                if child.process.returncode != 0:
                    self._back_at[number] = time.monotonic() + DEAD_S

    async def _complete(self) -> None:
        for number in [n for n, at in self._back_at.items() if time.monotonic() >= at]:
            del self._back_at[number]
            former, others = self._versions[number], [self._versions[other] for other in self._entities]
            await self._start_entity(number, former if former > max(others, default=-1) else None)
        while len(self._entities) + len(self._back_at) < ENTITIES:
            self._next_server += 1
            await self._start_entity(self._next_server - 1)

    async def _start_entity(self, number: int, version: int | None = None) -> None:
        """Without a version it is the next one."""
        if version is None:
            version, self._next_version = self._next_version, self._next_version + 1
        self._versions[number] = version
        started = await start_entity(self._settings, self._ports, entity_id(number), entity_version(version))
        self._entities[number] = started

    # -- the tour

    def view(self) -> DemoView:
        if self._platform is None:
            return DemoView(running=False, types=[], world="", symbols=[], servers=[], steps=[])
        return DemoView(
            running=True,
            types=list(TYPES),
            world=WORLD,
            symbols=list(self._symbols),
            servers=[entity_id(number) for number in self._alive()],
            steps=[DemoStep(step, title, step in self._done) for step, title in STEPS.items()],
        )

    async def hot_update(self) -> str:
        """Move the users of the older entity server to the newer one, while they play."""
        platform, (old, new) = self._here(), self._both()
        given = DrainInput([entity_id(old)], ENTITY, to=[entity_id(new)], rate=DRAIN_RATE, by="demo")
        try:
            job = await platform.drains.start(views.request_of(given))
        except (Conflict, NotFound) as error:
            raise DemoNotReady(error.message) from None
        self._done.add("hot-update")
        return (
            f"Drain {job.id} moves the users of {self._described(old)} to {self._described(new)}; "
            f"then a server of version {entity_version(self._next_version)} starts."
        )

    async def flood(self) -> str:
        """Send a crowd into the waiting room."""
        self._here()
        if self._rest is None or not self._rest.is_alive:
            raise DemoNotReady("the game server of the demo is not up yet")
        await self._rest.say("flood")
        self._done.add("flood")
        return f"{CROWD} people enter world {WORLD}, which has room for a dozen."

    async def kill(self) -> str:
        """Kill the entity server that holds the most users."""
        platform, numbers = self._here(), self._both()
        users = {row.server_id: row.users for row in await platform.bindings.servers(ENTITY)}
        victim = max(numbers, key=lambda number: users.get(entity_id(number), 0))
        self._entities[victim].kill()
        self._done.add("kill")
        return (
            f"{entity_id(victim)} is killed; its {users.get(entity_id(victim), 0)} users find another home "
            f"within seconds, and it comes back after {DEAD_S:g} s."
        )

    def _alive(self) -> list[int]:
        alive = [number for number, child in self._entities.items() if child.is_alive]
        return sorted(alive, key=self._versions.__getitem__)

    def _described(self, number: int) -> str:
        return f"{entity_id(number)} (version {entity_version(self._versions[number])})"

    def _both(self) -> tuple[int, int]:
        """The two entity servers, the older first."""
        match self._alive():
            case [old, new]:
                return old, new
            case alive:
                raise DemoNotReady(f"{len(alive)} of the {ENTITIES} entity servers of the demo run")
