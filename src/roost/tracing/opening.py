"""The tracer of a process, as its settings want it."""

from __future__ import annotations

from roost.core.errors import StartFailed
from roost.core.tracing import Tracer
from roost.tracing.settings import TracingSettings
from roost.version import __version__

TIMEOUT_S = 5.0


def open_tracer(settings: TracingSettings, service: str) -> Tracer | None:
    """None where tracing is off: then nothing of OpenTelemetry is loaded. `service` tells the spans."""
    if not settings.per_million:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from roost.tracing.spans import SpanTracer
    except ImportError as error:
        hint = "pip install 'roost[otel]', or set ROOST_TRACING__PER_MILLION to 0"
        raise StartFailed(f"traces need OpenTelemetry: {error}", hint=hint) from error
    exporter = OTLPSpanExporter(
        settings.endpoint.rstrip("/") + "/v1/traces", headers=settings.header_pairs(), timeout=TIMEOUT_S
    )
    processor = BatchSpanProcessor(exporter, max_queue_size=settings.queue, schedule_delay_millis=1000)
    return SpanTracer(processor, service, __version__, ratio=settings.per_million / 1_000_000)
