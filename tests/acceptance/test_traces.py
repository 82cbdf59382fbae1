"""One trace from a player's entry to their requests and moves, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aiohttp import ClientSession
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from roost.api.queue import WorldPatch
from roost.app import Platform, open_platform
from roost.core.tracing import Tracer, trace_context
from roost.gateway.server import build_app
from roost.lanes.commands import SERVICE, Method, New, Side, encode
from roost.sdk.connect import connect
from roost.sdk.play import play
from roost.sdk.trade import OrderAccepted, OrderRefused
from roost.servers.entity.reference import Reference
from roost.servers.entity.serving import EntityIdentity, entity_server
from roost.servers.gate.hosting import Identity, gate_server
from roost.servers.orders.registering import OrdersIdentity
from roost.servers.orders.serving import Running, order_server
from roost.settings import Settings
from roost.testing import RunningServer, eventually, free_port
from roost.tracing.spans import SpanTracer
from roost.waitingroom.settings import QueueSettings
from roost.web.connections import ConnectionLimits
from roost.web.listen import bind, serve, url_of
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.trust import wire_secret

START_S = 20.0
TOKEN = "a-token-of-the-tests"
USER = "ann-whom-no-span-names"
GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = GIVEN[:-1] + "0"


@dataclass
class House:
    """Gateway, manager, a gate that asks for tickets and two entity servers, in one process."""

    platform: Platform
    url: str
    gate_url: str
    ask: ClientSession

    async def enter(self, **headers: str) -> dict[str, str]:
        body = {"userId": USER, "nickname": "Ann"}
        async with self.ask.post(f"{self.url}/api/queue/entry", json=body, headers=headers) as answer:
            found: dict[str, str] = await answer.json()
            assert answer.status == 200, found
            return found

    async def ticket(self) -> str:
        found: dict[str, str] = {}

        async def is_promoted() -> bool:
            found.update(await self.enter())
            return found["status"] == "PROMOTED"

        await eventually(is_promoted, "a ticket")
        return found["ticketId"]

    async def kept(self) -> set[str]:
        """The fields of all hashes that the store has of the user."""
        call, found = self.platform.store.call, set[str]()
        for key in await call("KEYS", f"*{USER}*", key=USER.encode()):
            if await call("TYPE", key, key=key) == b"hash":
                found |= {field.decode() for field in await call("HKEYS", key, key=key)}
        assert "state" in found
        return found

    async def home(self) -> str:
        record = await self.platform.bindings.read("entity", USER)
        assert record is not None
        assert record.owner is not None
        return record.owner.server_id

    async def move(self) -> None:
        """By a drain of the server that they are on."""
        source = await self.home()
        drain = {"type": "entity", "servers": [source]}
        headers = {"X-API-Token": TOKEN}
        async with self.ask.post(f"{self.url}/drain/v1/jobs", json=drain, headers=headers) as answer:
            assert answer.status < 300, await answer.text()

        async def has_moved() -> bool:
            return await self.home() != source

        await eventually(has_moved, "the move")


@asynccontextmanager
async def open_house(settings: Settings, tracer: Tracer | None) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        for server_id in ("501", "502"):
            own = replace(settings, entity=replace(settings.entity, port=free_port()))
            await stack.enter_async_context(
                entity_server(
                    own,
                    Reference,
                    EntityIdentity(server_id),
                    on_end=lambda: None,
                    wait_s=START_S,
                    tracer=tracer,
                )
            )
        opening = open_platform(settings, roles=("gateway", "manager"), attach=True, tracer=tracer)
        platform = await stack.enter_async_context(opening)
        listener = bind("127.0.0.1", 0)
        runner = await serve(build_app(platform), listener, ConnectionLimits())
        stack.push_async_callback(runner.cleanup)
        gate = await stack.enter_async_context(
            gate_server(
                settings,
                TOKEN,
                Identity(server_id="gate-1"),
                on_end=lambda: None,
                wait_s=START_S,
                tracer=tracer,
            )
        )
        ask = await stack.enter_async_context(ClientSession())
        yield House(platform, url_of(listener), gate.url, ask)


@pytest.fixture
def settings(server: RunningServer, tmp_path: Path) -> Settings:
    base = Settings(store=server.url, data=tmp_path, api_token=TOKEN)
    return replace(
        base,
        queue=QueueSettings(worlds="main=gate", tick_ms=100, user_per_second=1000, user_burst=1000),
        gate=replace(base.gate, world="main", port=free_port(), tcp_port=0),
    )


@pytest.fixture
def told() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def tracer(told: InMemorySpanExporter) -> AsyncIterator[Tracer]:
    tracer = SpanTracer(SimpleSpanProcessor(told), "test", "1", ratio=1.0)
    yield tracer
    await tracer.close()


def by_name(spans: tuple[ReadableSpan, ...], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def parent_of(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> str:
    """The name of the span above it; empty: it is the first."""
    if span.parent is None:
        return ""
    above = [one.name for one in spans if one.context.span_id == span.parent.span_id]
    return above[0] if above else "of the caller"


def texts_in(spans: tuple[ReadableSpan, ...]) -> Iterator[str]:
    for span in spans:
        yield span.to_json()


async def evening(house: House) -> list[str]:
    """A player enters, plays, is moved and plays on; what nobody else may hear of."""
    ticket = await house.ticket()
    async with play(house.gate_url, ticket) as player:
        assert await player.request({"op": "count"}) == 1
        await house.move()
        assert await player.request({"op": "count"}) == 2
    return [ticket, USER, TOKEN, "Ann"]


async def test_one_trace_leads_from_the_entry_to_requests_and_moves(
    settings: Settings, tracer: Tracer, told: InMemorySpanExporter
) -> None:
    async with open_house(settings, tracer) as house:
        await house.platform.worlds.govern("main", WorldPatch(mode="queue-all"))
        secrets = await evening(house)
    spans = told.get_finished_spans()
    [move], [consume] = by_name(spans, "move"), by_name(spans, "consume")
    way = tuple(span for span in spans if span.context.trace_id == consume.context.trace_id)

    assert {parent_of(span, way) for span in by_name(way, "entry")} == {""}
    [admit] = by_name(way, "admit")
    assert parent_of(admit, way) == "entry"
    assert admit.attributes is not None
    assert admit.attributes["roost.outcome"] == "in turn"
    assert parent_of(consume, way) == "admit"
    assert parent_of(by_name(way, "login")[0], way) == "consume"
    assert [parent_of(span, way) for span in by_name(way, "request")] == ["login", "login"]
    assert {parent_of(span, way) for span in by_name(way, "handle")} == {"request"}
    assert [parent_of(span, way) for span in by_name(way, "open")] == ["login", "login"]
    assert move in way
    assert parent_of(move, way) == "login"
    assert [parent_of(span, way) for span in by_name(way, "accept")] == ["move"]
    assert move.attributes is not None
    assert move.attributes["roost.outcome"] == "moved"
    for secret in secrets:
        assert not [text for text in texts_in(spans) if secret in text], "G17: secrets reach no trace"


async def test_who_is_not_sampled_carries_nothing(settings: Settings, told: InMemorySpanExporter) -> None:
    tracer = SpanTracer(SimpleSpanProcessor(told), "test", "1", ratio=0.0)
    async with open_house(settings, tracer) as house:
        await evening(house)
        assert "trace" not in await house.kept()
    assert told.get_finished_spans() == ()


async def test_the_context_of_a_backend_counts_and_that_of_anybody_else_is_drawn_for(
    settings: Settings, told: InMemorySpanExporter
) -> None:
    given = GIVEN
    tracer = SpanTracer(SimpleSpanProcessor(told), "test", "1", ratio=0.0)
    async with open_house(settings, tracer) as house:
        await house.enter(traceparent=given)
        assert told.get_finished_spans() == ()

        await house.enter(**{"traceparent": given, "X-API-Token": TOKEN})
        assert told.get_finished_spans()

        async with connect(house.url, token=TOKEN) as client:
            with trace_context(given):
                await client.discover("gate")

    [asked] = by_name(told.get_finished_spans(), "GET /sd/v1/instances")
    assert f"{asked.context.trace_id:032x}" == given[3:35]
    [entry] = by_name(told.get_finished_spans(), "entry")
    assert f"{entry.context.trace_id:032x}" == given[3:35]
    assert entry.parent is not None
    assert f"{entry.parent.span_id:016x}" == given[36:52]


@asynccontextmanager
async def order_servers(
    settings: Settings, tracer: Tracer, shards: dict[str, str]
) -> AsyncIterator[dict[str, Running]]:
    """By id, each with its shards."""
    running: dict[str, Running] = {}
    async with AsyncExitStack() as stack:
        for server_id, own in shards.items():
            orders = replace(settings.orders, port=free_port(), shards=own)
            lanes = replace(settings.lanes, durability="memory")
            running[server_id] = await stack.enter_async_context(
                order_server(
                    replace(settings, orders=orders, lanes=lanes),
                    OrdersIdentity(server_id),
                    on_end=lambda: None,
                    wait_s=START_S,
                    tracer=tracer,
                )
            )
        yield running


def address_of(server: Running) -> str:
    return server.url.removeprefix("wire://")


async def test_a_command_of_a_sampled_step_is_a_span_below_it_and_no_other_is(
    settings: Settings, tracer: Tracer, told: InMemorySpanExporter
) -> None:
    async with (
        order_servers(settings, tracer, {"901": "auto"}) as running,
        connect(settings.store) as client,
        client.trader(USER, servers=[address_of(running["901"])], settings=settings) as trader,
    ):
        found: list[OrderAccepted | OrderRefused] = []

        async def is_taken() -> bool:
            found.append(await trader.new("aapl", "buy", price=100, quantity=5))
            return isinstance(found[-1], OrderAccepted)

        await eventually(is_taken, "its shard is served", timeout_s=START_S)
        with trace_context(UNSAMPLED):
            await trader.new("AAPL", "buy", price=100, quantity=5)
        assert told.get_finished_spans() == ()
        with trace_context(GIVEN):
            placed = await trader.new("AAPL", "buy", price=100, quantity=5)
            assert isinstance(placed, OrderAccepted)
            cancelled = await trader.cancel(placed.order_id)

    new, cancel = spans = told.get_finished_spans()
    assert [span.name for span in spans] == ["order new", "order cancel"]
    assert cancelled.receipt is not None
    for span, receipt, outcome in ((new, placed.receipt, "open"), (cancel, cancelled.receipt, "cancelled")):
        assert f"{span.context.trace_id:032x}" == GIVEN[3:35]
        assert span.parent is not None
        assert f"{span.parent.span_id:016x}" == GIVEN[36:52]
        said = {"symbol": "AAPL", "shard": receipt.shard, "lane": receipt.lane, "outcome": outcome}
        assert dict(span.attributes or {}) == {f"roost.{name}": value for name, value in said.items()}
    assert not [text for text in texts_in(spans) if USER in text], "G17: no account"


async def test_a_command_that_is_sent_on_is_one_trace(
    settings: Settings, tracer: Tracer, told: InMemorySpanExporter
) -> None:
    async with order_servers(settings, tracer, {"901": "0-7", "902": "8-15"}) as running:
        secret = wire_secret(settings.wire_secret, settings.data)
        command = encode(New(USER, 1, 0, "AAPL", Side.BUY, 100, 5))
        peers = [
            Peer("127.0.0.1", int(address_of(server).rpartition(":")[2]), secret=secret, role="trader")
            for server in running.values()
        ]

        async def is_taken() -> bool:
            """Whoever is asked: one of them is not the owner."""
            trace = GIVEN.encode()
            asked = [
                peer.call(SERVICE, Method.NEW, command, budget_ms=5000, traceparent=trace) for peer in peers
            ]
            return all(answer.code is Code.OK for answer in await asyncio.gather(*asked))

        await eventually(is_taken, "the order is taken by either", timeout_s=START_S)
        for peer in peers:
            await peer.close()

    spans = told.get_finished_spans()
    sent_on = [span for span in spans if parent_of(span, spans) == "order new"]
    assert sent_on
    assert {span.attributes["roost.outcome"] for span in sent_on if span.attributes is not None} == {"open"}
