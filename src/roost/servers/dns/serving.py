"""From the settings to a running DNS server: its sockets, what it follows, its health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

from prometheus_client.core import Metric

from roost.api.discovery import Watcher
from roost.api.system import Ready
from roost.app import Platform, open_platform
from roost.core.errors import Unavailable
from roost.sdk.connect import connect
from roost.servers.dns.answering import Answerer
from roost.servers.dns.listening import TcpQueries, UdpQueries, bind_udp
from roost.servers.dns.zone import Zone
from roost.settings import Settings
from roost.store.metrics import StoreMetrics
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve, url_of
from roost.web.metrics import LoopMetrics, MetricsPage, counter, gauge, labelled
from roost.web.ops import OPS_PORT_ABOVE, Ops, check_loops
from roost.web.route import Edge

OPS_LIMITS = ConnectionLimits(total=64)
LOOP = "dns servers"


class RunningDns:
    """A DNS server that is up, or about to be."""

    def __init__(self, settings: Settings, token: str) -> None:
        own = settings.dns
        self.zone = Zone(public=own.address == "public", most=own.answers)
        self.answerer = Answerer(self.zone, own.zone, own.ttl_seconds)
        self.platform: Platform | None = None
        self.ops = Ops(MetricsPage(settings.profile, (self,), "dns"), self.ready)
        guard = OneToken(token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint="queries go to the port 1000 below")
        self.url = ""
        self.ops_url = ""

    async def ready(self) -> Ready:
        """Also with an old list: whoever asks is better off with it."""
        if self.platform is None or not self.zone.known:
            raise Unavailable("discovery has not been read yet")
        if (since := self.platform.store.answering_since()) is not None:
            check_loops(self.platform.store.loops, since)
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        answers = self.answerer
        yield labelled("roost_dns_answers", "DNS queries answered", "code", answers.answers)
        yield counter("roost_dns_dropped", "Packets that are no query", answers.dropped)
        yield counter("roost_dns_truncated", "Answers that went over TCP", answers.truncated)
        yield gauge("roost_dns_servers", "Servers that DNS can tell of", len(self.zone))
        yield gauge(
            "roost_dns_unnameable", "Servers that DNS cannot tell of: name or address", self.zone.unnameable
        )
        if self.platform is not None:
            yield from LoopMetrics(self.platform.store.loops).collect()
            yield from StoreMetrics(self.platform.store).collect()


@contextlib.asynccontextmanager
async def dns_server(settings: Settings, token: str, *, wait_s: float) -> AsyncIterator[RunningDns]:
    """A server that answers inside the block, as soon as it has heard of discovery."""
    own, running = settings.dns, RunningDns(settings, token)
    async with contextlib.AsyncExitStack() as stack:
        beside = stack.enter_context(bind(own.host, own.port + OPS_PORT_ABOVE))
        tcp, udp = stack.enter_context(bind(own.host, own.port)), bind_udp(own.host, own.port)
        stack.callback(udp.close)
        running.url, running.ops_url = url_of(tcp, "dns"), url_of(beside)
        runner = await serve(running.ops.app(running.edge), beside, OPS_LIMITS)
        stack.push_async_callback(runner.cleanup)
        platform = await stack.enter_async_context(open_platform(settings, attach=True, wait_s=wait_s))
        running.platform = platform
        client = await stack.enter_async_context(connect(platform))
        following = asyncio.create_task(_follow(client, running))
        stack.callback(following.cancel)
        watching_lag = asyncio.create_task(platform.store.loops.watch_lag())
        stack.callback(watching_lag.cancel)
        await _listen(stack, running.answerer, tcp, udp)
        yield running


async def _follow(client: Watcher, running: RunningDns) -> None:
    """Keep the zone up to date, for ever. While the store is away nothing comes, and the last list stays."""
    assert running.platform is not None
    loop = running.platform.store.loops.loop(LOOP, essential=True)

    async def follow() -> None:
        async for change in client.watch("*", "*"):
            running.zone.apply(change)
            loop.good()

    await loop.keep_running(follow, pause_s=0.5)


async def _listen(
    stack: contextlib.AsyncExitStack, answerer: Answerer, tcp: socket.socket, udp: socket.socket
) -> None:
    queries = TcpQueries(answerer)
    server = await asyncio.start_server(queries.serve, sock=tcp)
    stack.callback(queries.close)
    stack.callback(server.close)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: UdpQueries(answerer), sock=udp
    )
    stack.callback(transport.close)
