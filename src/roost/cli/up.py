"""Running roles in the foreground: `roost up` and `roost gateway`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from roost.app import Platform, open_platform
from roost.cli.client import describe_token
from roost.core.errors import DataFolderInUse
from roost.gateway.server import bind, build_app, serve
from roost.settings import Settings
from roost.store.inspect import check_server
from roost.store.topology.embedded import make_private

log = logging.getLogger("roost.up")

ROLES = ("gateway", "manager")
"""The roles that `roost up` runs; `--without` leaves one out."""

STORE_WAIT_S = 30.0
"""How long a role waits for a store that is away when it starts."""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run on the fastest loop that is there."""
    if sys.platform == "win32":
        asyncio.run(coroutine)
    else:
        import uvloop

        uvloop.run(coroutine)


async def up(settings: Settings, without: tuple[str, ...]) -> None:
    """Everything in one process, on a store of our own by default, until a signal comes."""
    roles = tuple(role for role in ROLES if role not in without)
    stop = _stop_signal()
    make_private(settings.data)
    listener = bind(settings.gateway.host, settings.gateway.port) if "gateway" in roles else None
    async with contextlib.AsyncExitStack() as stack:
        if listener is not None:
            stack.callback(listener.close)
        platform = await stack.enter_async_context(_platform_of_our_own(settings, roles))
        await check_server(platform.store)
        url = None
        if listener is not None:
            runner = await serve(build_app(platform), listener)
            stack.push_async_callback(runner.cleanup)
            host, port = listener.getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        _write_up_file(settings, url)
        stack.callback(settings.up_file.unlink, missing_ok=True)
        _announce(settings, url, platform)
        await stop.wait()
        print("stopping …", flush=True)


async def gateway(settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """One gateway on a store that others use too."""
    stop = _stop_signal()
    listener = bind(settings.gateway.host, settings.gateway.port)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        opening = open_platform(settings, roles=("gateway",), attach=True, wait_s=wait_s)
        platform = await stack.enter_async_context(opening)
        await check_server(platform.store)
        runner = await serve(build_app(platform), listener)
        stack.push_async_callback(runner.cleanup)
        host, port = listener.getsockname()[:2]
        print(f"roost gateway is up: http://{host}:{port}", flush=True)
        await stop.wait()


async def manager(settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """One manager on a store that others use too: the loops of whoever leads."""
    stop = _stop_signal()
    async with open_platform(settings, roles=("manager",), attach=True, wait_s=wait_s) as platform:
        await check_server(platform.store)
        worlds = ", ".join(world.name for world in platform.worlds.all())
        print(f"roost manager is up: worlds {worlds}", flush=True)
        await stop.wait()


@contextlib.asynccontextmanager
async def _platform_of_our_own(settings: Settings, roles: tuple[str, ...]) -> Any:
    try:
        async with open_platform(settings, roles=roles) as platform:
            yield platform
    except DataFolderInUse as error:
        with contextlib.suppress(OSError, ValueError, KeyError):
            running = json.loads(settings.up_file.read_text(encoding="utf-8"))
            raise DataFolderInUse(
                f"{error.message}: roost is already up at {running['url']}", hint=error.hint
            ) from None
        raise


def _announce(settings: Settings, url: str | None, platform: Platform) -> None:
    print(f"roost is up: {url}" if url else "roost is up (store only)")
    print(f"  store   {settings.store_url} ({', '.join(link.name for link in platform.store.links())})")
    if url:
        print(f"  token   {describe_token(settings)}")
        print(f"  API     {url}/docs")
    print("  stop with Ctrl-C", flush=True)


def _write_up_file(settings: Settings, url: str | None) -> None:
    fresh = settings.up_file.with_suffix(".new")
    fresh.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    fresh.replace(settings.up_file)


def _stop_signal() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return stop
