"""The aiohttp application, built by a function from a `Platform`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aiohttp import web

from roost.app import Platform
from roost.core.errors import InvalidId
from roost.gateway.auth import Tokens, root_token
from roost.gateway.errors import MethodNotAllowed, NotFound
from roost.gateway.route import Handler, Request, RequestIds, Route, RouteStats, adapt
from roost.gateway.routes.balancing import balancing_routes
from roost.gateway.routes.discovery import discovery_routes
from roost.gateway.routes.health import health_routes
from roost.gateway.routes.player_page import player_page_routes
from roost.gateway.routes.prometheus import prometheus_routes
from roost.gateway.routes.queue import queue_routes
from roost.gateway.routes.system import system_routes
from roost.gateway.routes.tokens import token_routes
from roost.gateway.routes.worlds import world_routes
from roost.listening import bind as bind
from roost.listening import serve as serve

OPS_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


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
        *queue_routes(platform, tokens),
        *world_routes(platform),
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


def build_ops_app(platform: Platform) -> web.Application:
    """What a role without a port of its own serves: /healthz, /readyz, /metrics."""
    stats: dict[Route, RouteStats] = {}
    tokens, ids = Tokens(root_token(platform.settings), platform.store), RequestIds()
    app = web.Application()
    for route in system_routes(platform, stats):
        if route.path in OPS_PATHS:
            stats[route] = RouteStats()
            app.router.add_route("GET", route.path, adapt(route, platform, tokens, ids, stats[route]))
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
