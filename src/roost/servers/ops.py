"""What a role serves beside its work, on a port of its own: /healthz, /readyz, /metrics."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from roost.core.errors import NotAuthenticated, StoreUnavailable
from roost.servers.refusals import refusal
from roost.settings import Settings
from roost.store.store import Store
from roost.version import __version__

OPS_PORT_ABOVE = 1000
"""How far above a role's own port this is."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may look: everybody in profile dev, elsewhere whoever has the token of this server."""

    is_open: bool
    token: str

    def check(self, request: web.Request) -> None:
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        shown = request.headers.get("X-API-Token") or (bearer if scheme.lower() == "bearer" else "")
        fits = bool(self.token) and hmac.compare_digest(shown.encode(), self.token.encode())
        if not self.is_open and not fits:
            raise NotAuthenticated


def ops_app(
    guard: Guard, not_ready: Callable[[], str], page: Callable[[], Iterator[Metric]]
) -> web.Application:
    """`not_ready` says why the role cannot serve, or nothing; `page` is asked when somebody looks."""
    registry = CollectorRegistry()
    registry.register(_Page(page))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)

    async def readyz(request: web.Request) -> web.Response:
        if why := not_ready():
            return refusal(StoreUnavailable(why, hint="try again shortly"))
        return web.json_response({"status": "ready"})

    async def metrics(request: web.Request) -> web.Response:
        try:
            guard.check(request)
        except NotAuthenticated as error:
            return refusal(error)
        text = generate_latest(registry)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


async def healthz(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def info(settings: Settings) -> Metric:
    family = GaugeMetricFamily(
        "roost_info", "Version and profile of this process", labels=["version", "profile"]
    )
    family.add_metric([__version__, settings.profile], 1)
    return family


def gauge(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family


def counter(name: str, text: str, value: float) -> Metric:
    family = CounterMetricFamily(name, text)
    family.add_metric([], value)
    return family


def labelled(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def store_latency(store: Store) -> Metric:
    family = HistogramMetricFamily(
        "redis_command_latency", "Seconds from a script's call to its reply", labels=["capability", "command"]
    )
    for key, script in store.library.scripts.items():
        family.add_metric(list(key), script.stats.latency.cumulative(), script.stats.latency.total)
    return family


class _Page(Collector):
    def __init__(self, page: Callable[[], Iterator[Metric]]) -> None:
        self._page = page

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        return self._page()
