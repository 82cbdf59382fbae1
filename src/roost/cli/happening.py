"""What happens, on the command line: a line for each event, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

import msgspec

from roost.api.events import Happening
from roost.cli.context import Context
from roost.cli.tables import Styled, draw
from roost.core.errors import RoostError, StartFailed, StoreError, Unavailable
from roost.core.loops import END, Loops

STYLES = {"warning": "yellow", "error": "bold red"}
GAP = "something may have been missed here"
RETRY_S = 1.0
NOWHERE = "-"
"""An id that no gateway has: the stream begins with a gap."""


def clock(iso: str) -> str:
    """In this machine's time, as people read it."""
    return datetime.fromisoformat(iso).astimezone().strftime("%H:%M:%S")


def line(happening: Happening) -> Styled:
    text = f"{clock(happening.at)}  {happening.scope:9}  {happening.text}"
    return Styled(text, STYLES.get(happening.level, ""))


def show(cli: Context, happening: Happening) -> None:
    """One event: with --json an object in a line."""
    if cli.json:
        print(msgspec.json.encode(happening).decode(), flush=True)
    else:
        draw(line(happening))
        sys.stdout.flush()


def tell_of_gap() -> None:
    print(f"roost: {GAP}", file=sys.stderr, flush=True)


def follow(
    cli: Context,
    scopes: Sequence[str],
    tell: Callable[[Happening], None],
    after: str = "",
    on_gap: Callable[[], None] = tell_of_gap,
) -> None:
    """Every event of these scopes after that id; a gateway that goes away is waited for, as stderr says."""
    try:
        asyncio.run(_follow(cli, scopes, tell, after, on_gap))
    except KeyboardInterrupt:
        return


async def _follow(
    cli: Context,
    scopes: Sequence[str],
    tell: Callable[[Happening], None],
    last_id: str,
    on_gap: Callable[[], None],
) -> None:
    from roost.sdk.http.session import Session

    session = Session(cli.gateway_url, cli.api_token)
    query = [("scope", scope) for scope in scopes]
    end: Exception | None = None

    async def step() -> object:
        """A stream until it ends. The last word is a refusal but "not now", or a reader who is gone."""
        nonlocal last_id, end
        try:
            async with aclosing(session.events("/events/v1", query, last_id)) as events:
                async for event_id, data in events:
                    _hand(data, tell, on_gap)
                    last_id = event_id
        except (StartFailed, StoreError, Unavailable) as error:
            print(f"roost: {error.message}; trying again", file=sys.stderr, flush=True)
        except (RoostError, BrokenPipeError) as error:
            end = error
            return END
        return None

    try:
        await Loops().keep_running("events", step, pause_s=RETRY_S)
    finally:
        await session.close()
    if end is not None:
        raise end


def _hand(data: bytes, tell: Callable[[Happening], None], on_gap: Callable[[], None]) -> None:
    found: dict[str, Any] = msgspec.json.decode(data)
    if "text" in found:
        tell(msgspec.convert(found, Happening))
    else:
        on_gap()
