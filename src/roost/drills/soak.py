"""A soak: one launch evening after the other, with each fault in turn, on processes of its own.

After every evening, when the world is empty, each process and the store are measured. In the end it is judged
whether anybody was lost, whether anything grew, and whether the loops that failed said so and work again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout
from msgspec import DecodeError, json

from roost.api import Message
from roost.api.queue import WorldView
from roost.core.errors import InvalidInput
from roost.drills.faults import FAULTS
from roost.drills.flatness import DATA_MB, FILES, KEYS, MEMORY_MB, Allowance, course_of, no_larger
from roost.drills.launch import DrillReport, GuaranteeView, Plan, launch
from roost.drills.loops import LoopBook, LoopView
from roost.drills.player import TIMEOUTS, Habits
from roost.drills.town import DATABASE, Size, Town
from roost.store.inspect import parse_info
from roost.store.store import Store
from roost.store.url import parse_store_url

EMPTY_S = 40.0
"""After the last one left, tickets and held places are free within this."""
STEADY = ("gateway-1", "manager-1", "game-1")
"""Whom no fault ends: their loops must have counted every failure that they logged."""
QUIET_S = 35.0
"""At most, before anything is measured. An HTTP client keeps connections for its next calls, as many as it
made at once, and looks every 15 s which of them it did not use for 15 s: by then those are closed."""
SETTLE_S = 5.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SoakPlan:
    folder: Path
    minutes: float = 10.0
    users: int = 150
    capacity: int = 60
    faults: Sequence[str] = tuple(FAULTS)
    quiet_s: float = QUIET_S
    habits: Habits = field(
        default_factory=lambda: Habits(arrive_s=4.0, session_s=1.0, blip_s=9.0, patience_s=90.0)
    )


class EveningView(Message):
    fault: str
    users: int
    finished: int
    seconds: float
    broken: list[str]


class SampleView(Message):
    at_s: float
    what: str
    memory_mb: float
    files: int


class StoreSample(Message):
    at_s: float
    memory_mb: float
    keys: int
    lasting_keys: int
    """Those that do not expire."""


class CourseView(Message):
    what: str
    measure: str
    early: float
    late: float
    flat: bool | None


class SoakReport(Message):
    seconds: float
    evenings: list[EveningView]
    courses: list[CourseView]
    loops: list[LoopView]
    verdicts: list[GuaranteeView]
    samples: list[SampleView]
    store: list[StoreSample]
    folder: str

    @property
    def passed(self) -> bool:
        return all(one.held for one in self.verdicts)


async def soak(plan: SoakPlan, say: Say = lambda line: None) -> SoakReport:
    """Until the time is over, and until each fault had its turn at least once."""
    if unknown := set(plan.faults) - FAULTS.keys():
        raise InvalidInput(f"no fault {', '.join(sorted(unknown))}", hint=f"faults: {', '.join(FAULTS)}")
    if not Path("/proc/self/status").exists():
        raise InvalidInput("a soak reads /proc, which only Linux has")
    town = Town(plan.folder, plan.capacity)
    async with town.open(), ClientSession(timeout=ClientTimeout(total=10)) as session:
        return await _Soak(plan, town, session, say).run()


class _Soak:
    def __init__(self, plan: SoakPlan, town: Town, session: ClientSession, say: Say) -> None:
        self._plan = plan
        self._town = town
        self._session = session
        self._say = say
        self._started = time.monotonic()
        self._evenings: list[EveningView] = []
        self._samples: list[SampleView] = []
        self._store: list[StoreSample] = []
        self._loops = LoopBook()

    async def run(self) -> SoakReport:
        await self._wait_until(lambda world: world.capacity == self._plan.capacity // 2 * 2)
        for number, fault in enumerate(itertools.cycle(self._plan.faults)):
            if number >= len(self._plan.faults) and self._seconds() > self._plan.minutes * 60:
                break
            await self._evening(fault)
        await asyncio.sleep(SETTLE_S)  # a loop that still fails has failed again by now
        before = dict(self._loops.now)
        await self._count_loops()
        return self._report(before)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    # -- one evening

    async def _evening(self, fault: str) -> None:
        town, habits = self._town, self._plan.habits
        plan = Plan(
            town.gateways, town.token, self._plan.users, bring_servers=False, habits=habits, people="soak"
        )
        playing = asyncio.create_task(launch(plan))
        await asyncio.sleep(habits.arrive_s / 2)
        await FAULTS[fault](town)
        report = await playing
        empty = await self._wait_until(_is_empty)
        await self._wait_until_quiet()
        evening = _evening_view(fault, report, empty)
        self._evenings.append(evening)
        await self._measure()
        broken = f"; BROKEN: {', '.join(evening.broken)}" if evening.broken else ""
        self._say(
            f"{self._seconds():6.0f} s  {fault:15} {evening.finished} of {evening.users} in and out in "
            f"{evening.seconds:g} s{broken}"
        )

    async def _wait_until_quiet(self) -> None:
        """Until nobody has more files open than after another evening, or pools have closed what is idle."""
        deadline = time.monotonic() + self._plan.quiet_s
        least: dict[str, float] = {}
        for sample in self._samples:
            least[sample.what] = min(sample.files, least.get(sample.what, sample.files))
        while time.monotonic() < deadline:
            if no_larger({what: size.files for what, size in self._sizes().items()}, least):
                return
            await asyncio.sleep(0.5)

    async def _wait_until(self, reached: Callable[[WorldView], bool]) -> bool:
        deadline = time.monotonic() + EMPTY_S
        while time.monotonic() < deadline:
            world = await self._world()
            if world is not None and reached(world):
                return True
            await asyncio.sleep(0.5)
        return False

    async def _world(self) -> WorldView | None:
        url, headers = f"{self._town.gateways[0]}/queue/v1/worlds/main", {"X-API-Token": self._town.token}
        try:
            async with self._session.get(url, headers=headers) as response:
                return json.decode(await response.read(), type=WorldView)
        except (*TIMEOUTS, DecodeError):
            return None

    # -- what is measured

    async def _measure(self) -> None:
        at = round(self._seconds(), 1)
        for what, size in self._sizes().items():
            self._samples.append(SampleView(at, what, round(size.memory_mb, 1), size.files))
        self._store.append(await self._store_sample(at))
        await self._count_loops()

    def _sizes(self) -> dict[str, Size]:
        """By process and, where it is not its first, life."""
        lives = {name: self._town.lives.get(name, 1) for name in self._town.names}
        return {
            name if life == 1 else f"{name} (life {life})": self._town.size(name)
            for name, life in lives.items()
        }

    async def _store_sample(self, at: float) -> StoreSample:
        store = await Store.open(parse_store_url("embedded:"), folder=self._town.data / "store", attach=True)
        try:
            info = parse_info(await store.call("INFO", idempotent=True))
        finally:
            await store.close()
        keys = dict(part.split("=") for part in info.get("db0", "keys=0,expires=0").split(","))
        count, expiring = int(keys["keys"]), int(keys["expires"])
        return StoreSample(at, round(int(info["used_memory"]) / 2**20, 2), count, count - expiring)

    async def _count_loops(self) -> None:
        for name, url in self._town.metrics.items():
            try:
                async with self._session.get(url, headers={"X-API-Token": self._town.token}) as response:
                    self._loops.read(name, self._town.lives[name], await response.text())
            except (*TIMEOUTS, ValueError) as error:
                self._loops.unread.add(name)
                self._say(f"no metrics of {name}: {error}")

    # -- what is judged

    def _report(self, failures_before: dict[tuple[str, int, str], int]) -> SoakReport:
        courses = self._courses()
        grew = [
            f"{one.what}: {one.measure} {one.early:g} → {one.late:g}" for one in courses if one.flat is False
        ]
        judged = [one for one in courses if one.flat is not None]
        lost = [f"{one.fault}: {', '.join(one.broken)}" for one in self._evenings if one.broken]
        silent = [f"no metrics of {name}" for name in sorted(self._loops.unread)]
        silent += self._loops.uncounted({name: self._town.log(name) for name in STEADY})
        still = sorted({f"{name} {loop}" for name, _, loop in self._loops.rising_since(failures_before)})
        verdicts = [
            _verdict("nobody lost", lost, f"{len(self._evenings)} evenings"),
            _verdict(
                "nothing grows", grew, f"{len(judged)} courses are flat" if judged else "too short to say"
            ),
            _verdict(
                "failures are counted", silent, f"{self._loops.total} failed turns of loops, all counted"
            ),
            _verdict("loops work again", still, "no loop fails in the end"),
        ]
        return SoakReport(
            seconds=round(self._seconds(), 1),
            evenings=self._evenings,
            courses=courses,
            loops=self._loops.views(),
            verdicts=verdicts,
            samples=self._samples,
            store=self._store,
            folder=str(self._plan.folder),
        )

    def _courses(self) -> list[CourseView]:
        found: list[CourseView] = []
        for what in dict.fromkeys(sample.what for sample in self._samples):
            mine = [sample for sample in self._samples if sample.what == what]
            if what != DATABASE:  # of it the data count, see below, not what the allocator keeps
                found.append(_course(what, "memory MiB", [one.memory_mb for one in mine], MEMORY_MB))
            found.append(_course(what, "open files", [one.files for one in mine], FILES))
        found.append(_course(DATABASE, "data MiB", [one.memory_mb for one in self._store], DATA_MB))
        found.append(_course(DATABASE, "lasting keys", [one.lasting_keys for one in self._store], KEYS))
        return found


def _course(what: str, measure: str, values: Sequence[float], allowed: Allowance) -> CourseView:
    course = course_of(values, allowed)
    return CourseView(what, measure, course.early, course.late, course.flat)


def _verdict(name: str, faults: Sequence[str], well: str) -> GuaranteeView:
    return GuaranteeView(name, not faults, "; ".join(faults) if faults else well)


def _evening_view(fault: str, report: DrillReport, empty: bool) -> EveningView:
    broken = [f"{one.guarantee} {one.said}" for one in report.guarantees if not one.held]
    if report.finished < report.users:
        broken.append(f"{report.users - report.finished} people did not get in and out")
    if not empty:
        broken.append(f"the world was not empty after {EMPTY_S:g} s")
    return EveningView(fault, report.users, report.finished, report.seconds, broken)


def _is_empty(world: WorldView) -> bool:
    return world.inside + world.tickets + world.held + world.waiting == 0
