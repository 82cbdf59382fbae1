"""The health check of `roost agent`: when the program is ready, when its beats stop."""

from __future__ import annotations

import asyncio
import signal

import pytest

from roost.api.discovery import HealthCheck, Instance, Probe, Registered, RegisterInput
from roost.cli.agent import CHECK_INTERVAL_S, FAILURES_TO_HANG, Agent, Orders, ProgramCheck
from roost.cli.leaving import Note
from roost.cli.program import Action, Program, parse_action
from roost.core.errors import InvalidInput, OutcomeUnknown, ServerIdTaken
from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.sdk.heart import Registration
from roost.testing import FakeClock, FakeRegistry, FakeTransport

WELL, FAILS = Probe(True, 1.0, ""), Probe(False, 0.0, "connection refused")


class Answers(Prober):
    """Gives these answers in turn, then the last one again and again; None raises."""

    def __init__(self, *answers: Probe | None) -> None:
        super().__init__(allow_local=True)
        self.answers = list(answers)

    async def probe(self, instance: Instance) -> Probe | None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise RuntimeError("nobody expected this")
        return answer


def registered() -> Registration:
    given = RegisterInput(type="game", group="kr-1", ports={"main": 1}, health=HealthCheck("tcp", "main"))
    return Registration(given, "i1", "7", 1.0, status="initializing")


async def test_it_is_ready_when_the_check_passes_and_silent_after_three_failures() -> None:
    registration = registered()
    check = ProgramCheck(registration, Answers(FAILS, WELL, *[FAILS] * FAILURES_TO_HANG, WELL))
    statuses = []
    for _ in range(2):
        await check.step()
        statuses.append(registration.status)
    assert statuses == ["initializing", "ready"]
    for _ in range(FAILURES_TO_HANG):
        assert registration.hung_since is None
        await check.step()
    assert registration.hung_since is not None
    await check.step()
    assert registration.hung_since is None


async def test_a_check_that_could_not_be_made_says_nothing_of_the_program() -> None:
    registration = registered()
    check = ProgramCheck(registration, Answers(WELL, Probe(False, 0.0, "no file left", asked=False)))
    for _ in range(FAILURES_TO_HANG + 2):
        await check.step()
    assert registration.hung_since is None


async def test_a_check_that_raises_is_counted_and_tried_again() -> None:
    registration, clock = registered(), FakeClock()
    loops = Loops(clock)
    step = ProgramCheck(registration, Answers(None, WELL)).step
    running = asyncio.create_task(loops.keep_running("health check", step, pause_s=CHECK_INTERVAL_S))
    await asyncio.sleep(0)
    await clock.advance(60)
    assert registration.status == "ready"
    assert loops.loop("health check").failures == 1
    running.cancel()


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("SIGUSR1", signal.SIGUSR1),
        ("usr2", signal.SIGUSR2),
        ("", None),
        ("sh -c 'echo drain'", ("sh", "-c", "echo drain")),
        ("/opt/drain", ("/opt/drain",)),
    ],
)
def test_what_a_program_is_told_is_a_signal_a_command_or_nothing(text: str, action: Action) -> None:
    assert parse_action(text, "--on-drain") == action


@pytest.mark.parametrize("text", ["SIGNONE", "sh -c 'open"])
def test_an_action_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--on-drain"):
        parse_action(text, "--on-drain")


@pytest.mark.parametrize(
    ("script", "stop", "crashed"),
    [
        ("exit 0", None, False),
        ("exit 3", None, True),
        ("kill -SEGV $$", None, True),
        ("trap 'exit 9' TERM; echo; sleep 5 & wait", signal.SIGTERM, False),
        ("trap 'kill -ABRT $$' TERM; echo; sleep 5 & wait", signal.SIGTERM, True),
    ],
)
async def test_a_crash_is_an_end_that_nobody_asked_for(
    script: str, stop: signal.Signals | None, crashed: bool
) -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", script, stdout=asyncio.subprocess.PIPE, process_group=0
    )
    program = Program(process)
    if stop is not None:
        assert process.stdout is not None
        await process.stdout.readline()
        program.send(stop)
    await program.wait()
    assert program.crashed is crashed


class SlowRegistry(FakeRegistry):
    """A registration that has arrived is taken up some turns later: what is sent after it may come before."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()

    async def register(self, given: RegisterInput) -> Registered:
        self.arrived.set()
        for _ in range(50):
            await asyncio.sleep(0)
        return await super().register(given)


class ShortProgram(Program):
    """Ends as soon as its registration is under way."""

    def __init__(self, registry: SlowRegistry) -> None:
        self._registry = registry

    async def wait(self) -> int:
        await self._registry.arrived.wait()
        return 0

    @property
    def crashed(self) -> bool:
        return False


async def test_a_program_that_ends_while_it_is_registered_does_not_stay_known() -> None:
    transport = FakeTransport()
    transport.registry = registry = SlowRegistry()
    fields = {"type": "game", "group": "kr-1", "server_id": "501"}
    agent = Agent(transport.client(), ShortProgram(registry), fields, Orders(), Note(None))
    assert await agent.run() == 0
    assert registry.script.count("register") == 1
    assert registry.instances == {}


class Unlucky(FakeRegistry):
    """The first registration is carried out and not answered; the others are certainly not carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = asyncio.Event()

    async def register(self, given: RegisterInput) -> Registered:
        if self.instances:
            self.refused.set()
            raise ServerIdTaken
        await super().register(given)
        raise OutcomeUnknown


class WaitingProgram(ShortProgram):
    def __init__(self, registry: Unlucky) -> None:
        self._unlucky = registry

    async def wait(self) -> int:
        await self._unlucky.refused.wait()
        for _ in range(50):  # the refusal is heard
            await asyncio.sleep(0)
        return 0


async def test_a_registration_that_may_be_known_is_taken_back_whatever_came_after_it() -> None:
    transport = FakeTransport()
    transport.registry = registry = Unlucky()
    fields = {"type": "game", "group": "kr-1", "server_id": "501"}
    agent = Agent(transport.client(), WaitingProgram(registry), fields, Orders(), Note(None))
    assert await agent.run() == 0
    assert registry.instances == {}
