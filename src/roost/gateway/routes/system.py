"""Health, readiness, metrics, state and documentation of the gateway itself."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime

from aiohttp import web

from roost.api.system import Ready, Status, StoreNode, StoreStatus
from roost.app import Platform
from roost.core.errors import StoreUnavailable, Unavailable
from roost.gateway import openapi
from roost.gateway.context import Gateway
from roost.store.inspect import eviction_fault, kind_of, read_info
from roost.store.store import Store
from roost.version import __version__
from roost.web.metrics import LoopMetrics, MetricsPage, RouteMetrics, Source
from roost.web.ops import Ops, check_loops
from roost.web.route import Request, Route

log = logging.getLogger("roost.gateway")


def ops_of(gateway: Gateway) -> Ops:
    platform = gateway.platform
    own: tuple[Source, ...] = (RouteMetrics(gateway.table), LoopMetrics(platform.store.loops))

    async def ready() -> Ready:
        return await _ready(platform.store)

    page = MetricsPage(platform.settings.profile, own + platform.metrics, "+".join(platform.roles))
    if (colleagues := gateway.colleagues) is None:
        return Ops(page, ready)
    colleagues.join(page, ready)
    return Ops(colleagues, colleagues.check)


async def _ready(store: Store) -> Ready:
    """A store that is away makes nobody unready: it is away for every gateway, and each still answers what it
    can from memory. What it cannot, it refuses with 503 and Retry-After."""
    try:
        latency_s = await store.ping(timeout_s=1.0)
    except StoreUnavailable as error:
        log.debug("ready without its store", extra={"reason": error.message})
        return Ready("ready", store="away")
    if (since := store.answering_since()) is not None:
        check_loops(store.loops, since)
    if fault := eviction_fault(await read_info(store, "memory")):
        raise Unavailable(fault, hint="set maxmemory-policy noeviction on the store")
    return Ready("ready", round(latency_s * 1000, 3))


class SystemRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._platform = gateway.platform
        self._table = gateway.table

    async def get_status(self, request: Request) -> Status:
        platform = self._platform
        return Status(
            version=__version__,
            profile=platform.settings.profile,
            roles=list(platform.roles),
            started_at=datetime.fromtimestamp(platform.started_at, UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
            store=await _store_status(platform),
        )

    async def get_openapi(self, request: Request) -> web.Response:
        return web.json_response(openapi.document(self._table))

    async def get_docs(self, request: Request) -> web.Response:
        return web.Response(text=openapi.page(self._table), content_type="text/html")


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


def routes(gateway: Gateway) -> list[Route]:
    on = SystemRoutes(gateway)
    return [
        *ops_of(gateway).routes(),
        Route(
            "GET",
            "/admin/v1/status",
            on.get_status,
            "State of this process and its store",
            scope="read",
            reply=Status,
        ),
        Route(
            "GET",
            "/openapi.json",
            on.get_openapi,
            "This API as OpenAPI 3.1",
            scope="read",
            open_in_dev=True,
        ),
        Route(
            "GET", "/docs", on.get_docs, "This page", scope="read", open_in_dev=True, content_type="text/html"
        ),
    ]
