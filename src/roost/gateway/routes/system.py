"""Health, readiness, metrics, state and documentation of the gateway itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from aiohttp import web

from roost.api.system import Health, Ready, Status, StoreNode, StoreStatus
from roost.app import Platform
from roost.core.errors import StoreUnavailable
from roost.gateway import metrics, openapi
from roost.gateway.route import Request, Route, RouteStats
from roost.store.inspect import eviction_fault, kind_of, read_info
from roost.version import __version__


async def healthz(request: Request) -> Health:
    return Health()


async def readyz(request: Request) -> Ready:
    store = request.platform.store
    latency_s = await store.ping(timeout_s=1.0)
    if fault := eviction_fault(await read_info(store, "memory")):
        raise StoreUnavailable(fault, hint="set maxmemory-policy noeviction on the store")
    return Ready(store_latency_ms=round(latency_s * 1000, 3))


async def status(request: Request) -> Status:
    platform = request.platform
    return Status(
        version=__version__,
        profile=platform.settings.profile,
        roles=list(platform.roles),
        started_at=datetime.fromtimestamp(platform.started_at, UTC).isoformat(timespec="seconds"),
        pid=os.getpid(),
        store=await _store_status(platform),
    )


async def _store_status(platform: Platform) -> StoreStatus:
    store = platform.store
    nodes = [
        StoreNode(
            name=link.name,
            connected=link.connected,
            why_down=link.why_down,
            in_flight=link.inflight,
            waiting=link.waiting,
            reconnects=max(0, link.stats.connects - 1),
            timeouts=link.stats.timeouts,
            unknown_outcomes=link.stats.unknown_outcomes,
        )
        for link in store.links()
    ]
    try:
        latency_s = await store.ping()
        server = str(kind_of(await read_info(store, "server")))
    except StoreUnavailable:
        latency_s, server = -0.001, "away"
    return StoreStatus(
        url=str(platform.settings.store_url),
        shape=store.topology.shape,
        server=server,
        latency_ms=round(latency_s * 1000, 3),
        nodes=nodes,
    )


def system_routes(platform: Platform, stats: Mapping[Route, RouteStats]) -> list[Route]:
    """The routes that every gateway has. `stats` is read when the metrics page is asked for."""
    registry = metrics.make_registry(platform, stats)

    async def metrics_page(request: Request) -> web.Response:
        await metrics.look(platform.worlds.all())
        return web.Response(
            body=metrics.page(registry), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    async def openapi_document(request: Request) -> web.Response:
        return web.json_response(openapi.document(stats))

    async def docs(request: Request) -> web.Response:
        return web.Response(text=openapi.page(stats), content_type="text/html")

    away = (StoreUnavailable,)
    return [
        Route("GET", "/healthz", healthz, "The process is alive", reply=Health),
        Route("GET", "/readyz", readyz, "Requests can be served; 503 says why not", reply=Ready, errors=away),
        Route(
            "GET",
            "/metrics",
            metrics_page,
            "Prometheus metrics",
            scope="read",
            open_in_dev=True,
            content_type="text/plain",
        ),
        Route(
            "GET",
            "/admin/v1/status",
            status,
            "State of this process and its store",
            scope="read",
            reply=Status,
        ),
        Route(
            "GET",
            "/openapi.json",
            openapi_document,
            "This API as OpenAPI 3.1",
            scope="read",
            open_in_dev=True,
        ),
        Route("GET", "/docs", docs, "This page", scope="read", open_in_dev=True, content_type="text/html"),
    ]
