"""What an operator sees of a drain: at 80 columns, in a pipe, and after Ctrl-C."""

from __future__ import annotations

import io
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import typer
from rich.console import Console

from roost.api.discovery import InstanceList
from roost.api.drain import (
    CertificateView,
    DrainInput,
    DrainReply,
    JobCounts,
    JobList,
    JobView,
    LastServer,
    Pauses,
    PlannedServer,
    PlanView,
    WrongJobState,
)
from roost.cli import following
from roost.cli.context import Context
from roost.cli.draining import bar, line, plain, reasons, view_certificate, view_job, view_jobs, view_plan
from roost.cli.flags import JSON
from roost.cli.nouns.drain import percent, split
from roost.cli.tables import Part
from roost.core.errors import InvalidInput, StoreUnavailable, UnknownInstance
from tests.unit.cli.test_tables import rendered

ULID = "01J8ZK3V7Q4M5N6P7R8S9T0VWX"
NOW = "2026-11-20T18:00:00.123Z"

CERTIFICATE = CertificateView(
    job=ULID,
    holds=True,
    is_complete=True,
    missing=[],
    users=2000,
    moved=1990,
    returned=3,
    released=10,
    forced=1,
    requests=20_400,
    answered=20_397,
    refused=3,
    open=0,
    lost=0,
    doubled=0,
    reordered=0,
    disconnected=0,
    longest_pause_ms=131,
    gates=2,
    notes=[],
    lines=["faults     0 lost, 0 doubled, 0 reordered, 0 disconnected"],
)

JOB = JobView(
    id=ULID,
    type="entity",
    kind="drain",
    servers=["seoul-501", "seoul-502"],
    to=["seoul-503", "seoul-504"],
    version="2.0",
    rate=100,
    canary=5,
    state="running",
    why="",
    by="somebody on call",
    made_at=NOW,
    started_at=NOW,
    ended_at="",
    counts=JobCounts(2000, 890, 3, 2, 7, 10, 0, 0, 0),
    rate_now=87.5,
    rate_why="the 95th percentile of flush and claim was 61 ms, so the rate was halved for a while",
    pauses=Pauses(4.1, 12.0, 131.25),
    pinned={f"user-{number}": "in a match until the round is over" for number in range(7)},
    eta_seconds=13,
    certificate=None,
)
DONE = msgspec.structs.replace(
    JOB, state="done", ended_at=NOW, eta_seconds=None, pinned={}, certificate=CERTIFICATE
)
PLAN = PlanView(
    type="entity",
    kind="drain",
    users=2000,
    sources=[PlannedServer("seoul-501", "1.0", 2000, 2000, 0)],
    targets=[
        PlannedServer("seoul-503", "2.0", 10, 1000, 3000),
        PlannedServer("seoul-504", "2.0", 0, 1000, 0),
    ],
    seats=None,
    seconds=20.0,
    pinned={"ann": "in a match"},
    later=4,
    schema_point="rows that version 2.0 writes need a reader of schema 2, and 501 reads schema 1",
    rollback_until="until the end of seoul-501: an emptied server leaves when nobody came to it for 5 s",
    notes=["the waiting room sends nobody to 501 while it is drained"],
)


@pytest.mark.parametrize(
    ("view", "needed"),
    [
        (view_job(JOB), ("890 moved", "about 13 s left", "7 pinned", "user-0:", "87.5 users/s", "p99 12 ms")),
        (view_job(DONE), ("done", "certificate of", "holds")),
        (view_jobs(JobList([JOB, DONE])), (ULID, "running", "900/2000", "2 jobs")),
        (view_plan(PLAN), ("2000 leave", "1000 come", "refused: rows", "nothing was started")),
        (view_plan(msgspec.structs.replace(PLAN, schema_point="")), ("rollback until the end of seoul-501",)),
        (view_certificate(CERTIFICATE), ("0 lost",)),
    ],
)
def test_everything_fits_80_columns_with_no_word_broken(
    view: Iterable[Part], needed: tuple[str, ...]
) -> None:
    parts = list(view)
    narrow, wide = rendered(*parts, width=80), rendered(*parts, width=400)
    assert max(map(len, narrow)) <= 80
    words = {word for text in narrow if not text.startswith("not shown") for word in text.split()}
    assert words <= {word for text in wide for word in text.split()}
    shown = " ".join(" ".join(wide).split())
    assert [text for text in needed if text not in shown] == []


def test_a_line_for_a_pipe_fits_80_columns() -> None:
    assert line(JOB) == "running 45% 900/2000, 3 returned, 9 pinned, 87.5/s, p99 12 ms, 13 s left"
    assert len(line(JOB)) <= 80
    assert [text.partition(":")[0] for text in reasons(JOB)] == ["rate", "pinned"]
    assert line(DONE) == "done 45% 900/2000, 3 returned, 9 pinned, 87.5/s, p99 12 ms"


def test_the_bar_is_full_at_the_end_and_empty_at_the_beginning() -> None:
    assert (bar(0.0).count("█"), bar(0.999).count("░"), bar(1.0).count("░")) == (0, 1, 0)


def test_what_an_entity_class_says_cannot_move_the_cursor() -> None:
    assert plain("in\x1b[2Ja\nmatch") == "in?[2Ja?match"
    assert len(plain("x" * 1000)) == 201
    pinned = msgspec.structs.replace(JOB, pinned={"ann": "\x1b]0;owned\x07"}, why="\x1b[1m", by="\r")
    shown = "\n".join(rendered(*view_job(pinned)))
    assert "\x1b]0" not in shown
    assert "\r" not in shown


@pytest.mark.parametrize(
    ("certificate", "verdict"),
    [
        (CERTIFICATE, "holds"),
        (msgspec.structs.replace(CERTIFICATE, holds=False, lost=1), "does not hold"),
        (msgspec.structs.replace(CERTIFICATE, holds=False, is_complete=False, lost=None), "incomplete"),
    ],
)
def test_a_certificate_is_judged_in_a_word(certificate: CertificateView, verdict: str) -> None:
    assert f": {verdict}" in rendered(*view_certificate(certificate))[0]


class Looks(Context):
    """A command line whose gateway answers with these jobs, one after the other; an error is raised."""

    def __init__(self, *answers: JobView | BaseException, json: bool = False) -> None:
        super().__init__({JSON: json})
        self._answers = list(answers)

    @property
    def left(self) -> int:
        return len(self._answers)

    def ask(self, method: str, path: str, reply: Any, **_: Any) -> Any:
        assert (method, path, reply) == ("GET", f"/drain/v1/jobs/{ULID}", JobView)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "REFRESH_S", 0)


def ended_with(looks: Looks) -> int:
    try:
        following.follow(looks, JOB)
    except typer.Exit as end:
        return end.exit_code
    return 0


def test_a_job_that_is_done_and_proved_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(Looks(JOB, JOB, DONE)) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [text.split()[0] for text in shown] == [
        *("running", "rate:", "pinned:"),  # the second look was the same: nothing is said again
        *("done", "certificate", "faults"),
    ]


@pytest.mark.parametrize(
    "last",
    [
        msgspec.structs.replace(DONE, certificate=None),
        msgspec.structs.replace(DONE, certificate=msgspec.structs.replace(CERTIFICATE, holds=False)),
        msgspec.structs.replace(DONE, state="cancelled"),
        msgspec.structs.replace(DONE, state="failed"),
        msgspec.structs.replace(JOB, state="paused", why="the canary has moved"),
    ],
)
def test_any_other_end_is_1(last: JobView) -> None:
    assert ended_with(Looks(JOB, last)) == 1


def test_a_cancelled_job_is_followed_until_its_servers_take_users_again() -> None:
    ending = msgspec.structs.replace(JOB, state="cancelled")
    looks = Looks(ending, ending, msgspec.structs.replace(DONE, state="cancelled"))
    assert ended_with(looks) == 1
    assert looks.left == 0


def test_a_paused_job_says_how_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    ended_with(Looks(msgspec.structs.replace(JOB, state="paused")))
    assert f"roost drain resume {ULID}" in capsys.readouterr().err


def test_ctrl_c_leaves_the_job_running_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(Looks(JOB, KeyboardInterrupt())) == 130
    said = capsys.readouterr().err
    assert f"job {ULID} goes on without you" in said
    assert f"roost drain cancel {ULID}" in said


def test_a_gateway_that_is_away_for_a_while_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(Looks(StoreUnavailable("the store is away"), DONE)) == 0
    assert "the store is away" in capsys.readouterr().err
    with pytest.raises(UnknownInstance):  # but not one that has another answer
        following.follow(Looks(UnknownInstance()), JOB)


def test_for_programs_each_look_is_an_object_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(Looks(JOB, DONE, json=True)) == 0
    looks = [msgspec.json.decode(text, type=JobView) for text in capsys.readouterr().out.splitlines()]
    assert looks == [JOB, JOB, DONE]


def test_in_a_terminal_the_picture_is_drawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    monkeypatch.setattr(following, "console", lambda: screen)
    assert ended_with(Looks(JOB, DONE)) == 0
    drawn = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1A" in drawn  # up again, over the last picture
    assert "seoul-501" in drawn
    assert "certificate of" in drawn


def test_servers_are_named_one_by_one_or_with_commas() -> None:
    assert split(["501,502", "503", ",504,"]) == ["501", "502", "503", "504"]


@pytest.mark.parametrize(("text", "number"), [("", 0), ("5%", 5), ("5", 5), ("100 %", 100)])
def test_a_canary_is_a_percentage(text: str, number: int) -> None:
    assert percent(text) == number


@pytest.mark.parametrize("text", ["101%", "-5%", "five", "5.5%", "²%", "9" * 400])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        percent(text)


class Hook(Context):
    """A stop hook whose gateway answers so, by path: an error is raised; the last answer stays."""

    def __init__(self, **answers: list[Any]) -> None:
        super().__init__({JSON: True})
        self._answers = answers
        self.asked: list[str] = []

    def ask(self, method: str, path: str, reply: Any, **_: Any) -> Any:
        name = "servers" if path.startswith("/sd/") else "start" if method == "POST" else "job"
        self.asked.append(name)
        left = self._answers[name]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def waited(hook: Hook, seconds: float = 60) -> int:
    try:
        following.wait(hook, DrainInput(JOB.servers), seconds)
    except typer.Exit as end:
        return end.exit_code
    return 0


THERE = InstanceList([SimpleNamespace(server_id=JOB.servers[0])], 1)  # type: ignore[list-item]
GONE = InstanceList([], 1)


def test_a_stop_hook_asks_until_a_gateway_answers_sits_out_a_pause_and_returns_when_the_server_has_left() -> (
    None
):
    paused = msgspec.structs.replace(JOB, state="paused")
    hook = Hook(
        start=[StoreUnavailable("the store is away"), DrainReply(job=JOB)],
        job=[paused, StoreUnavailable("the store is away"), DONE],
        servers=[THERE, THERE, GONE],
    )
    assert waited(hook) == 0
    assert hook.asked == ["start", "start", "job", "job", "job", "servers", "servers", "servers"]


def test_a_stop_hook_gives_up_in_time_for_whoever_goes_on_without_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert waited(Hook(start=[DrainReply(job=JOB)], job=[JOB], servers=[THERE]), 0.05) == 1
    assert f"not over after 0.05 s: job {ULID} is running" in capsys.readouterr().err
    assert waited(Hook(start=[StoreUnavailable("away")], job=[], servers=[]), 0.05) == 1
    assert "no gateway has taken the order" in capsys.readouterr().err


def test_a_refusal_ends_a_stop_hook_at_once() -> None:
    with pytest.raises(LastServer):
        waited(Hook(start=[LastServer()], job=[], servers=[]))


def test_a_stop_hook_waits_for_a_job_that_moves_the_users_of_its_server_otherwise() -> None:
    hook = Hook(
        start=[WrongJobState("the rebalance j1 moves users of 501"), DrainReply(job=DONE)],
        job=[],
        servers=[GONE],
    )
    assert waited(hook) == 0
    assert hook.asked == ["start", "start", "servers"]
