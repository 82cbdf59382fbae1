"""`roost queue`: who waits, who may enter, and what the operator sets."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from rich.live import Live

from roost.api.queue import WORLD, Mode, ServerView, WorldList, WorldPatch, WorldView
from roost.cli.client import quoted
from roost.cli.context import NOTHING, Context, takes
from roost.cli.flags import ASK_AND_SHOW
from roost.cli.tables import Column, Part, Styled, Table, console, together
from roost.core.errors import InvalidInput, RoostError

app = typer.Typer(
    help="Who waits, who may enter, and what the operator sets.", no_args_is_help=True, add_completion=False
)

REFRESH_S = 1.0
NONE = "none"
MODES = ("auto", "hold", "closing", "queue-all", "off")

World = Annotated[str | None, typer.Argument(help="World.", metavar="WORLD", show_default=WORLD)]
AnyWorld = Annotated[
    str | None,
    typer.Argument(help="World.", metavar="WORLD", show_default="all of them, with their servers"),
]
SameWorld = Annotated[str | None, typer.Option("--world", help="The same as WORLD.", show_default=False)]


@app.command("status", epilog="Examples:  roost queue status   ·   roost queue status main --json")
@takes(*ASK_AND_SHOW)
def status(cli: Context, world: AnyWorld = None, same: SameWorld = None) -> None:
    """Show the lines of every world, its classes and its servers."""
    cli.show(_look(cli, _chosen(world, same)), view)


@app.command("watch", epilog="Examples:  roost queue watch   ·   roost queue watch main --json | jq .waiting")
@takes(*ASK_AND_SHOW)
def watch(cli: Context, world: AnyWorld = None, same: SameWorld = None) -> None:
    """Show the status every second, until Ctrl-C. With --json one object per line."""
    with contextlib.suppress(KeyboardInterrupt):
        _follow(cli, _looks(cli, _chosen(world, same)))


@app.command("hold", epilog="Examples:  roost queue hold   ·   roost queue hold eu-1")
@takes(*ASK_AND_SHOW)
def hold(cli: Context, world: World = None, same: SameWorld = None) -> None:
    """Give out no tickets; the line grows and keeps its order."""
    _override(cli, (world, same), WorldPatch(mode="hold"))


@app.command("resume", epilog="Examples:  roost queue resume   ·   roost queue resume eu-1")
@takes(*ASK_AND_SHOW)
def resume(cli: Context, world: World = None, same: SameWorld = None) -> None:
    """Let people in by the rules again: mode auto."""
    _override(cli, (world, same), WorldPatch(mode="auto"))


@app.command("mode", epilog="Examples:  roost queue mode closing   ·   roost queue mode queue-all eu-1")
@takes(*ASK_AND_SHOW)
def mode(
    cli: Context,
    wanted: Annotated[str, typer.Argument(help=f"One of {', '.join(MODES)}.", metavar="MODE")],
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Set how a world is run.

    auto: by the rules. hold: no tickets, places are given. closing: no new places, the line is let in.
    queue-all: everybody waits for a tick, also where there is room. off: no line; in while there is room.
    """
    if wanted not in MODES:
        raise InvalidInput(f"there is no mode {wanted!r}", hint=f"modes are: {', '.join(MODES)}")
    _override(cli, (world, same), WorldPatch(mode=msgspec.convert(wanted, Mode)))


@app.command("cap", epilog="Examples:  roost queue cap 500   ·   roost queue cap none eu-1")
@takes(*ASK_AND_SHOW)
def cap(
    cli: Context,
    most: Annotated[str, typer.Argument(help="Most people inside, or none.", metavar="N|none")],
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Limit the people inside, whatever the servers can take. Nobody is thrown out."""
    if most != NONE and not (most.isascii() and most.isdecimal()):
        raise InvalidInput(
            f"{most!r} is no number of people", hint="give a number, or none to lift the limit"
        )
    patch = WorldPatch(limit=None if most == NONE else int(most))
    _override(cli, (world, same), patch)


@app.command(
    "rate",
    epilog="Examples:  roost queue rate 20   ·   roost queue rate 0.5 eu-1   ·   roost queue rate none",
)
@takes(*ASK_AND_SHOW)
def rate(
    cli: Context,
    per_second: Annotated[str, typer.Argument(help="Tickets in a second, or none.", metavar="N|none")],
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Limit the tickets in a second, however much room there is."""
    try:
        wanted = None if per_second == NONE else float(per_second)
    except ValueError:
        raise InvalidInput(
            f"{per_second!r} is no number", hint="give tickets in a second, or none to lift the limit"
        ) from None
    if wanted is not None and not 0 < wanted <= 1_000_000:
        raise InvalidInput(
            "the rate must be above 0 and at most 1000000", hint="`roost queue hold` stops the line"
        )
    _override(cli, (world, same), WorldPatch(rate=wanted))


@app.command(
    "message",
    epilog='Examples:  roost queue message "maintenance until 20:00"   ·   roost queue message "…" eu-1'
    "   ·   roost queue message --clear --world eu-1",
)
@takes(*ASK_AND_SHOW)
def message(
    cli: Context,
    text: Annotated[
        str, typer.Argument(help="What everybody in the line is shown.", show_default=False)
    ] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take the message away.")] = False,
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Tell everybody in the line something."""
    if clear == bool(text):
        raise InvalidInput("say what to show, or --clear")
    _override(cli, (world, same), WorldPatch(message=None if clear else text))


@app.command(
    "open",
    epilog="Examples:  roost queue open --at 2026-11-20T18:00:00+09:00   ·   roost queue open eu-1   (now)",
)
@takes(*ASK_AND_SHOW)
def open_world(
    cli: Context,
    at: Annotated[
        str, typer.Option(help="When, ISO 8601 with a zone.", show_default="now", metavar="TIME")
    ] = "",
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Open a world at a set time: those who come before take part in a fair draw. Without a time: now."""
    _override(cli, (world, same), WorldPatch(opens_at=at or None))


@app.command("kick", epilog="Example:  roost queue kick u-17 eu-1")
@takes(*ASK_AND_SHOW)
def kick(
    cli: Context,
    user: Annotated[str, typer.Argument(help="User id.")],
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Take somebody's place or ticket away. People in the game are the game server's matter."""
    chosen = _chosen(world, same) or WORLD
    cli.ask("DELETE", f"{_path(chosen)}/people/{quoted(user)}", NOTHING)
    done = {"world": chosen, "userId": user}
    cli.show(done, lambda _: [f"{user} has no place in {chosen} any more"])


@app.command("drop-server", epilog="Example:  roost queue drop-server 501 eu-1")
@takes(*ASK_AND_SHOW)
def drop_server(
    cli: Context,
    server: Annotated[str, typer.Argument(help="Server id.")],
    world: World = None,
    same: SameWorld = None,
) -> None:
    """Take a server out of a world's ledger, whatever discovery says of it.

    Its seats and its people leave the ledger; its people keep their order if they come back. Nothing of its
    present life counts any more: it counts again when it registers anew.
    """
    chosen = _chosen(world, same) or WORLD
    cli.ask("DELETE", f"{_path(chosen)}/servers/{quoted(server)}", NOTHING)
    done = {"world": chosen, "serverId": server}
    cli.show(done, lambda _: [f"{server} is out of the ledger of {chosen}"])


def _chosen(world: str | None, same: str | None) -> str | None:
    """The world that was named, as an argument or with --world; None if none was."""
    if world is not None and same is not None and world != same:
        raise InvalidInput(f"the world is {world!r} and --world is {same!r}", hint="name one of them")
    return same if world is None else world


def _path(world: str) -> str:
    return f"/queue/v1/worlds/{quoted(world)}"


def _look(cli: Context, world: str | None) -> WorldView | WorldList:
    if world is not None:
        return cli.ask("GET", _path(world), WorldView)
    return cli.ask("GET", "/queue/v1/worlds", WorldList)


def _override(cli: Context, named: tuple[str | None, str | None], patch: WorldPatch) -> None:
    path = _path(_chosen(*named) or WORLD)
    cli.show(cli.ask("PATCH", path, WorldView, body=patch), view_order)


def view_order(found: WorldView) -> Iterator[Part]:
    limit = "none" if found.limit is None else str(found.limit)
    rate = "none" if found.rate is None else f"{found.rate:g}/s"
    yield f"{found.world}: mode {found.mode}, limit {limit}, rate {rate}, revision {found.revision}"
    if found.message:
        yield f"message: {found.message}"
    if found.opens_at and not found.draw_seed:
        yield f"opens {found.opens_at}; SHA-256 of the draw's seed {found.draw_digest}"


# -- pictures

WORLDS = (
    "world",
    "waiting",
    Column("away", drop=2),
    "tickets",
    Column("held", drop=1),
    "inside",
    "capacity",
    "free",
    "mode",
    Column("limit", drop=5),
    Column("rate", drop=4),
    Column("message", drop=3, wrap=True),
)
CLASSES = ("world", "class", "share", "waiting", "away", "per second")
SERVERS = ("world", "server", "inside", Column("state", wrap=True), Column("url", drop=1))


def view(found: WorldView | WorldList) -> Iterator[Part]:
    """First what must never be, then the worlds, their classes, their servers."""
    worlds = found.worlds if isinstance(found, WorldList) else [found]
    for one in worlds:
        if count := one.counters.get("overadmit", 0):
            said = f"OVERADMIT {count} in {one.world}: tickets were issued without room; this is a fault"
            yield Styled(said, "bold red")
    yield Table(WORLDS, [_world_row(one) for one in worlds])
    yield ""
    yield Table(CLASSES, _class_rows(worlds))
    for one in worlds:
        if one.opens_at and not one.draw_seed:
            yield f"{one.world} opens {one.opens_at}; SHA-256 of the draw's seed {one.draw_digest}"
    yield ""
    servers = _server_rows(worlds)
    yield Table(SERVERS, servers) if servers else "no game server has reported: nobody can enter"
    for one in worlds:
        if one.pending:
            yield (
                f"{one.world}: {', '.join(one.pending)} report, but no such server of type "
                f"{one.server_type} is registered: they count for nothing"
            )


def _class_rows(worlds: Sequence[WorldView]) -> list[tuple[str, ...]]:
    return [
        (found.world, one.name, f"{one.share:.0%}", str(one.waiting), str(one.away), f"{one.per_second:.1f}")
        for found in worlds
        for one in found.classes
    ]


def _server_rows(worlds: Sequence[WorldView]) -> list[tuple[str | Styled, ...]]:
    return [
        (found.world, one.server_id, f"{one.users}/{one.capacity}", _state(one), one.url)
        for found in worlds
        for one in found.servers
    ]


def _world_row(found: WorldView) -> tuple[str, ...]:
    numbers = (found.waiting, found.away, found.tickets, found.held, found.inside, found.capacity, found.free)
    return (
        found.world,
        *map(str, numbers),
        found.mode,
        "-" if found.limit is None else str(found.limit),
        "-" if found.rate is None else f"{found.rate:g}/s",
        found.message,
    )


def _state(server: ServerView) -> str | Styled:
    if server.in_doubt:
        return Styled("must report again", "red")
    return "takes users" if server.open else "takes no new users"


def _follow(cli: Context, looks: Iterator[WorldView | WorldList]) -> None:
    screen = console()
    if cli.json:
        for found in looks:
            cli.show_line(found)
    elif not screen.is_terminal:
        for found in looks:
            cli.show(found, view)
    else:
        with Live(console=screen, auto_refresh=False) as live:
            for found in looks:
                live.update(together(view(found)), refresh=True)


def _looks(cli: Context, world: str | None) -> Iterator[WorldView | WorldList]:
    """A status every second, for ever. The first may fail; later the last one stays, and stderr says why."""
    found = _look(cli, world)
    while True:
        yield found
        time.sleep(REFRESH_S)
        try:
            found = _look(cli, world)
        except RoostError as error:
            print(f"roost: {error.message}", file=sys.stderr)
