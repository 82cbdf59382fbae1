"""The span of a login, below which those of a client's messages are."""

from __future__ import annotations

from roost.core.tracing import Span, Tracer, current_trace
from roost.servers.gate.session import Who


def begin_span(tracer: Tracer | None, who: Who, began_ns: int, *, may_begin: bool) -> Span | None:
    """Below the consume of their ticket; `may_begin`: without one a trace may begin here, by a draw."""
    if tracer is None or not (who.trace or (may_begin and tracer.samples())):
        return None
    span = tracer.begin("login", who.trace, began_ns=began_ns)
    current_trace.set(span.context)
    return span


def end_span(span: Span | None, outcome: str) -> None:
    if span is not None:
        span.end(outcome=outcome)
