"""`roost drill`: rehearse a bad evening."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW, JSON
from roost.cli.tables import Column, Part, Styled, Table

if TYPE_CHECKING:
    from roost.drills.hot_update import HotUpdateReport
    from roost.drills.launch import DrillReport, Progress
    from roost.drills.ledger import Book
    from roost.drills.orders import OrdersReport
    from roost.drills.soak import SoakReport

app = typer.Typer(
    help="Rehearse a bad evening, with a verdict on the guarantees.",
    no_args_is_help=True,
    add_completion=False,
)
MARKS = {True: Styled("held", "green"), False: Styled("BROKEN", "red")}


@app.command(
    "launch",
    epilog="Examples:  roost drill launch   ·   roost drill launch --users 20000 --session 10   ·   "
    "roost drill launch --json",
)
@takes(*ASK_AND_SHOW)
def launch(
    cli: Context,
    users: Annotated[int, typer.Option(help="How many people come.", min=1, max=200_000)] = 5000,
    world: Annotated[str, typer.Option(help="Which world.")] = "main",
    arrive: Annotated[float, typer.Option(help="Seconds within which they come.", min=0.1)] = 20.0,
    session: Annotated[float, typer.Option(help="Seconds that they stay, on average.", min=0.1)] = 3.0,
    capacity: Annotated[
        int, typer.Option(help="Of the servers that the drill brings; 0: a tenth of the people.")
    ] = 0,
    patience: Annotated[float, typer.Option(help="Seconds after which somebody gives up.")] = 600.0,
    servers: Annotated[
        bool | None,
        typer.Option(
            "--servers/--no-servers",
            help="Bring servers along, or use those that are there.",
            show_default="if none are there",
        ),
    ] = None,
    also: Annotated[list[str] | None, typer.Option(help="Another gateway's URL; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="For the same evening again; 0: another one each time.")] = 0,
) -> None:
    """Let people arrive, poll, vanish, crash and come back; judge G10, G11, G12. Exit code 1 if one broke."""
    from roost.core.signing import parse_keys
    from roost.drills.launch import Plan
    from roost.drills.launch import launch as run
    from roost.drills.player import Habits

    plan = Plan(
        urls=[cli.gateway_url, *(also or ())],
        token=cli.api_token,
        users=users,
        world=world,
        capacity=capacity,
        bring_servers=servers,
        keys=parse_keys(cli.settings.queue_keys) if cli.settings.queue_keys else (),
        habits=Habits(arrive_s=arrive, session_s=session, patience_s=patience),
        seed=seed,
    )
    with _progress(users, quiet=cli.json or not sys.stderr.isatty()) as progress:
        report = asyncio.run(run(plan, progress))
    cli.show(report, view)
    if not report.passed:
        raise typer.Exit(1)


@app.command(
    "soak",
    epilog="Examples:  roost drill soak --minutes 10   ·   roost drill soak --minutes 1 --fault store-killed",
)
@takes(JSON)
def soak(
    cli: Context,
    minutes: Annotated[
        float, typer.Option(help="How long; each fault has its turn at least once.", min=0)
    ] = 10.0,
    users: Annotated[int, typer.Option(help="How many people come each evening.", min=1, max=20_000)] = 150,
    capacity: Annotated[int, typer.Option(help="Of the two game servers together.", min=2)] = 60,
    fault: Annotated[
        list[str] | None, typer.Option(help="A fault to play; may be repeated.", show_default="all of them")
    ] = None,
    quiet: Annotated[
        float, typer.Option(help="Seconds it waits at most for idle connections to close.", min=0)
    ] = 35.0,
    folder: Annotated[
        Path | None, typer.Option(help="For the logs and the store.", show_default="a new one in /tmp")
    ] = None,
) -> None:
    """One evening after the other, with each fault in turn, on processes of its own: is anybody lost, does
    anything grow? Exit code 1 if so."""
    from roost.drills.faults import FAULTS
    from roost.drills.soak import SoakPlan
    from roost.drills.soak import soak as run

    where = folder or Path(tempfile.mkdtemp(prefix="roost-soak-"))
    plan = SoakPlan(where, minutes, users, capacity, tuple(fault or FAULTS), quiet)
    report = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    cli.show(report, view_soak)
    if not report.passed:
        raise typer.Exit(1)


FLATNESS = {True: Styled("flat", "green"), False: Styled("GROWS", "red"), None: Styled("too short", "dim")}


def view_soak(report: SoakReport) -> Iterator[Part]:
    yield f"{len(report.evenings)} evenings in {report.seconds / 60:.1f} min; logs are in {report.folder}"
    yield Table(
        ("what", "measure", "early", "late", ""),
        [(c.what, c.measure, f"{c.early:g}", f"{c.late:g}", FLATNESS[c.flat]) for c in report.courses],
    )
    yield Table(
        ("process", "loop", "failed turns"), [(v.process, v.loop, str(v.failures)) for v in report.loops]
    )
    yield Table(
        ("verdict", "", Column("", wrap=True)),
        [(one.guarantee, MARKS[one.held], one.said) for one in report.verdicts],
    )


@app.command(
    "hotfix",
    epilog="Examples:  roost drill hotfix   ·   roost drill hotfix --users 200 --kill source   ·   "
    "roost drill hotfix --json",
)
@takes(JSON)
def hotfix(
    cli: Context,
    clients: Annotated[
        int, typer.Option(help="Who ask for the version without pause.", min=1, max=1000)
    ] = 10,
    users: Annotated[
        int, typer.Option(help="Bound and cached on 501, the clients among them.", min=1, max=100_000)
    ] = 2000,
    rate: Annotated[int, typer.Option(help="Users that move in a second, at most.", min=1, max=10_000)] = 100,
    kill: Annotated[
        str,
        typer.Option(
            help="Kill -9 in the middle: source, target, controller, gate or store.", show_default="nobody"
        ),
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(help="For the logs and the store.", show_default="a new one in /tmp")
    ] = None,
) -> None:
    """Replace a server of version 1.0 by one of 2.0 under its players, on processes of its own. Exit code 1
    if anybody noticed."""
    from roost.drills.hot_update import HotUpdatePlan
    from roost.drills.hot_update import hot_update as run

    where = folder or Path(tempfile.mkdtemp(prefix="roost-hotfix-"))
    plan = HotUpdatePlan(where, clients, users, rate, kill)
    report = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    cli.show(report, view_hotfix)
    if not report.passed:
        raise typer.Exit(1)


def view_hotfix(report: HotUpdateReport) -> Iterator[Part]:
    yield Table(("at", Column("timeline", wrap=True)), [(f"{e.at_s:.1f} s", e.what) for e in report.timeline])
    yield (
        f"{report.requests} requests of {len(report.clients)} clients, answered in "
        f"{report.answer_p50_ms:g} ms (p50), {report.answer_p99_ms:g} ms (p99), "
        f"{report.answer_max_ms:g} ms at most; logs are in {report.folder}"
    )
    if report.certificate is not None:
        yield "\n".join(report.certificate.lines)
    yield Table(
        ("verdict", "", Column("", wrap=True)),
        [(one.guarantee, MARKS[one.held], one.said) for one in report.verdicts],
    )


@app.command(
    "orders",
    epilog="Examples:  roost drill orders   ·   roost drill orders --kill owner   ·   "
    "roost drill orders --rate 1000 --symbols 100 --seconds 60 --kill store --json",
)
@takes(JSON)
def orders(
    cli: Context,
    rate: Annotated[int, typer.Option(help="Commands in a second, of all traders.", min=1, max=50_000)] = 400,
    symbols: Annotated[
        int, typer.Option(help="Symbols; each has a buyer and a seller.", min=1, max=5000)
    ] = 40,
    seconds: Annotated[float, typer.Option(help="How long they trade.", min=1)] = 20.0,
    kill: Annotated[
        str, typer.Option(help="Kill -9 in the middle: owner or store.", show_default="nobody")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(help="For the logs and the store.", show_default="a new one in /tmp")
    ] = None,
) -> None:
    """Trade on two order servers of its own, kill one or the store; judge G13 to G16. Exit code 1 if one
    broke."""
    from roost.drills.orders import OrdersPlan
    from roost.drills.orders import orders as run

    where = folder or Path(tempfile.mkdtemp(prefix="roost-orders-"))
    plan = OrdersPlan(where, rate, symbols, seconds, kill)
    report = asyncio.run(run(plan, lambda line: print(line, file=sys.stderr, flush=True)))
    cli.show(report, view_orders)
    if not report.passed:
        raise typer.Exit(1)


def view_orders(report: OrdersReport) -> Iterator[Part]:
    yield Table(("at", Column("timeline", wrap=True)), [(f"{e.at_s:.1f} s", e.what) for e in report.timeline])
    yield ", ".join(f"{count} {name}" for name, count in report.counts.items())
    yield f"the longest wait for an outcome was {report.slowest_s:g} s; logs are in {report.folder}"
    yield Table(
        ("verdict", "", Column("", wrap=True)),
        [(one.guarantee, MARKS[one.held], one.said) for one in report.verdicts],
    )


@contextlib.contextmanager
def _progress(users: int, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr: how many are through, how many are inside."""
    if quiet:
        yield lambda book, seconds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("launch"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        bar = bars.add_task("launch", total=users, said="")

        def show(book: Book, seconds: float) -> None:
            said = f"{len(book.inside)} inside, {book.counts['polls'] / max(seconds, 0.1):.0f} polls/s"
            bars.update(bar, completed=book.counts["finished"], said=said)

        yield show


def view(report: DrillReport) -> Iterator[Part]:
    yield f"{report.finished} of {report.users} people got in and out, {report.seconds:g} s"
    yield Table(
        ("", "p50", "p99"),
        [
            ("entry → ticket", f"{report.entry_to_ticket_p50_s:g} s", f"{report.entry_to_ticket_p99_s:g} s"),
            (
                "ticket → inside",
                f"{report.ticket_to_consumed_p50_ms:g} ms",
                f"{report.ticket_to_consumed_p99_ms:g} ms",
            ),
        ],
    )
    yield ", ".join(f"{count} {name}" for name, count in report.counts.items() if name != "finished")
    yield Table(
        ("guarantee", "", Column("", wrap=True)),
        [(one.guarantee, MARKS[one.held], one.said) for one in report.guarantees],
    )
