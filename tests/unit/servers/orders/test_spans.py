"""Which commands of a read are traced, and that the order of frames stays."""

from __future__ import annotations

from typing import cast

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from roost.core.tracing import sampled_context
from roost.lanes.commands import SERVICE, Cancel, Method, New, Outcome, Side, State, encode
from roost.lanes.dispatch import Dispatch, Index
from roost.lanes.executor import LaneExecutor
from roost.lanes.placement import Table
from roost.lanes.work import refused
from roost.servers.orders.forwarding import Forwarding
from roost.servers.orders.host import Host
from roost.servers.orders.routes import Routes
from roost.servers.orders.sessions import Sessions
from roost.servers.orders.spans import TracedOrders
from roost.tracing.spans import SpanTracer
from roost.wire.answer import Answer
from roost.wire.connection import Connection
from roost.wire.frame import EXT, Frame
from roost.wire.server import WireServer

SAMPLED = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = SAMPLED[:-1] + b"0"
ACCOUNT = "an-account-that-no-span-names"


class Client:
    """Keeps what it is answered."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []

    def reply_later(self, request: int, answer: Answer) -> None:
        self.answers.append((request, answer.payload))

    def deliver(self, request: int, payload: bytes) -> None:
        self.answers.append((request, payload))


class Desk:
    """Takes commands, and keeps in which calls they came and from whom."""

    def __init__(self) -> None:
        self.told = InMemorySpanExporter()
        self.client = Client()
        self.took: list[tuple[Connection, list[Frame]]] = []
        tracer = SpanTracer(SimpleSpanProcessor(self.told), "test", "1", ratio=0.0)
        dispatch = Dispatch(Table(), cast(Index, None), None, 0)
        self._traced = TracedOrders(tracer, self._taken, Routes(dispatch, frozenset()))

    def _taken(self, peer: Connection, frames: list[Frame]) -> None:
        self.took.append((peer, frames))

    def take(self, *frames: Frame) -> None:
        self._traced.take(cast(Connection, self.client), list(frames))

    @property
    def requests(self) -> list[list[int]]:
        return [[frame.request for frame in frames] for _, frames in self.took]

    def spans(self) -> list[tuple[str, dict[str, object]]]:
        return [(one.name, dict(one.attributes or {})) for one in self.told.get_finished_spans()]


def new(request: int, traceparent: bytes | None = None, symbol: str = "aapl") -> Frame:
    payload = encode(New(ACCOUNT, request, 0, symbol, Side.BUY, 100, 1))
    flags = 0 if traceparent is None else EXT
    return Frame(flags, SERVICE, Method.NEW, 0, 0, request, 0, payload, traceparent=traceparent)


def outcome(state: State, reason: str = "") -> bytes:
    return encode(Outcome(17, state, 0, 1, reason, 3, 9, 1, 1, 0, 0))


def test_where_nothing_is_traced_the_host_itself_takes_commands() -> None:
    dispatch = Dispatch(Table(), cast(Index, None), None, 0)
    nothing = cast(LaneExecutor, None), cast(Forwarding, None)
    host = Host(lambda *_: nothing[0], dispatch, Sessions(), nothing[1], lambda: 0)
    server = WireServer(secret=None)
    host.serve(server)

    assert set(server.takers.values()) == {host.take}


def test_commands_that_nobody_traces_go_on_as_they_came() -> None:
    desk = Desk()
    frames = [new(1), new(2)]
    desk.take(*frames)
    desk.take(new(3), new(4, UNSAMPLED))

    assert desk.requests == [[1, 2], [3, 4]]
    assert [id(peer) for peer, _ in desk.took] == [id(desk.client)] * 2
    assert all(ours is theirs for ours, theirs in zip(desk.took[0][1], frames, strict=True))


def test_a_sampled_command_keeps_its_place_and_is_a_span_until_its_answer() -> None:
    desk = Desk()
    desk.take(new(1), new(2), new(3, SAMPLED), new(4), new(5, SAMPLED))

    assert desk.requests == [[1, 2], [3], [4], [5]]
    traced, [frame] = desk.took[1]
    assert desk.spans() == []
    traced.deliver(3, outcome(State.OPEN))

    [(name, said)] = desk.spans()
    assert desk.client.answers == [(3, outcome(State.OPEN))]
    assert name == "order new"
    expected = {"symbol": "AAPL", "shard": 3, "lane": 9, "outcome": "open"}
    assert said == {f"roost.{word}": value for word, value in expected.items()}
    [span] = desk.told.get_finished_spans()
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == SAMPLED[36:52].decode()
    assert f"{span.context.span_id:016x}" in sampled_context(frame.traceparent), "goes on with it"
    assert ACCOUNT not in span.to_json()


def test_a_refusal_ends_the_span_with_its_reason() -> None:
    desk = Desk()
    desk.take(new(1, SAMPLED), new(2, SAMPLED, symbol="no symbol at all"))
    (first, _), (second, _) = desk.took
    first.reply_later(1, refused("QUEUE_FULL"))
    second.deliver(2, outcome(State.REFUSED, "NOT_YOURS"))

    (_, full), (_, not_ours) = desk.spans()
    assert full == {"roost.symbol": "AAPL", "roost.outcome": "QUEUE_FULL"}
    assert not_ours["roost.outcome"] == "NOT_YOURS"
    assert "roost.symbol" not in not_ours


def test_a_command_that_was_sent_on_says_what_the_owner_said() -> None:
    desk = Desk()
    cancel = encode(Cancel(ACCOUNT, 1, 0, 17))
    desk.take(Frame(EXT, SERVICE, Method.CANCEL, 0, 0, 1, 0, cancel, traceparent=SAMPLED))
    desk.took[0][0].reply_later(1, Answer(outcome(State.CANCELLED)))

    [(name, said)] = desk.spans()
    assert name == "order cancel"
    assert said == {"roost.shard": 3, "roost.lane": 9, "roost.outcome": "cancelled"}
