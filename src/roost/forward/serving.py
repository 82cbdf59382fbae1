"""From the settings to a running forwarder: what it follows, where it sends, its health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from prometheus_client.core import Metric

from roost.api.system import Ready
from roost.app import Platform, open_platform
from roost.core.errors import InvalidInput, Unavailable
from roost.forward.destination import HINT, Destination, parse_destination
from roost.forward.forwarder import Forwarder
from roost.forward.marks import Marks
from roost.forward.senders import open_sender
from roost.forward.sources import wanted_sources
from roost.settings import Settings
from roost.store import scopes
from roost.store.metrics import StoreMetrics
from roost.web.auth import OneToken
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve, url_of
from roost.web.metrics import LoopMetrics, MetricsPage, counter, gauge, labelled
from roost.web.ops import Ops
from roost.web.route import Edge

LEASE_MS = 5000
"""How long events wait after a forwarder was killed, until another of its name goes on."""
OPS_LIMITS = ConnectionLimits(total=64)


class RunningForwarder:
    """A forwarder that is up, or about to be."""

    def __init__(self, settings: Settings, token: str, to: Destination) -> None:
        self.to = to
        guard = OneToken(token, settings.read_token)
        self.edge = Edge(guard, settings.is_dev(), not_found_hint="this port has /metrics")
        self.ops = Ops(MetricsPage(settings.profile, (self,), "forward"), self.ready)
        self.platform: Platform | None = None
        self.forwarder: Forwarder | None = None
        self.ops_url = ""

    async def ready(self) -> Ready:
        """Also while another of its name forwards, and while the receiver is away: it goes on by itself."""
        if self.platform is None:
            raise Unavailable("starting")
        return Ready("ready")

    def collect(self) -> Iterator[Metric]:
        if self.platform is None or self.forwarder is None:
            return
        own, loops = self.forwarder, self.platform.store.loops
        failed = sum(loop.failures for loop in loops.all() if loop.name.startswith("forward "))
        yield labelled("roost_forward_events", "Events that the receiver has taken", "scope", own.sent)
        yield counter("roost_forward_failures", "Batches that were not taken, or not marked", failed)
        yield counter("roost_forward_gaps", "How often events were missed, which was told", own.gaps)
        yield gauge("roost_forward_leading", "Whether this process forwards", float(own.leads))
        yield from LoopMetrics(loops).collect()
        yield from StoreMetrics(self.platform.store).collect()


@contextlib.asynccontextmanager
async def forward_server(settings: Settings, token: str, *, wait_s: float) -> AsyncIterator[RunningForwarder]:
    """A forwarder that runs inside the block; on the way out it lays down its lease."""
    own = settings.forward
    if not own.to:
        raise InvalidInput("where shall events go?", hint=f"--to {HINT}")
    running = RunningForwarder(settings, token, parse_destination(own.to))
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(bind(own.host, own.port))
        running.ops_url = url_of(listener)
        runner = await serve(running.ops.app(running.edge), listener, OPS_LIMITS)
        stack.push_async_callback(runner.cleanup)
        platform = await stack.enter_async_context(open_platform(settings, attach=True, wait_s=wait_s))
        sender = await stack.enter_async_context(open_sender(running.to, own.name, own.secret))
        store = platform.store
        forwarder = running.forwarder = Forwarder(
            wanted_sources(platform, own.wanted),
            sender,
            Marks(store, own.name),
            store.leader(scopes.forward(own.name), "forward", ttl_ms=LEASE_MS),
            own.batch,
            store.loops,
        )
        running.platform = platform
        tasks = [asyncio.create_task(one) for one in (forwarder.run(), store.loops.watch_lag())]
        stack.push_async_callback(_end, tasks)
        yield running


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
