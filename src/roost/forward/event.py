"""An event as other systems get it. Pure."""

from __future__ import annotations

from typing import Any

from roost.api import Message
from roost.api.events import EventScope, Level
from roost.core.events import START, Mark
from roost.gateway.live.sentences import Told, iso


class ForwardedEvent(Message):
    """One event of one source. The same `id` is the same event: it may come again, and is then dropped.

    `begin` is the first of a source: nothing is told of what was before. `gap` says that events were missed,
    because a forwarder was away for longer than the feed reaches back: look at the API for how things are.
    """

    id: str
    """`<source>/<rev>-<at>`."""
    source: str
    """Whose feed: `discovery`, `world main`, `bindings 0`. Events of one source come in order."""
    scope: EventScope
    event: str
    at: str
    subject: str
    text: str
    """In English, for people."""
    level: Level = "info"
    details: dict[str, Any] = {}  # noqa: RUF012 — msgspec copies it


class Batch(Message):
    """The body of a webhook."""

    version: int
    forwarder: str
    events: list[ForwardedEvent]


def text_of(mark: Mark) -> str:
    return f"{mark.rev}-{mark.at}"


def mark_of(text: str) -> Mark:
    """`ValueError` if it is none."""
    rev, _, at = text.partition("-")
    return Mark(int(rev), int(at))


def event_of(source: str, mark: Mark, told: Told) -> ForwardedEvent:
    said = told.happening
    return ForwardedEvent(
        *(f"{source}/{text_of(mark)}", source, said.scope, said.event, said.at),
        *(said.subject, said.text, said.level, said.details),
    )


def begin(source: str, scope: EventScope, at: Mark) -> ForwardedEvent:
    text = f"events of {source} are told from here on"
    return _said(source, scope, "begin", at, text, "info", {"resumes": text_of(at)})


def gap(source: str, scope: EventScope, after: Mark, at: Mark) -> ForwardedEvent:
    text = f"events of {source} were missed: the feed does not reach back to the last that was told"
    details = {"after": text_of(after), "resumes": text_of(at)}
    return _said(source, scope, "gap", at, text, "warning", details)


def _said(
    source: str, scope: EventScope, event: str, at: Mark, text: str, level: Level, details: dict[str, Any]
) -> ForwardedEvent:
    """Of a feed that is empty the time is that of the epoch: nothing has happened there."""
    name = f"{source}/{text_of(at)}/{event}"
    when = iso(at.at if at != START else 0)
    return ForwardedEvent(name, source, scope, event, when, f"feed/{source}", text, level, details)
