"""Spans leave a process as OTLP over HTTP, as a Collector takes them."""

from __future__ import annotations

import subprocess
import sys

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from roost.tracing.opening import open_tracer
from roost.tracing.settings import TracingSettings
from roost.web.listen import bind, url_of


class Receiver:
    """The receiver `otlp` of a Collector, as far as spans go."""

    def __init__(self) -> None:
        self.headers: list[str] = []
        self.took: list[ExportTraceServiceRequest] = []

    async def take(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.get("X-Key", ""))
        self.took.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")


async def test_spans_are_sent_to_the_endpoint_when_the_process_ends() -> None:
    receiver, app, listener = Receiver(), web.Application(), bind("127.0.0.1", 0)
    app.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    settings = TracingSettings(per_million=1_000_000, endpoint=url_of(listener), headers="X-Key=k-1")

    tracer = open_tracer(settings, "gateway")
    assert tracer is not None
    entry = tracer.begin("entry", route="POST /api/queue/entry")
    tracer.begin("admit", entry.context, span_id="00f067aa0ba902b7", world="main").end(outcome="at once")
    entry.end(status=200)
    await tracer.close()
    await runner.cleanup()

    [taken], [key] = receiver.took, receiver.headers
    [resource] = taken.resource_spans
    admit, first = resource.scope_spans[0].spans
    names = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert key == "k-1"
    assert names["service.name"] == "roost-gateway"
    assert (admit.name, admit.span_id.hex()) == ("admit", "00f067aa0ba902b7")
    assert (admit.trace_id, admit.parent_span_id) == (first.trace_id, first.span_id)
    assert {one.key for one in admit.attributes} == {"roost.world", "roost.outcome"}


async def test_a_collector_that_is_away_keeps_nobody_from_ending() -> None:
    listener = bind("127.0.0.1", 0)
    endpoint = url_of(listener)
    listener.close()
    tracer = open_tracer(TracingSettings(per_million=1, endpoint=endpoint), "gateway")
    assert tracer is not None

    tracer.begin("entry").end()
    await tracer.close()  # or the time limit of this test is over


def test_off_nothing_of_opentelemetry_is_loaded() -> None:
    """In a process of its own, which loads every role and the SDK, with the settings' defaults."""
    code = (
        "import sys, roost.roles, roost.sdk.client, roost.sdk.door\n"
        "from roost.settings import Settings\n"
        "from roost.tracing.opening import open_tracer\n"
        "assert open_tracer(Settings().tracing, 'gateway') is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
