"""The aiohttp application, built by a function from a `Platform`."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from aiohttp import web

from roost.app import Platform
from roost.gateway import routes as route_modules
from roost.gateway.context import Gateway
from roost.gateway.live.live import Live
from roost.gateway.recording import AuditRecorder
from roost.gateway.routes.system import ops_of
from roost.gateway.workers.colleagues import Colleagues
from roost.tokens.service import Tokens, root_token
from roost.web import route as kit
from roost.web.route import Edge, Route, RouteStats


def build_app(
    platform: Platform, more_routes: Iterable[Route] = (), colleagues: Colleagues | None = None
) -> web.Application:
    """Every route of this gateway: each file in `gateway/routes` has a function `routes` for its own."""
    gateway = _gateway(platform, colleagues)
    gateway.table |= {route: RouteStats() for route in (*_routes(gateway), *more_routes)}
    app = kit.build_app(gateway.table, _edge(gateway))
    app.on_shutdown.append(lambda _: gateway.live.close())
    return app


def all_routes(platform: Platform) -> list[Route]:
    """The routes of a gateway, for who wants to look at them."""
    return _routes(_gateway(platform))


def _routes(gateway: Gateway) -> list[Route]:
    return [route for module in _modules() for route in import_module(module).routes(gateway)]


def build_ops_app(platform: Platform) -> web.Application:
    """What a role without a port of its own serves: /healthz, /readyz, /metrics."""
    gateway = _gateway(platform)
    gateway.table |= {route: RouteStats() for route in ops_of(gateway).routes()}
    return kit.build_app(gateway.table, _edge(gateway))


def _modules() -> list[str]:
    found = pkgutil.iter_modules(route_modules.__path__, f"{route_modules.__name__}.")
    return sorted(module.name for module in found)


def _gateway(platform: Platform, colleagues: Colleagues | None = None) -> Gateway:
    settings = platform.settings
    root = root_token(settings.api_token, settings.token_file)
    tokens = Tokens(root, platform.store, read_token=settings.read_token)
    return Gateway(platform, tokens, Live(platform), colleagues)


def _edge(gateway: Gateway) -> Edge:
    settings = gateway.platform.settings
    return Edge(
        gateway.tokens,
        settings.is_dev(),
        settings.gateway.body_limit_bytes,
        recorder=AuditRecorder(gateway.platform.audit),
        proxies=gateway.proxies,
        tracer=gateway.platform.tracer,
    )
