"""A drain job, followed until it is over: drawn where there is a terminal, else a line for each change.

`wait` is for stop hooks: it asks until somebody takes the order, sits out a pause, and returns when the
servers have left, or in time for whoever stops them to go on without it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import NoReturn

import typer
from rich.live import Live

from roost.api.discovery import InstanceList
from roost.api.drain import DrainInput, DrainReply, JobView, WrongJobState
from roost.cli.client import quoted
from roost.cli.context import Context
from roost.cli.draining import line, reasons, view_certificate, view_job
from roost.cli.printable import printable
from roost.cli.tables import console, draw, together
from roost.core.errors import RoostError, StartFailed, StoreError, Unavailable

REFRESH_S = 1.0
INTERRUPTED = 130
"""The exit code of who ended it with Ctrl-C, as shells have it."""
AWAY = (StartFailed, StoreError, Unavailable)
"""Nobody answers just now; asking again is harmless."""
NOT_YET = (*AWAY, WrongJobState)
"""Or another job moves users of the server, and does not empty it: it ends some time."""


def follow(cli: Context, job: JobView) -> None:
    """Until it is over, or paused. The exit code is 0 if it is done and its certificate holds."""
    try:
        last = _show(cli, _looks(cli, job))
    except KeyboardInterrupt:
        print(
            f"job {job.id} goes on without you: `roost drain status {job.id} --follow`,"
            f" `roost drain cancel {job.id}`",
            file=sys.stderr,
        )
        raise typer.Exit(INTERRUPTED) from None
    if last.state == "paused":
        print(f"`roost drain resume {last.id}` goes on", file=sys.stderr)
    if not is_good(last):
        raise typer.Exit(1)


def is_good(job: JobView) -> bool:
    return job.state == "done" and job.certificate is not None and job.certificate.holds


def _show(cli: Context, looks: Iterator[JobView]) -> JobView:
    if cli.json:
        return _lines(cli, looks)
    screen = console()
    if not screen.is_terminal:
        last = _lines(cli, looks)
        for part in view_certificate(last.certificate) if last.certificate else ():
            draw(part)
        return last
    with Live(console=screen, auto_refresh=False) as live:
        for job in looks:
            live.update(together(view_job(job)), refresh=True)
    return job


def _lines(cli: Context, looks: Iterator[JobView]) -> JobView:
    said: set[str] = set()
    for job in looks:
        if cli.json:
            cli.show_line(job)
            continue
        now = [line(job), *reasons(job)]
        for text in now:
            if text not in said:
                print(printable(text), flush=True)
        said = set(now)
    return job


def _looks(cli: Context, job: JobView) -> Iterator[JobView]:
    """A look each second, the last one when it is over. While nobody answers, stderr says why."""
    while True:
        yield job
        if job.ended_at or job.state == "paused":
            return
        time.sleep(REFRESH_S)
        try:
            job = cli.ask("GET", f"/drain/v1/jobs/{quoted(job.id)}", JobView)
        except AWAY as error:
            _complain(error)


def wait(cli: Context, wanted: DrainInput, seconds: float) -> None:
    """Start it, and return when the servers are empty and gone. The exit code is 0 if its certificate holds.

    After `seconds` the exit code is 1 and the job goes on, as far as its servers let it.
    """
    deadline = time.monotonic() + seconds
    job: JobView | None = None
    while job is None or not job.ended_at:
        if time.monotonic() > deadline:
            _give_up(job, seconds)
        job = _look(cli, wanted, job)
        if job is not None:
            cli.show_line(job, line)
    if job.state == "done":
        _wait_until_gone(cli, job, deadline)
    if not is_good(job):
        raise typer.Exit(1)


def _look(cli: Context, wanted: DrainInput, job: JobView | None) -> JobView | None:
    """The job as it is now; the first look starts it, and finds the job of a server that is being emptied."""
    try:
        if job is None:
            return cli.ask("POST", "/drain/v1/jobs", DrainReply, body=wanted).job
        time.sleep(REFRESH_S)
        return cli.ask("GET", f"/drain/v1/jobs/{quoted(job.id)}", JobView)
    except NOT_YET as error:
        _complain(error)
        time.sleep(REFRESH_S)
        return job


def _wait_until_gone(cli: Context, job: JobView, deadline: float) -> None:
    """Emptied servers send on whoever still comes by an old route, and then end by themselves."""
    while time.monotonic() < deadline:
        try:
            there = cli.ask("GET", "/sd/v1/instances", InstanceList, query=[("type", job.type)])
            if not set(job.servers) & {one.server_id for one in there.instances}:
                return
        except AWAY as error:
            _complain(error)
        time.sleep(REFRESH_S)


def _give_up(job: JobView | None, seconds: float) -> NoReturn:
    what = f"job {job.id} is {job.state}" if job is not None else "no gateway has taken the order"
    print(f"roost: not over after {seconds:g} s: {what}", file=sys.stderr)
    raise typer.Exit(1)


def _complain(error: RoostError) -> None:
    print(f"roost: {error.message}", file=sys.stderr)
