"""`roost queue`: who waits, who may enter, and what the operator orders."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from roost.api.queue import WORLD, Mode, WorldList, WorldPatch, WorldView
from roost.cli import client, output
from roost.cli.options import Data, Json, Url, load
from roost.core.errors import InvalidInput, RoostError
from roost.settings import Settings

app = typer.Typer(help="Who waits, who may enter, and what the operator orders.", no_args_is_help=True)

REFRESH_S = 1.0
NONE = "none"
MODES = ("auto", "hold", "closing", "queue-all", "off")

World = Annotated[str, typer.Option("--world", help="World.")]
AnyWorld = Annotated[
    str | None, typer.Option("--world", help="World.", show_default="all of them, with their servers")
]


@app.command("status", epilog="Examples:  roost queue status   ·   roost queue status --world main --json")
def status(world: AnyWorld = None, url: Url = None, data: Data = None, json: Json = False) -> None:
    """Show the lines of every world, its classes and its servers."""
    found = _look(load(url=url, data=data).settings, world)
    if json:
        output.print_json(found[0] if world else WorldList(found))
    else:
        Console(highlight=False).print(_picture(found))


@app.command(
    "watch", epilog="Examples:  roost queue watch   ·   roost queue watch --world main --json | jq .waiting"
)
def watch(world: AnyWorld = None, url: Url = None, data: Data = None, json: Json = False) -> None:
    """Show the status every second, until Ctrl-C. With --json one object per line."""
    settings = load(url=url, data=data).settings
    found = _look(settings, world)  # the first look may fail, later ones are repeated
    try:
        if json:
            _print_lines(settings, world, found)
        else:
            _draw(settings, world, found)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command("hold", epilog="Example:  roost queue hold --world main")
def hold(world: World = WORLD, url: Url = None, data: Data = None, json: Json = False) -> None:
    """Give out no tickets; the line grows and keeps its order."""
    _order(load(url=url, data=data).settings, world, WorldPatch(mode="hold"), json=json)


@app.command("resume", epilog="Example:  roost queue resume --world main")
def resume(world: World = WORLD, url: Url = None, data: Data = None, json: Json = False) -> None:
    """Let people in by the rules again: mode auto."""
    _order(load(url=url, data=data).settings, world, WorldPatch(mode="auto"), json=json)


@app.command(
    "mode", epilog="Examples:  roost queue mode closing   ·   roost queue mode queue-all --world eu-1"
)
def mode(
    wanted: Annotated[str, typer.Argument(help=f"One of {', '.join(MODES)}.", metavar="MODE")],
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Set how a world is run.

    auto: by the rules. hold: no tickets, places are given. closing: no new places, the line is let in.
    queue-all: everybody waits for a tick, also where there is room. off: no line; in while there is room.
    """
    if wanted not in MODES:
        raise InvalidInput(f"there is no mode {wanted!r}", hint=f"modes are: {', '.join(MODES)}")
    patch = WorldPatch(mode=msgspec.convert(wanted, Mode))
    _order(load(url=url, data=data).settings, world, patch, json=json)


@app.command("cap", epilog="Examples:  roost queue cap 500   ·   roost queue cap none")
def cap(
    most: Annotated[str, typer.Argument(help="Most people inside, or none.", metavar="N|none")],
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Limit the people inside, whatever the servers can take. Nobody is thrown out."""
    if most != NONE and not (most.isascii() and most.isdecimal()):
        raise InvalidInput(
            f"{most!r} is no number of people", hint="give a number, or none to lift the limit"
        )
    patch = WorldPatch(limit=None if most == NONE else int(most))
    _order(load(url=url, data=data).settings, world, patch, json=json)


@app.command(
    "rate", epilog="Examples:  roost queue rate 20   ·   roost queue rate 0.5   ·   roost queue rate none"
)
def rate(
    per_second: Annotated[str, typer.Argument(help="Tickets in a second, or none.", metavar="N|none")],
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
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
    _order(load(url=url, data=data).settings, world, WorldPatch(rate=wanted), json=json)


@app.command(
    "message",
    epilog='Examples:  roost queue message "maintenance until 20:00"   ·   roost queue message --clear',
)
def message(
    text: Annotated[
        str, typer.Argument(help="What everybody in the line is shown.", show_default=False)
    ] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take the message away.")] = False,
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Tell everybody in the line something."""
    if clear == bool(text):
        raise InvalidInput("say what to show, or --clear")
    _order(load(url=url, data=data).settings, world, WorldPatch(message=None if clear else text), json=json)


@app.command(
    "open",
    epilog="Examples:  roost queue open --at 2026-11-20T18:00:00+09:00   ·   roost queue open   (now)",
)
def open_world(
    at: Annotated[
        str, typer.Option(help="When, ISO 8601 with a zone.", show_default="now", metavar="TIME")
    ] = "",
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Open a world at a set time: whoever comes before takes part in a fair draw. Without a time: now."""
    _order(load(url=url, data=data).settings, world, WorldPatch(opens_at=at or None), json=json)


@app.command("kick", epilog="Example:  roost queue kick u-17 --world main")
def kick(
    user: Annotated[str, typer.Argument(help="User id.")],
    world: World = WORLD,
    url: Url = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Take somebody's place or ticket away. Whoever is in the game is the game server's matter."""
    settings = load(url=url, data=data).settings
    client.ask(settings, "DELETE", f"{_path(world)}/people/{client.quoted(user)}", None)
    if json:
        output.print_json({"world": world, "userId": user})
    else:
        print(f"{user} has no place in {world} any more")


def _path(world: str) -> str:
    return f"/queue/v1/worlds/{client.quoted(world)}"


def _look(settings: Settings, world: str | None) -> list[WorldView]:
    if world is not None:
        return [client.ask(settings, "GET", _path(world), WorldView)]
    return client.ask(settings, "GET", "/queue/v1/worlds", WorldList).worlds


def _order(settings: Settings, world: str, patch: WorldPatch, *, json: bool) -> None:
    found = client.ask(settings, "PATCH", _path(world), WorldView, body=patch)
    if json:
        output.print_json(found)
        return
    limit = "none" if found.limit is None else str(found.limit)
    print(f"{found.world}: mode {found.mode}, limit {limit}, {_rate(found)}, revision {found.revision}")
    if found.message:
        print(f"message: {found.message}")
    if found.opens_at and not found.draw_seed:
        print(f"opens {found.opens_at}; SHA-256 of the draw's seed {found.draw_digest}")


def _rate(found: WorldView) -> str:
    return "rate none" if found.rate is None else f"rate {found.rate:g}/s"


# -- pictures


def _picture(worlds: Sequence[WorldView]) -> RenderableType:
    """What a person sees: first what must never be, then the worlds, their classes, their servers."""
    parts: list[RenderableType] = [
        Text(
            f"OVERADMIT {count} in {found.world}: tickets were issued without room; this is a fault",
            "bold red",
        )
        for found in worlds
        if (count := found.counters.get("overadmit", 0))
    ]
    parts.append(output.table(_COLUMNS, [_world_row(found) for found in worlds]))
    classes = [
        (found.world, one.name, f"{one.share:.0%}", str(one.waiting), str(one.away), f"{one.per_second:.1f}")
        for found in worlds
        for one in found.classes
    ]
    parts += ["", output.table(("world", "class", "share", "waiting", "away", "per second"), classes)]
    servers = [
        (
            found.world,
            escape(one.server_id),
            f"{one.users}/{one.capacity}",
            _state(one.in_doubt),
            escape(one.url),
        )
        for found in worlds
        for one in found.servers
    ]
    parts += [
        f"{found.world} opens {found.opens_at}; SHA-256 of the draw's seed {found.draw_digest}"
        for found in worlds
        if found.opens_at and not found.draw_seed
    ]
    if servers:
        parts += ["", output.table(("world", "server", "inside", "state", "url"), servers)]
    else:
        parts += ["", "no game server has reported: nobody can enter"]
    return Group(*parts)


_COLUMNS = (
    *("world", "waiting", "away", "tickets", "held", "inside", "capacity", "free"),
    *("mode", "limit", "rate", "message"),
)


def _world_row(found: WorldView) -> tuple[str, ...]:
    numbers = (found.waiting, found.away, found.tickets, found.held, found.inside, found.capacity, found.free)
    return (
        found.world,
        *map(str, numbers),
        found.mode,
        "-" if found.limit is None else str(found.limit),
        "-" if found.rate is None else f"{found.rate:g}/s",
        escape(found.message),
    )


def _state(in_doubt: bool) -> str:
    return "[red]must report again[/]" if in_doubt else "counts"


def _print_lines(settings: Settings, world: str | None, found: list[WorldView]) -> None:
    while True:
        value = found[0] if world else WorldList(found)
        print(msgspec.json.encode(value).decode(), flush=True)
        found = _next_look(settings, world, found)


def _draw(settings: Settings, world: str | None, found: list[WorldView]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        while True:
            console.print(_picture(found))
            found = _next_look(settings, world, found)
    with Live(_picture(found), console=console, auto_refresh=False, screen=False) as live:
        while True:
            live.update(_picture(found), refresh=True)
            found = _next_look(settings, world, found)


def _next_look(settings: Settings, world: str | None, last: list[WorldView]) -> list[WorldView]:
    """The status a second later; while nobody answers, the last one, and why."""
    time.sleep(REFRESH_S)
    try:
        return _look(settings, world)
    except RoostError as error:
        print(f"roost: {error.message}", file=sys.stderr)
        return last
