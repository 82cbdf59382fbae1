"""Our spans as those of OpenTelemetry. Only a process with tracing on loads this module."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Unpack

from opentelemetry import trace
from opentelemetry.context import Context as OtelContext
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from roost.core.tracing import Attributes, Context, Span, context_of

CLOSE_S = 3.0
"""How long the end of a process may wait for a collector."""

_FLAGS = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class Ids(RandomIdGenerator):
    """Random, unless the next one is said."""

    def __init__(self) -> None:
        self._said = threading.local()

    def say(self, span_id: str) -> None:
        """Of the next span that this thread begins."""
        self._said.span_id = int(span_id, 16)

    def generate_span_id(self) -> int:
        said: int = getattr(self._said, "span_id", 0)
        self._said.span_id = 0
        return said or super().generate_span_id()


class SpanTracer:
    """A `Tracer`. Who is traced is decided before it is asked, so every span that it is told of counts."""

    def __init__(
        self, processor: SpanProcessor, service: str, version: str, *, ratio: float, seed: int | None = None
    ) -> None:
        self._ids = Ids()
        self._draw = random.Random(seed)
        self._ratio = ratio
        # Not `Resource.create`, which would take up what the environment says.
        resource = Resource({"service.name": f"roost-{service}", "service.version": version})
        self._provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False, id_generator=self._ids)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("roost", version)

    def samples(self) -> bool:
        return self._draw.random() < self._ratio

    def begin(
        self,
        name: str,
        parent: str = "",
        *,
        span_id: str = "",
        began_ns: int = 0,
        **attributes: Unpack[Attributes],
    ) -> Span:
        if span_id:
            self._ids.say(span_id)
        above = trace.set_span_in_context(_parent(parent), OtelContext())  # of no other tracer in here
        span = self._tracer.start_span(name, above, start_time=began_ns or None, record_exception=False)
        return _Step(span, attributes)

    async def close(self) -> None:
        """In a thread that nobody joins: a collector that is away may keep it for longer."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            try:
                loop.call_soon_threadsafe(over.set)
            except RuntimeError:  # nobody waits any more
                pass

        threading.Thread(target=shut_down, name="roost-traces", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_S):
                await over.wait()
        except TimeoutError:
            pass


class _Step:
    __slots__ = ("_span", "context")

    def __init__(self, span: trace.Span, attributes: Attributes) -> None:
        self._span = span
        known = span.get_span_context()
        self.context = Context(f"{known.trace_id:032x}", f"{known.span_id:016x}", True).text
        self._note(attributes)

    @property
    def wire(self) -> bytes:
        return self.context.encode()

    def end(self, **attributes: Unpack[Attributes]) -> None:
        self._note(attributes)
        self._span.end()

    def _note(self, attributes: Attributes) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(f"roost.{name}", value)  # type: ignore[arg-type]


def _parent(text: str) -> trace.Span:
    found = context_of(text)
    if found is None:
        return trace.INVALID_SPAN
    ids = int(found.trace_id, 16), int(found.span_id, 16)
    return trace.NonRecordingSpan(trace.SpanContext(*ids, is_remote=True, trace_flags=_FLAGS))
