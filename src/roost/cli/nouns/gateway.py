"""`roost gateway`: one HTTP gateway, on one core or several."""

from __future__ import annotations

import asyncio
import socket
from typing import Annotated

import typer

from roost.cli.context import Context, takes
from roost.cli.flags import Flag
from roost.cli.starting import GATEWAY, PANEL, Wait

app = typer.Typer(add_completion=False)

WORKERS = Flag("workers", int | None, "Processes that share its port.", "1", "gateway.workers")

Hidden = Annotated[int, typer.Option(hidden=True)]
"""Said by the supervisor to a worker, and by nobody else."""


@app.command(
    rich_help_panel=PANEL,
    epilog="Example:  roost gateway --store redis+sentinel://s1,s2,s3/main --profile lan --host 0.0.0.0 "
    "--workers 4",
)
@takes(*GATEWAY, WORKERS)
def gateway(cli: Context, wait: Wait = 30.0, worker: Hidden = 0, worker_line: Hidden = -1) -> None:
    """Run one HTTP gateway; any number of them share a store."""
    settings = cli.start()
    if settings.gateway.workers > 1 and not worker:
        from roost import workers

        asyncio.run(workers.supervisor(cli.loaded, wait))
        return
    from roost import roles

    if worker:
        from roost.gateway.workers.colleagues import Place
        from roost.workers import worker as work

        roles.run(work(settings, Place(worker, socket.socket(fileno=worker_line)), wait))
    else:
        roles.run(roles.role(roles.GATEWAY, settings, wait))
