"""Which trace a step belongs to, and the port by which spans are told.

A trace is a player's way: entry → admit → consume → login → request → move.
A context is the W3C `traceparent` of a span. Only that of a sampled one travels, in headers, in the wire's
frames, in the record of whoever waits and in the feed: who was not sampled carries nothing. A process that
traces nothing has no `Tracer` but None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypedDict, Unpack

TRACEPARENT = "traceparent"
"""The header."""

current_trace: ContextVar[str] = ContextVar("roost_trace", default="")
"""The context of the span that is under way, for logs and for calls that leave here; empty: there is none."""

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class Context(NamedTuple):
    trace_id: str
    span_id: str
    is_sampled: bool

    @property
    def text(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


class Attributes(TypedDict, total=False):
    """All that a span may say. A closed list: nothing in it names a person or opens a door (G17)."""

    world: str
    type: str
    server_id: str
    target: str
    """Server id of who takes a user that is moved."""
    route: str
    """As in the table of routes: its parameters by name, not by value."""
    status: int
    """Of HTTP."""
    outcome: str
    """A word or a code, never a message."""
    symbol: str
    """Of an order, as its book is called."""
    shard: int
    lane: int
    blocked_ms: float


class Span(Protocol):
    """A step under way. One that never ends is never told."""

    @property
    def context(self) -> str: ...

    @property
    def wire(self) -> bytes:
        """The context as frames carry it."""

    def end(self, **attributes: Unpack[Attributes]) -> None: ...


class Tracer(Protocol):
    def samples(self) -> bool:
        """A draw by the ratio of the settings, for whoever brings no context that counts."""

    def begin(
        self,
        name: str,
        parent: str = "",
        *,
        span_id: str = "",
        began_ns: int = 0,
        **attributes: Unpack[Attributes],
    ) -> Span:
        """A span below `parent`; of a new trace where that is empty.

        `began_ns`: Unix time, of a step whose parent was found out on the way. `span_id`: 16 hex digits,
        where others must know it without being told.
        """

    async def close(self) -> None:
        """Tell what is not told yet, within a bounded time."""


def context_of(text: str) -> Context | None:
    """None: it is no `traceparent`. One of a later version is read as far as this one goes."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    is_odd = version == "ff" or (version == "00" and more is not None)
    if is_odd or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Context(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


def sampled_context(wire: bytes | None) -> str:
    """What a frame of another server carries, if it is the context of a sampled span; else empty."""
    found = context_of(wire.decode("ascii", "replace")) if wire is not None else None
    return found.text if found is not None and found.is_sampled else ""


def leaving_context() -> bytes | None:
    """Of the step under way, as frames carry it; None: there is none, or it is not sampled."""
    found = context_of(trace) if (trace := current_trace.get()) else None
    return found.text.encode() if found is not None and found.is_sampled else None


def parent_for(tracer: Tracer, given: str, *, is_trusted: bool) -> str | None:
    """Below what a request is traced; empty: a trace begins; None: it is not traced.

    The flag of a header counts where its sender is trusted. Anybody else could have everything of theirs
    traced: for them the draw decides, and only the trace's name is taken over.
    """
    found = context_of(given)
    if found is not None and is_trusted:
        return found.text if found.is_sampled else None
    if not tracer.samples():
        return None
    return found.text if found is not None else ""


def ticket_span(tid: str) -> str:
    """The id of the span `admit` that issued this ticket: nobody has to write it down."""
    return blake2b(tid.encode(), digest_size=8).hexdigest()


def admit_context(entry: str, tid: str) -> str:
    """The context of `admit`, from that of the entry; empty where the entry was not sampled."""
    found = context_of(entry)
    return found._replace(span_id=ticket_span(tid)).text if found is not None else ""


@contextmanager
def trace_context(traceparent: str) -> Iterator[None]:
    """Calls of the SDK inside the block carry this context, which may be of a tracer of your own."""
    found = context_of(traceparent)
    token = current_trace.set(found.text if found is not None else "")
    try:
        yield
    finally:
        current_trace.reset(token)
