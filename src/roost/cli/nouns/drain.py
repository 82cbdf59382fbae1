"""`roost drain`: empty servers while their users play."""

from __future__ import annotations

import contextlib
import getpass
import socket
from typing import Annotated

import typer

from roost.api.binding import ENTITY
from roost.api.drain import (
    MAX_DRAIN_RATE,
    MAX_SERVERS,
    CertificateView,
    DrainInput,
    DrainReply,
    JobList,
    JobView,
)
from roost.cli.client import quoted
from roost.cli.context import Context, takes
from roost.cli.draining import view_certificate, view_job, view_jobs, view_plan
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.following import follow as follow_job
from roost.cli.following import wait as wait_for_job
from roost.cli.selecting import OneType
from roost.core.errors import InvalidInput

app = typer.Typer(
    help="Empty servers while their users play: patch night.", no_args_is_help=True, add_completion=False
)

JOBS = "/drain/v1/jobs"

JobArgument = Annotated[str, typer.Argument(help="Job id.", metavar="JOB")]
Servers = Annotated[
    list[str] | None, typer.Argument(help="Server ids.", metavar="[SERVER...]", show_default=False)
]
Rate = Annotated[
    int, typer.Option(help="Users in a second and server, at most; 0: as is set.", min=0, max=MAX_DRAIN_RATE)
]
Plan = Annotated[bool, typer.Option("--plan", help="Tell what would be done, and start nothing.")]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--no-follow", help="Show it until it is over or paused.", show_default="unless --json"
    ),
]


@app.command(
    "start",
    epilog="Examples:  roost drain start 501 502 --plan   ·   roost drain start 501 502 --to 503,504   ·   "
    "roost drain start 501 --version 2.0 --canary 5% --rate 50   ·   roost drain start --emptiest 1   ·   "
    "roost drain start --this-host --wait 240",
)
@takes(*ASK_AND_SHOW)
def start(
    cli: Context,
    servers: Servers = None,
    rate: Rate = 0,
    to: Annotated[
        str, typer.Option(help="Server ids that take them.", metavar="ID,ID", show_default="all that do")
    ] = "",
    version: Annotated[
        str, typer.Option(help="Only servers of this version take them.", show_default=False)
    ] = "",
    plan: Plan = False,
    canary: Annotated[
        str, typer.Option(help="Move so many first, then pause.", metavar="PERCENT", show_default="none")
    ] = "",
    emptiest: Annotated[
        int,
        typer.Option(
            help="Instead of server ids: so many of those with the fewest users.",
            min=0,
            max=MAX_SERVERS,
            show_default="none",
        ),
    ] = 0,
    this_host: Annotated[
        bool, typer.Option("--this-host", help="Instead of server ids: the one with the name of this host.")
    ] = False,
    type: OneType = ENTITY,  # noqa: A002 — the name of the flag
    follow: Follow = None,
    wait: Annotated[
        float,
        typer.Option(
            help="For stop hooks: return when the servers have ended, or after so many seconds.",
            min=0,
            show_default="do not",
        ),
    ] = 0,
) -> None:
    """Move all users off these servers, which then end by themselves. Nobody is disconnected.

    Servers that a drain empties already are answered with that job; where another job has one of them, or a
    drain has only some, the order is refused. Ctrl-C leaves the job running.

    The exit code is 0 if it is done and its certificate holds.
    """
    named = [*split(servers or []), *([socket.gethostname()] if this_host else [])]
    wanted = DrainInput(named, type, to=split([to]), version=version, rate=rate, by=_me())
    wanted.plan, wanted.emptiest, wanted.canary = plan, emptiest, percent(canary)
    if wait and not plan:
        wait_for_job(cli, wanted, wait)
    else:
        begin(cli, wanted, follow)


@app.command(
    "rebalance",
    epilog="Examples:  roost drain rebalance --plan   ·   roost drain rebalance --type room --users 500",
)
@takes(*ASK_AND_SHOW)
def rebalance(
    cli: Context,
    type: OneType = ENTITY,  # noqa: A002
    plan: Plan = False,
    users: Annotated[
        int, typer.Option(help="How many may move.", min=0, show_default="as many as it takes")
    ] = 0,
    rate: Rate = 0,
    follow: Follow = None,
) -> None:
    """Move users from crowded servers to empty ones, by the same mover. No server ends."""
    wanted = DrainInput([], type, "rebalance", rate=rate, users=users, by=_me(), plan=plan)
    begin(cli, wanted, follow)


def begin(cli: Context, wanted: DrainInput, follow: bool | None) -> None:
    """Start what is wanted, or show its plan."""
    answer = cli.ask("POST", JOBS, DrainReply, body=wanted)
    if answer.plan is not None:
        cli.show(answer.plan, view_plan)
    elif answer.job is not None:
        look(cli, answer.job, not cli.json if follow is None else follow)


def look(cli: Context, job: JobView, follow: bool) -> None:
    if follow:
        follow_job(cli, job)
    else:
        cli.show(job, view_job)


@app.command("status", epilog="Examples:  roost drain status   ·   roost drain status 01J8… --follow")
@takes(*ASK_AND_SHOW)
def status(
    cli: Context,
    job: Annotated[str, typer.Argument(help="Job id.", metavar="[JOB]", show_default="all of them")] = "",
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Show it until it is over or paused.")
    ] = False,
) -> None:
    """Show the jobs, or one of them: who has moved, who has not and why, how fast, at what pause."""
    if job:
        look(cli, cli.ask("GET", _path(job), JobView), follow)
    elif follow:
        raise InvalidInput("--follow needs a job", hint="`roost drain status` lists them")
    else:
        cli.show(cli.ask("GET", JOBS, JobList), view_jobs)


@app.command("pause", epilog="Example:  roost drain pause 01J8…")
@takes(*ASK_AND_SHOW)
def pause(cli: Context, job: JobArgument) -> None:
    """Move nobody more for now; the servers stay closed to new users."""
    _tell(cli, job, "pause")


@app.command("resume", epilog="Example:  roost drain resume 01J8…")
@takes(*ASK_AND_SHOW)
def resume(cli: Context, job: JobArgument) -> None:
    """Go on with a job that is paused, after its canary for example."""
    _tell(cli, job, "resume")


@app.command("cancel", epilog="Example:  roost drain cancel 01J8…")
@takes(*ASK_AND_SHOW)
def cancel(cli: Context, job: JobArgument) -> None:
    """End a job: who has moved stays there, the servers take users again."""
    _tell(cli, job, "cancel")


@app.command("rollback", epilog="Example:  roost drain rollback 01J8…")
@takes(*ASK_AND_SHOW)
def rollback(cli: Context, job: JobArgument) -> None:
    """Move those who have moved back to where they came from; refused where the old code cannot read them."""
    _tell(cli, job, "rollback")


def _tell(cli: Context, job: str, verb: str) -> None:
    cli.show(cli.ask("POST", f"{_path(job)}/{verb}", JobView), view_job)


@app.command("report", epilog="Examples:  roost drain report 01J8…   ·   roost drain report 01J8… --json")
@takes(*ASK_AND_SHOW)
def report(cli: Context, job: JobArgument) -> None:
    """Print a job's certificate: what was lost, doubled, reordered. Exit code 1 unless it holds."""
    found = cli.ask("GET", f"{_path(job)}/report", CertificateView)
    cli.show(found, view_certificate)
    if not found.holds:
        raise typer.Exit(1)


def _path(job: str) -> str:
    return f"{JOBS}/{quoted(job)}"


def split(texts: list[str]) -> list[str]:
    """Server ids, given one by one or with commas between them."""
    return [part for text in texts for part in text.split(",") if part]


def percent(text: str) -> int:
    number = text.removesuffix("%").strip() or "0"
    if not (number.isascii() and number.isdecimal() and len(number) <= 3 and int(number) <= 100):
        raise InvalidInput(f"--canary {text!r} is no share of the users", hint="give one such as 5%")
    return int(number)


def _me() -> str:
    with contextlib.suppress(OSError, KeyError):
        return getpass.getuser()
    return ""
