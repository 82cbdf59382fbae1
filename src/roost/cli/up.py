"""Running roles in the foreground: `roost up` and each role alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from roost.app import Platform, open_platform
from roost.cli.client import api_token, describe_token, gateway_url
from roost.core.errors import DataFolderInUse, InvalidInput
from roost.gateway.server import build_app, build_ops_app
from roost.listening import bind, serve, url_of
from roost.servers.hosting import Identity, game_server
from roost.settings import Settings
from roost.store.inspect import check_server
from roost.store.topology.embedded import make_private

log = logging.getLogger("roost.up")

Opened = TypeVar("Opened")

ROLES = ("gateway", "manager", "gameserver")
"""The roles that `roost up` knows; `--without` leaves one out."""

ON_REQUEST = frozenset({"gameserver"})
"""Those that run only `--with` them, each as a process of its own."""

CHILD_STOP_S = 3.0

STORE_WAIT_S = 30.0
"""How long a role waits for a store that is away when it starts."""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run on the fastest loop that is there."""
    if sys.platform == "win32":
        asyncio.run(coroutine)
    else:
        import uvloop

        uvloop.run(coroutine)


async def up(settings: Settings, without: tuple[str, ...], also: tuple[str, ...] = ()) -> None:
    """Everything in one process, on a store of our own by default, until a signal comes."""
    roles = tuple(role for role in ROLES if role not in without and (role in also or role not in ON_REQUEST))
    if "gameserver" in roles and "gateway" not in roles:
        raise InvalidInput("a gameserver under `roost up` needs its gateway", hint="drop --without gateway")
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
            url = url_of(listener)
        _write_up_file(settings, url)
        stack.callback(settings.up_file.unlink, missing_ok=True)
        _announce(settings, url, platform)
        if "gameserver" in roles and url is not None:
            await stack.enter_async_context(_child("gameserver", settings, url))
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
        print(f"roost gateway is up: {url_of(listener)}", flush=True)
        await stop.wait()


async def manager(settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """One manager on a store that others use too: the loops of whoever leads."""
    stop = _stop_signal()
    listener = bind(settings.manager.host, settings.manager.port)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        opening = open_platform(settings, roles=("manager",), attach=True, wait_s=wait_s)
        platform = await stack.enter_async_context(opening)
        await check_server(platform.store)
        runner = await serve(build_ops_app(platform), listener)
        stack.push_async_callback(runner.cleanup)
        worlds = ", ".join(world.name for world in platform.worlds.all())
        print(f"roost manager is up: worlds {worlds}; health and metrics at {url_of(listener)}", flush=True)
        await stop.wait()


async def gameserver(settings: Settings, identity: Identity, wait_s: float = STORE_WAIT_S) -> None:
    """The reference game server, with a gateway or straight on the store."""
    stop = _stop_signal()
    where, token = gateway_url(settings), api_token(settings)
    opening = game_server(settings, where, token, identity, on_end=stop.set, wait_s=wait_s)
    async with _unless(stop, opening) as server:
        if server is not None:
            print(f"roost gameserver is up: {server.public_url}")
            print(f"  world   {settings.gameserver.world}, capacity {settings.gameserver.capacity}")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()
            print("stopping …", flush=True)


@contextlib.asynccontextmanager
async def _unless(
    stop: asyncio.Event, opening: contextlib.AbstractAsyncContextManager[Opened]
) -> AsyncIterator[Opened | None]:
    """What is opened, or None if a signal comes while it waits to be: a start can take its time."""
    async with contextlib.AsyncExitStack() as stack:
        entering = asyncio.create_task(stack.enter_async_context(opening))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not entering.done():
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            yield None
        else:
            yield entering.result()


@contextlib.asynccontextmanager
async def _child(role: str, settings: Settings, url: str) -> AsyncIterator[None]:
    """A role as a process of its own, ended before what it depends on."""
    flags = ["--data", str(settings.data), "--profile", settings.profile]
    flags += ["--config", settings.config] if settings.config else []
    # Its own session: a Ctrl-C in the terminal reaches it once, through us.
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "roost", role, *flags, "--url", url, start_new_session=True
    )
    watching = asyncio.create_task(_watch(role, child))
    try:
        yield
    finally:
        watching.cancel()
        if child.returncode is None:
            child.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHILD_STOP_S):
                    await child.wait()
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _watch(role: str, child: asyncio.subprocess.Process) -> None:
    code = await child.wait()
    log.error("a role has ended", extra={"role": role, "code": code})


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
    nodes = ", ".join(link.name for link in platform.store.links())
    lines = [
        f"roost is up: {url}" if url else "roost is up (store only)",
        f"  store   {settings.store_url} ({nodes})",
    ]
    if url:
        lines += [f"  token   {describe_token(settings)}", f"  API     {url}/docs"]
    print("\n".join([*lines, "  stop with Ctrl-C"]), flush=True)


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
