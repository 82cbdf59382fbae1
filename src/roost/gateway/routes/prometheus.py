"""Discovery for Prometheus: targets by http_sd, and what instances report of their performance as gauges.

When the store is away the answer is an error, never an empty list: Prometheus then keeps its targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from roost.api import Message
from roost.api.discovery import Instance
from roost.api.limits import Name
from roost.gateway.context import Gateway
from roost.web.metrics import CONTENT_TYPE
from roost.web.route import Request, Route

MAX_FIELDS = 32
"""Different `performance` fields that become gauges; the rest is left out."""

_LABEL = re.compile(r"[^a-zA-Z0-9_]")


class TargetQuery(Message):
    type: Name = "*"
    group: Name = "*"
    port: str = ""
    """Name of the port to scrape; empty: metrics, http or the first one."""


class PerformanceQuery(Message):
    type: Name = "*"
    group: Name = "*"


class PrometheusRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._discovery = gateway.platform.discovery

    async def list_prometheus_targets(self, request: Request) -> web.Response:
        query: TargetQuery = request.query
        found = await self._discovery.discover(query.type, query.group)
        targets = [target for i in found.instances if (target := _target(i, query.port)) is not None]
        return web.Response(body=msgspec.json.encode(targets), content_type="application/json")

    async def get_prometheus_performance(self, request: Request) -> web.Response:
        query: PerformanceQuery = request.query
        found = await self._discovery.discover(query.type, query.group)
        registry = CollectorRegistry()
        registry.register(_Performance(found.instances))
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE})


def routes(gateway: Gateway) -> list[Route]:
    on = PrometheusRoutes(gateway)
    return [
        Route(
            "GET",
            "/sd/v1/prometheus",
            on.list_prometheus_targets,
            "Targets for Prometheus http_sd; an error, never an empty list, when the store is away",
            scope="read",
            open_in_dev=True,
            query=TargetQuery,
        ),
        Route(
            "GET",
            "/sd/v1/prometheus/performance",
            on.get_prometheus_performance,
            "Numeric performance fields of every instance as gauges",
            scope="read",
            open_in_dev=True,
            query=PerformanceQuery,
            content_type="text/plain",
        ),
    ]


def _target(instance: Instance, port_name: str) -> dict[str, Any] | None:
    wanted = (port_name,) if port_name else ("metrics", "http", *instance.ports)
    port = next((instance.ports[name] for name in wanted if name in instance.ports), None)
    host = instance.private_ip or instance.public_ip or instance.hostname
    if port is None or not host:
        return None
    labels = {
        "instance_id": instance.instance_id,
        "server_id": instance.server_id,
        "type": instance.type,
        "group": instance.group,
        "status": instance.status,
        "version": instance.version,
        "zone": instance.zone,
        **{f"label_{_LABEL.sub('_', name)}": value for name, value in instance.labels.items()},
    }
    return {
        "targets": [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"],
        "labels": {f"__meta_roost_{name}": value for name, value in labels.items() if value},
    }


class _Performance(Collector):
    """`roost_instance_<field>` with the labels type, group and server; the number of fields is bounded."""

    def __init__(self, instances: list[Instance]) -> None:
        self._instances = instances

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for instance in self._instances:
            server = instance.server_id or instance.instance_id
            numbers = {"load": instance.load, "capacity": instance.capacity, **instance.performance}
            for name, value in numbers.items():
                if (number := _number(value)) is None:
                    continue
                field = _LABEL.sub("_", name).lower()[:64]
                if field not in families:
                    if len(families) >= MAX_FIELDS:
                        continue
                    families[field] = GaugeMetricFamily(
                        f"roost_instance_{field}",
                        f"`{field}` as instances report it",
                        labels=["type", "group", "server"],
                    )
                families[field].add_metric([instance.type, instance.group, server], number)
        yield from families.values()


def _number(value: Any) -> float | None:
    """None of what is no number, or a larger one than a gauge can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
