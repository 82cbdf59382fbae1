"""The aiohttp application, built by a function from a `Platform`, and the socket that it listens on."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable

from aiohttp import web

from roost.app import Platform
from roost.core.errors import InvalidId, PortTaken, StartFailed
from roost.gateway.auth import Tokens, root_token
from roost.gateway.errors import MethodNotAllowed, NotFound
from roost.gateway.ports import holder_of
from roost.gateway.route import Handler, Request, RequestIds, Route, RouteStats, adapt
from roost.gateway.routes.balancing import balancing_routes
from roost.gateway.routes.discovery import discovery_routes
from roost.gateway.routes.health import health_routes
from roost.gateway.routes.player_page import player_page_routes
from roost.gateway.routes.prometheus import prometheus_routes
from roost.gateway.routes.queue import queue_routes
from roost.gateway.routes.system import system_routes
from roost.gateway.routes.tokens import token_routes

SHUTDOWN_GRACE_S = 1.0


def build_app(platform: Platform, more_routes: Iterable[Route] = ()) -> web.Application:
    """Every route of this gateway, each behind its own adapter."""
    stats: dict[Route, RouteStats] = {}
    tokens, ids = Tokens(root_token(platform.settings), platform.store), RequestIds()
    routes = [
        *system_routes(platform, stats),
        *token_routes(tokens),
        *discovery_routes(platform),
        *health_routes(platform),
        *prometheus_routes(platform),
        *balancing_routes(),
        *queue_routes(platform),
        *player_page_routes(platform),
        *more_routes,
    ]
    for route in routes:
        stats[route] = RouteStats()
    app = web.Application()
    for route, counts in stats.items():
        handler = adapt(route, platform, tokens, ids, counts)
        app.router.add_route(route.method, route.path, handler)
        if route.method == "GET":
            app.router.add_route("HEAD", route.path, handler)
    fallback = Route("*", "/{rest:.*}", _refuser(list(stats)), "Everything else")
    app.router.add_route("*", fallback.path, adapt(fallback, platform, tokens, ids, RouteStats()))
    return app


def _refuser(routes: list[Route]) -> Handler:
    patterns = [(re.compile(re.sub(r"{\w+}", "[^/]+", route.path)), route.method) for route in routes]

    async def refuse(request: Request) -> None:
        allowed = sorted({method for pattern, method in patterns if pattern.fullmatch(request.http.path)})
        if request.http.method in allowed:
            raise InvalidId("ids in addresses hold no braces")  # aiohttp matches none that do
        if allowed:
            refusal = MethodNotAllowed(f"{request.http.path} takes {', '.join(allowed)}")
            refusal.allowed = tuple(allowed)
            raise refusal
        raise NotFound(f"there is nothing at {request.http.path}", hint="/docs lists every address")

    return refuse


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says who holds the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"port {port} is taken by {holder_of(port)}", hint="stop it, or choose another with --port"
            ) from None
        raise StartFailed(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="correct --host"
        ) from None
    except OverflowError:
        listener.close()
        raise StartFailed(f"{port} is not a port") from None
    listener.setblocking(False)
    return listener


async def serve(app: web.Application, listener: socket.socket) -> web.AppRunner:
    """Start answering on the socket; `await runner.cleanup()` ends it after a short grace."""
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=SHUTDOWN_GRACE_S,
        lingering_time=SHUTDOWN_GRACE_S,
        auto_decompress=False,
    )
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner
