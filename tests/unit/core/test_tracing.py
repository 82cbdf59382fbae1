from __future__ import annotations

import logging
from typing import get_type_hints

import msgspec
import pytest

from roost.core.tracing import (
    Attributes,
    admit_context,
    context_of,
    current_trace,
    parent_for,
    sampled_context,
    ticket_span,
    trace_context,
)
from roost.logs import JsonFormatter
from roost.tracing.opening import open_tracer
from roost.tracing.settings import TracingSettings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01"
UNSAMPLED = GIVEN[:-2] + "00"


class Draw:
    """A tracer that only draws."""

    def __init__(self, drawn: bool) -> None:
        self.samples = lambda: drawn


def test_a_context_is_read_and_written_alike() -> None:
    found = context_of(GIVEN)
    assert found is not None
    assert (found.trace_id, found.span_id, found.is_sampled) == (TRACE, "00f067aa0ba902b7", True)
    assert found.text == GIVEN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        GIVEN.upper(),
        f"ff{GIVEN[2:]}",
        f"{GIVEN}-more",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{GIVEN}\r\nx: y",
        GIVEN.replace("4", "\u0664"),
    ],
)
def test_what_is_no_context_is_none(text: str) -> None:
    assert context_of(text) is None


def test_a_later_version_is_read_as_far_as_this_one_goes() -> None:
    assert context_of(f"01{GIVEN[2:]}-more") == context_of(GIVEN)


@pytest.mark.parametrize("wire", [None, b"", b"\xff\xfe", UNSAMPLED.encode()])
def test_a_frame_without_a_sampled_context_traces_nothing(wire: bytes | None) -> None:
    assert sampled_context(wire) == ""


def test_the_flag_of_a_trusted_caller_counts() -> None:
    assert parent_for(Draw(False), GIVEN, is_trusted=True) == GIVEN  # type: ignore[arg-type]
    assert parent_for(Draw(True), UNSAMPLED, is_trusted=True) is None  # type: ignore[arg-type]


def test_for_anybody_else_the_draw_decides() -> None:
    assert parent_for(Draw(False), GIVEN, is_trusted=False) is None  # type: ignore[arg-type]
    assert parent_for(Draw(True), GIVEN, is_trusted=False) == GIVEN  # type: ignore[arg-type]
    assert parent_for(Draw(True), "", is_trusted=False) == ""  # type: ignore[arg-type]
    assert parent_for(Draw(False), "", is_trusted=True) is None  # type: ignore[arg-type]


def test_the_span_of_an_admission_is_found_from_the_ticket_and_tells_nothing_of_it() -> None:
    tid = "0b0e7a52-6f0a-4c5e-9d5b-2f6f0d1c9a11"

    assert admit_context(GIVEN, tid) == f"00-{TRACE}-{ticket_span(tid)}-01"
    assert ticket_span(tid) not in tid.replace("-", "")
    assert ticket_span(tid) != ticket_span(tid[:-1] + "2")
    assert admit_context("", tid) == ""


def test_g17_a_span_has_no_word_for_a_person_or_a_secret() -> None:
    allowed = {"world", "type", "server_id", "target", "route", "status", "outcome", "blocked_ms"}
    allowed |= {"symbol", "shard", "lane"}
    assert set(get_type_hints(Attributes)) == allowed, "what is added must name nobody and open nothing"


def test_logs_carry_the_trace_while_a_span_is_active() -> None:
    record = logging.LogRecord("roost", logging.INFO, "", 0, "entry", (), None)

    with trace_context(GIVEN):
        inside = msgspec.json.decode(JsonFormatter().format(record))
    outside = msgspec.json.decode(JsonFormatter().format(record))

    assert (inside["trace_id"], inside["span_id"]) == (TRACE, "00f067aa0ba902b7")
    assert "trace_id" not in outside
    assert current_trace.get() == ""


def test_off_there_is_no_tracer() -> None:
    assert open_tracer(TracingSettings(), "gateway") is None


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (TracingSettings(endpoint="127.0.0.1:4318"), "endpoint is"),
        (TracingSettings(headers="token"), "headers must be"),
        (TracingSettings(per_million=1_000_001), "per_million is"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: TracingSettings, fault: str) -> None:
    assert [found for found in settings.faults() if fault in found]
