"""Running roles in the foreground, each in the same way: bind, open, serve, stop.

The port is taken first, so that a taken one is said before anything else happens; then the platform is
opened, which may wait for its store; then it serves until SIGINT or SIGTERM; what was opened last is closed
first, the store last of all.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from roost.app import Platform, open_platform
from roost.binding.rules import parse_types
from roost.core.errors import DataFolderInUse, InvalidInput, StartFailed
from roost.demo.fleet import Fleet
from roost.demo.leftovers import clean_up
from roost.demo.names import is_demo
from roost.demo.routes import routes as demo_routes
from roost.foreground import stop_signal
from roost.gateway.context import connection_limits
from roost.gateway.server import build_app, build_ops_app
from roost.local import api_token, describe_token, gateway_url, running_url, write_up_file
from roost.rotation import hangups, renewing
from roost.servers.gate.hosting import Identity as GateIdentity
from roost.servers.gate.hosting import gate_server
from roost.servers.hosting import Identity, game_server
from roost.settings import Settings, environment_for
from roost.store.inspect import check_server
from roost.store.topology.embedded import make_private
from roost.waitingroom.rules import parse_worlds
from roost.web.connections import raise_file_limit
from roost.web.listen import bind, serve, url_of

if TYPE_CHECKING:
    from roost.servers.entity.serving import EntityIdentity
    from roost.servers.orders.registering import OrdersIdentity

log = logging.getLogger("roost.roles")

ROLES = ("gateway", "manager", "gameserver", "entity", "gate", "orders")
"""The roles that `roost up` knows; `--without` leaves one out."""

ON_REQUEST = frozenset({"gameserver", "entity", "gate", "orders"})
"""Those that run only `--with` them, each as a process of its own."""

CHILD_STOP_S = 3.0

STORE_WAIT_S = 30.0
"""How long a role waits for a store that is away when it starts."""

YOUNG_OBJECTS = 20_000
"""Objects made, less those freed, before Python looks for cycles of dead ones; its own default is 700."""

Build = Callable[[Platform], web.Application]


@dataclass(frozen=True, slots=True)
class Role:
    """A role that is a platform with one listener."""

    name: str
    build: Build
    announce: Callable[[Platform, str], str]
    """What it prints when it is up; gets the platform and its URL."""

    def address(self, settings: Settings) -> tuple[str, int]:
        own = getattr(settings, self.name)
        return own.host, own.port


GATEWAY = Role("gateway", build_app, lambda platform, url: f"roost gateway is up: {url}")
MANAGER = Role(
    "manager",
    build_ops_app,
    lambda platform, url: (
        f"roost manager is up: worlds {', '.join(world.name for world in platform.worlds.all())}; "
        f"health and metrics at {url}"
    ),
)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run on the fastest loop that is there, with as many connections as the system allows."""
    raise_file_limit()
    collect_less_often()
    if sys.platform == "win32":
        asyncio.run(coroutine)
    else:
        import uvloop

        uvloop.run(coroutine)


def collect_less_often() -> None:
    """Leave cycles of dead objects alone for longer, and what was imported for good.

    A request makes hundreds of objects that are freed without it; looking for cycles at Python's default
    pace takes a tenth of a gateway's time.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


async def role(one: Role, settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """One role on a store that others use too, until a signal comes."""
    stop = stop_signal()
    opening = open_platform(settings, roles=(one.name,), attach=True, wait_s=wait_s)
    async with serving(one.address(settings), opening, one.build) as (platform, url):
        print(one.announce(platform, url), flush=True)
        await stop.wait()


async def up(
    settings: Settings, without: tuple[str, ...], also: tuple[str, ...] = (), *, demo: bool = False
) -> None:
    """Everything in one process, on a store of our own by default, until a signal comes.

    `demo`: with a fleet to look at, where one may run.
    """
    roles = tuple(role for role in ROLES if role not in without and (role in also or role not in ON_REQUEST))
    if "gameserver" in roles and "gateway" not in roles:
        raise InvalidInput("a gameserver under `roost up` needs its gateway", hint="drop --without gateway")
    stop = stop_signal()
    make_private(settings.data)
    address = GATEWAY.address(settings) if "gateway" in roles else None
    fleet = Fleet(settings) if demo and may_have_demo(settings, roles) else None
    build: Build = build_app if fleet is None else partial(build_app, more_routes=demo_routes(fleet))
    async with contextlib.AsyncExitStack() as stack:
        opening = serving(address, _platform_of_our_own(settings, roles), build)
        platform, url = await stack.enter_async_context(opening)
        write_up_file(settings, url or None)
        stack.callback(settings.up_file.unlink, missing_ok=True)
        if fleet is None:
            await clean_up(platform.store, settings)
        _announce(settings, url, platform, has_demo=fleet is not None)
        if "gameserver" in roles:
            await stack.enter_async_context(_child("gameserver", settings, "--url", url))
        for role in ("entity", "gate"):
            if role in roles:
                await stack.enter_async_context(_child(role, settings))
        if "orders" in roles:
            await stack.enter_async_context(_child("orders serve", settings))
        if fleet is not None:
            fleet.start(platform, url)
            stack.push_async_callback(fleet.close)
        await stop.wait()
        print("stopping …", flush=True)


async def gameserver(settings: Settings, identity: Identity, wait_s: float = STORE_WAIT_S) -> None:
    """The reference game server, with a gateway or straight on the store."""
    stop = stop_signal()
    where, token = gateway_url(settings), api_token(settings)
    opening = game_server(settings, where, token, identity, on_end=stop.set, wait_s=wait_s)
    async with renewing(stop, opening) as server:
        if server is not None:
            print(f"roost gameserver is up: {server.public_url}")
            print(f"  world   {settings.gameserver.world}, capacity {settings.gameserver.capacity}")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()
            print("stopping …", flush=True)


async def gate(settings: Settings, identity: GateIdentity, wait_s: float = STORE_WAIT_S) -> None:
    """A gate on the store that others use too."""
    stop = stop_signal()
    opening = gate_server(settings, api_token(settings), identity, on_end=stop.set, wait_s=wait_s)
    async with renewing(stop, opening) as server:
        if server is not None:
            print(f"roost gate is up: {server.url}")
            if server.tcp_url:
                print(f"  TCP     {server.tcp_url}")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()
            print("stopping …", flush=True)


async def entity(settings: Settings, identity: EntityIdentity, wait_s: float = STORE_WAIT_S) -> None:
    """An entity server on the store that others use too, with the class that the settings name."""
    from roost.servers.entity.serving import entity_server, load_class  # the databases, which others need not

    stop = stop_signal()
    entity_class, settings = load_class(settings.entity.class_name), _with_token(settings)
    opening = entity_server(settings, entity_class, identity, on_end=stop.set, wait_s=wait_s)
    async with renewing(stop, opening) as server:
        if server is not None:
            print(f"roost entity {identity.server_id} is up: {server.url} ({server.described})")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()
            print("stopping …", flush=True)


async def orders(settings: Settings, identity: OrdersIdentity, wait_s: float = STORE_WAIT_S) -> None:
    """An order server on the store that others use too."""
    from roost.servers.orders.serving import order_server

    stop = stop_signal()
    opening = order_server(_with_token(settings), identity, on_end=stop.set, wait_s=wait_s)
    async with renewing(stop, opening) as server:
        if server is not None:
            print(f"roost orders {identity.server_id} is up: {server.url} ({settings.lanes.durability})")
            print(f"  shards  {settings.orders.shards}")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()
            print("stopping …", flush=True)


async def dns(settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """Discovery as DNS, from the store that others use too."""
    try:
        from roost.servers.dns.serving import dns_server
    except ModuleNotFoundError as error:
        raise StartFailed(f"`roost dns` needs the package {error.name}", hint="install roost[dns]") from None

    stop = stop_signal()
    async with renewing(stop, dns_server(settings, api_token(settings), wait_s=wait_s)) as server:
        if server is not None:
            print(f"roost dns is up: {server.url} (zone {settings.dns.zone})")
            print(f"  metrics {server.ops_url}/metrics", flush=True)
            await stop.wait()


async def forward(settings: Settings, wait_s: float = STORE_WAIT_S) -> None:
    """What happens, told to another system, from the store that others use too."""
    from roost.forward.serving import forward_server

    stop = stop_signal()
    async with renewing(stop, forward_server(settings, api_token(settings), wait_s=wait_s)) as running:
        if running is not None:
            print(f"roost forward is up: to {running.to.kind} at {running.to.host}")
            print(f"  metrics {running.ops_url}/metrics", flush=True)
            await stop.wait()


def _with_token(settings: Settings) -> Settings:
    return dataclasses.replace(settings, api_token=api_token(settings))


@contextlib.asynccontextmanager
async def serving(
    address: tuple[str, int] | None,
    opening: contextlib.AbstractAsyncContextManager[Platform],
    build: Build,
    *,
    shared: bool = False,
) -> AsyncIterator[tuple[Platform, str]]:
    """Bind, open, serve, and in the end stop. Without an address nothing listens, and the URL is empty.

    `shared`: others listen there too and a supervisor holds the port, so this one listens only when it can
    answer; the others have its connections until then.
    """
    async with contextlib.AsyncExitStack() as stack:
        listener = bind(*address) if address is not None and not shared else None
        if listener is not None:
            stack.callback(listener.close)
        heard = stack.enter_context(hangups())
        platform = await stack.enter_async_context(opening)
        heard.attend(platform)
        await check_server(platform.store)
        if address is None:
            yield platform, ""
            return
        if listener is None:
            listener = bind(*address, shared=True)
            stack.callback(listener.close)
        runner = await serve(build(platform), listener, connection_limits(platform.settings))
        stack.push_async_callback(runner.cleanup)
        yield platform, url_of(listener)


@contextlib.asynccontextmanager
async def _child(role: str, settings: Settings, *more: str) -> AsyncIterator[None]:
    """A role as a process of its own, on the same store, ended before what it depends on."""
    flags = ["--data", str(settings.data), "--profile", settings.profile]
    flags += ["--config", settings.config] if settings.config else []
    # Its own session: a Ctrl-C in the terminal reaches it once, through us.
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "roost",
        *role.split(),
        *flags,
        *more,
        start_new_session=True,
        env=environment_for(settings),
    )
    watching = asyncio.create_task(_watch(role, child))
    try:
        yield
    finally:
        watching.cancel()
        if child.returncode is None:
            child.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_stop_s(role, settings)):
                    await child.wait()
        if child.returncode is None:
            child.kill()
            await child.wait()


def _stop_s(role: str, settings: Settings) -> float:
    """How long a child may take to end; one that holds users or shards writes them first."""
    more_ms = {"entity": settings.entity.stop_ms, "orders serve": settings.orders.stop_ms}
    return CHILD_STOP_S + more_ms.get(role, 0) / 1000


async def _watch(role: str, child: asyncio.subprocess.Process) -> None:
    code = await child.wait()
    log.error("a role has ended", extra={"role": role, "code": code})


@contextlib.asynccontextmanager
async def _platform_of_our_own(settings: Settings, roles: tuple[str, ...]) -> AsyncIterator[Platform]:
    try:
        async with open_platform(settings, roles=roles) as platform:
            yield platform
    except DataFolderInUse as error:
        if running := running_url(settings):
            raise DataFolderInUse(
                f"{error.message}: roost is already up at {running}", hint=error.hint
            ) from None
        raise


def may_have_demo(settings: Settings, roles: Collection[str]) -> bool:
    """On one machine, on a store of our own, where players need no login service and nothing has its names:
    whatever has them is taken out with it."""
    is_ours = settings.is_dev() and settings.store_url.shape == "embedded" and not settings.queue_keys
    named = {*parse_worlds(settings.queue.worlds), *parse_types(settings.binding.types)}
    return is_ours and {"gateway", "manager"} <= set(roles) and not any(map(is_demo, named))


def _announce(settings: Settings, url: str, platform: Platform, *, has_demo: bool) -> None:
    nodes = ", ".join(link.name for link in platform.store.links())
    lines = [
        f"roost is up: {url}" if url else "roost is up (store only)",
        f"  store   {settings.store_url} ({nodes})",
    ]
    if url:
        lines += [f"  token   {describe_token(settings)}", f"  console {url}/", f"  API     {url}/docs"]
    if has_demo:
        lines.append(
            "  demo    servers and players named demo-*, in a world of their own; --no-demo: without"
        )
    print("\n".join([*lines, "  stop with Ctrl-C"]), flush=True)
