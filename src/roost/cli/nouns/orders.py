"""`roost orders`: ordered work on symbols, its servers and its operators."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from roost.api.orders import (
    MAX_LANE,
    MAX_SHARD,
    AdviceView,
    BookView,
    HaltInput,
    HaltReply,
    MoveInput,
    OrderView,
    PlacedReply,
    PlacementView,
    PlaceView,
    ShardList,
)
from roost.cli.context import Context, takes
from roost.cli.flags import ASK_AND_SHOW, DATA, JSON, Flag
from roost.cli.ordering import (
    view_advice,
    view_book,
    view_halt,
    view_id,
    view_order,
    view_place,
    view_placed,
    view_placement,
    view_shards,
    view_top,
)
from roost.cli.starting import CONFIG, PROFILE, STORE, Ttl, Wait, host

PLACEMENT = "/orders/v1/placement"
REFRESH_S = 1.0

SymbolArgument = Annotated[str, typer.Argument(help="Symbol.", metavar="SYMBOL")]
ShardArgument = Annotated[int, typer.Argument(help="Shard, 0 to 15.", metavar="SHARD", min=0, max=MAX_SHARD)]
IdArgument = Annotated[str, typer.Argument(help="Order id.", metavar="ID")]
Expected = Annotated[
    int | None,
    typer.Option(help="Only if the placement is of this version.", min=0, show_default="whatever it is"),
]

app = typer.Typer(
    help="Orders in lanes: serve them, look at them, halt symbols.",
    no_args_is_help=True,
    add_completion=False,
)

SERVE = (
    STORE,
    Flag("database", str | None, "Database for orders.", "SQLite in the data folder", "database"),
    Flag("port", int | None, "Port for traders; metrics are 1000 above.", "8440", "orders.port"),
    host("orders"),
    Flag("shards", str | None, "auto, or a list such as 0-7,12.", "auto", "orders.shards"),
    Flag("durability", str | None, "memory, everysec, fsync or replica.", "everysec", "lanes.durability"),
    *(DATA, PROFILE, CONFIG),
)


@app.callback()
def orders() -> None:
    """A command group, however few commands it has."""


@app.command(
    "serve",
    epilog="Examples:  roost orders serve   ·   roost orders serve --id 902 --port 8441   ·   "
    "roost orders serve --shards 0-7 --durability fsync",
)
@takes(*SERVE)
def serve(
    cli: Context,
    server_id: Annotated[str, typer.Option("--id", help="Server id, unique among the live ones.")] = "901",
    version: Annotated[str, typer.Option("--version", help="Version of the program.")] = "1.0",
    group: Annotated[str, typer.Option("--group", help="Group.")] = "main",
    ttl: Ttl = 0.0,
    wait: Wait = 30.0,
) -> None:
    """Run an order server: it owns shards and executes the commands of each symbol in order."""
    from roost import roles
    from roost.servers.orders.registering import OrdersIdentity

    roles.run(roles.orders(cli.start(), OrdersIdentity(server_id, version, group, ttl), wait))


@app.command(
    "top", epilog="Examples:  roost orders top   ·   roost orders top --once   ·   roost orders top --json"
)
@takes(*ASK_AND_SHOW)
def top(
    cli: Context,
    once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
) -> None:
    """Show every shard at work, again each second: what waits, how fast, hot symbols, rejects, losses."""
    found = _shards(cli)
    if once or cli.json or not _is_terminal():
        cli.show(found, view_top)
        return
    from rich.live import Live

    from roost.cli.tables import console, together

    try:
        with Live(console=console(), auto_refresh=False) as live:
            while True:
                live.update(together(view_top(found)), refresh=True)
                time.sleep(REFRESH_S)
                found = _shards(cli)
    except KeyboardInterrupt:
        return


@app.command("shards", epilog="Examples:  roost orders shards   ·   roost orders shards --json")
@takes(*ASK_AND_SHOW)
def shards(cli: Context) -> None:
    """Show who owns each shard, until when. Exit code 1 if nobody owns some."""
    found = _shards(cli)
    cli.show(found, view_shards)
    if not all(shard.owner for shard in found.shards):
        raise typer.Exit(1)


@app.command("place", epilog="Examples:  roost orders place   ·   roost orders place BTCUSDT")
@takes(*ASK_AND_SHOW)
def place(
    cli: Context,
    symbol: Annotated[
        str, typer.Argument(help="Symbol.", metavar="[SYMBOL]", show_default="all that are pinned")
    ] = "",
) -> None:
    """Show where a symbol is served, or all that are not where their hash puts them."""
    if symbol:
        cli.show(cli.ask("GET", _placement(symbol), PlaceView), view_place)
    else:
        cli.show(cli.ask("GET", PLACEMENT, PlacementView), view_placement)


@app.command(
    "move", epilog="Examples:  roost orders move BTCUSDT 3   ·   roost orders move BTCUSDT 3 --lane 17"
)
@takes(*ASK_AND_SHOW)
def move(
    cli: Context,
    symbol: SymbolArgument,
    shard: ShardArgument,
    lane: Annotated[
        int | None, typer.Option(help="Lane.", min=0, max=MAX_LANE, show_default="that of its hash")
    ] = None,
    expected: Expected = None,
) -> None:
    """Serve a symbol in another shard: it moves with its open orders while it trades."""
    wanted = MoveInput(shard, lane, expected)
    cli.show(cli.ask("PUT", _placement(symbol), PlacedReply, body=wanted), view_placed)


@app.command("unpin", epilog="Example:  roost orders unpin BTCUSDT")
@takes(*ASK_AND_SHOW)
def unpin(cli: Context, symbol: SymbolArgument, expected: Expected = None) -> None:
    """Serve a symbol where its hash puts it: it moves back; once there, its pin is forgotten."""
    query = () if expected is None else (("expected", str(expected)),)
    cli.show(cli.ask("DELETE", _placement(symbol), PlacedReply, query=query), view_placed)


@app.command("advise", epilog="Examples:  roost orders advise   ·   roost orders advise --json")
@takes(*ASK_AND_SHOW)
def advise(cli: Context) -> None:
    """Propose which symbols to move so that the shards share the load; nothing is changed."""
    cli.show(cli.ask("GET", "/orders/v1/advice", AdviceView), view_advice)


@app.command(
    "explain-id",
    epilog="Examples:  roost orders explain-id 380104982312345601   ·   roost orders explain-id 42",
)
@takes(JSON)
def explain_id(cli: Context, order_id: IdArgument) -> None:
    """Say what a number looks like, read as an order id. It asks nobody. Exit code 1 if it can be none."""
    from roost.lanes.views import id_view, parse_id

    found = id_view(parse_id(order_id), int(time.time() * 1000))
    cli.show(found, view_id)
    if not found.plausible:
        raise typer.Exit(1)


@app.command("halt", epilog='Example:  roost orders halt BTCUSDT --why "news pending"')
@takes(*ASK_AND_SHOW)
def halt(
    cli: Context,
    symbol: SymbolArgument,
    why: Annotated[str, typer.Option(help="Reason, for those who look.", show_default="none")] = "",
) -> None:
    """Take no new orders for a symbol; cancels go on."""
    reply = cli.ask("POST", _symbol(symbol, "halt"), HaltReply, body=HaltInput(why))
    cli.show(reply, view_halt)


@app.command("resume", epilog="Example:  roost orders resume BTCUSDT")
@takes(*ASK_AND_SHOW)
def resume(cli: Context, symbol: SymbolArgument) -> None:
    """Take orders for a symbol again."""
    cli.show(cli.ask("POST", _symbol(symbol, "resume"), HaltReply), view_halt)


@app.command("order", epilog="Example:  roost orders order 380104982312345601 --account ann")
@takes(*ASK_AND_SHOW)
def order(
    cli: Context, order_id: IdArgument, account: Annotated[str, typer.Option(help="Whose order it is.")]
) -> None:
    """Show an order as its last command left it."""
    path = f"/orders/v1/orders/{_quoted(order_id)}"
    cli.show(cli.ask("GET", path, OrderView, query=(("account", account),)), view_order)


@app.command(
    "replay",
    epilog="Examples:  roost orders replay BTCUSDT   ·   roost orders replay BTCUSDT --to 48211 --json",
)
@takes(*ASK_AND_SHOW)
def replay(
    cli: Context,
    symbol: SymbolArgument,
    to: Annotated[
        int, typer.Option(help="Last command of the shard that counts.", min=0, show_default="the newest")
    ] = 0,
    shard: Annotated[
        int | None,
        typer.Option(help="Where it was before.", min=0, max=MAX_SHARD, show_default="where it is"),
    ] = None,
) -> None:
    """Show the book of a symbol as it stood at a command, rebuilt from the shard's log."""
    query = (("to", str(to)), *((("shard", str(shard)),) if shard is not None else ()))
    cli.show(cli.ask("GET", _symbol(symbol, "replay"), BookView, query=query), view_book)


def _shards(cli: Context) -> ShardList:
    return cli.ask("GET", "/orders/v1/shards", ShardList)


def _placement(symbol: str) -> str:
    return f"{PLACEMENT}/{_quoted(symbol)}"


def _symbol(symbol: str, verb: str) -> str:
    return f"/orders/v1/symbols/{_quoted(symbol)}/{verb}"


def _quoted(text: str) -> str:
    from roost.cli.client import quoted

    return quoted(text)


def _is_terminal() -> bool:
    from roost.cli.tables import console

    return console().is_terminal
