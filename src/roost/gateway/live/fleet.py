"""The servers as a viewer sees them: a row each, changed by discovery's feed, counted on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from roost.api.discovery import Change, Instance, Override
from roost.api.events import Level
from roost.api.overview import ServerNumbers, TypeNumbers
from roost.core.events import Entry
from roost.gateway.live.sentences import Told, told

InstanceEvent = Literal[
    "registered",
    "initializing",
    "ready",
    "draining",
    "unhealthy",
    "healthy",
    "panic",
    "override",
    "left",
    "ended",
    "removed",
]
ENDS: dict[str, tuple[InstanceEvent, str, Level]] = {
    "terminated": ("left", "{name} ({type}) left", "info"),
    "no-response": ("ended", "{name} ({type}) ended: it did not answer any more", "error"),
    "removed": ("removed", "{name} ({type}) was removed by an operator", "warning"),
}
"""What a removal says of how it came about."""
LEVELS: tuple[Level, ...] = ("info", "warning")
OVERRIDES = {
    "drain": "an operator lets it take no new users",
    "out-of-service": "an operator took it out of service",
    "weight": "an operator set its weight",
    "lifted": "an operator lifted the override",
}
"""By the first word that the feed has for an override."""
STATUSES: dict[str, tuple[InstanceEvent, str]] = {
    "initializing": ("initializing", "{name} ({type}) is starting"),
    "ready": ("ready", "{name} ({type}) is ready"),
    "draining": ("draining", "{name} ({type}) is draining: it takes no new users"),
}


class Row(NamedTuple):
    """As much of an instance as a viewer's numbers need."""

    type: str
    name: str
    status: str
    accepting: bool
    willing: bool
    unhealthy: bool
    load: int
    capacity: int
    override: Override | None

    @classmethod
    def of(cls, instance: Instance) -> Row:
        return cls(
            instance.type,
            instance.server_id or instance.instance_id,
            instance.status,
            instance.accepting,
            instance.willing,
            instance.unhealthy,
            instance.load,
            instance.capacity,
            instance.override,
        )


class FleetTable:
    """Every live instance, by its id. `known` once there was a snapshot."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self.known = False

    def take(self, change: Change) -> list[Told]:
        """What a change means in words. A second snapshot is told by what differs."""
        at_us = int(change.revision_at)
        if change.event == "snapshot":
            return self._replace(change.instances or [], at_us)
        if change.event == "removed":
            row = self._rows.pop(change.instance_id, None)
            return [_gone(row.type if row else "", change.server_id, change.status, at_us)]
        assert change.instance is not None
        return self._put(change.instance, at_us)

    def _replace(self, instances: list[Instance], at_us: int) -> list[Told]:
        found = {instance.instance_id: instance for instance in instances}
        if not self.known:
            self.known, self._rows = True, {one: Row.of(instance) for one, instance in found.items()}
            return []
        news = [
            _gone(row.type, row.name, "no-response", at_us)
            for one, row in self._rows.items()
            if one not in found
        ]
        self._rows = {one: row for one, row in self._rows.items() if one in found}
        return news + [event for instance in instances for event in self._put(instance, at_us)]

    def _put(self, instance: Instance, at_us: int) -> list[Told]:
        former, row = self._rows.get(instance.instance_id), Row.of(instance)
        self._rows[instance.instance_id] = row
        if former is None:
            return [_say(row, "registered", f"{row.name} ({row.type}) registered", at_us)]
        return list(_differences(former, row, at_us, instance.last_heartbeat))

    def numbers(self) -> ServerNumbers:
        if not self.known:
            return ServerNumbers()
        numbers = ServerNumbers(0, 0, 0, 0, 0, 0, 0)
        types: defaultdict[str, TypeNumbers] = defaultdict(lambda: TypeNumbers("", 0, 0, 0, 0))
        for row in self._rows.values():
            _count(numbers, row)
            one = types[row.type]
            one.type = row.type
            one.total += 1
            one.accepting += row.accepting
            one.load += row.load
            one.capacity += row.capacity
        numbers.by_type = [types[name] for name in sorted(types)]
        return numbers

    def named(self, status: str) -> list[tuple[str, str]]:
        """(type, name) of those with this status, in order."""
        return sorted((row.type, row.name) for row in self._rows.values() if row.status == status)


def _count(numbers: ServerNumbers, row: Row) -> None:
    override = row.override
    for name, holds in (
        ("total", True),
        ("accepting", row.accepting),
        ("suspect", row.status == "suspect"),
        ("draining", row.status == "draining" or (override is not None and override.drain)),
        ("full", row.willing and not row.accepting),
        ("out_of_service", override is not None and override.out_of_service),
        ("unhealthy", row.unhealthy),
    ):
        if holds:
            setattr(numbers, name, getattr(numbers, name) + 1)


def _differences(former: Row, row: Row, at_us: int, last_heartbeat: str) -> Iterator[Told]:
    who = f"{row.name} ({row.type})"
    if row.status != former.status:
        if row.status == "suspect":
            why = _why_suspect(row, at_us, last_heartbeat)
            yield _say(row, "unhealthy", f"{row.name} is unhealthy: {why}", at_us, "warning")
        elif former.status == "suspect":
            yield _say(row, "healthy", f"{who} is healthy again", at_us)
        elif row.status in STATUSES:
            word, said = STATUSES[row.status]
            yield _say(row, word, said.format(name=row.name, type=row.type), at_us)
    elif row.status == "suspect" and row.accepting != former.accepting:
        said = (
            "takes users though it is suspect: most of its service is" if row.accepting else "takes no users"
        )
        yield _say(row, "panic", f"{who} {said}", at_us, "warning")
    if row.override != former.override:
        yield _say(
            row, "override", f"{who}: {_override(row.override)}", at_us, "warning" if row.override else "info"
        )


def _why_suspect(row: Row, at_us: int, last_heartbeat: str) -> str:
    if row.unhealthy:
        return "its health checks fail"
    silent_s = at_us / 1e6 - datetime.fromisoformat(last_heartbeat).timestamp()
    return f"no heartbeat for {silent_s:.0f} s" if silent_s >= 1 else "its main loop hangs"


def _override(override: Override | None) -> str:
    if override is None:
        return "an operator lifted the override"
    said = [
        *(["takes no new users"] if override.drain else []),
        *(["out of service"] if override.out_of_service else []),
        *([f"weight {override.weight}"] if override.weight is not None else []),
    ]
    return f"an operator's override: {', '.join(said) or 'none'}"


def _gone(type_: str, name: str, cause: str, at_us: int) -> Told:
    event, text, level = ENDS.get(cause, ENDS["no-response"])
    said = text.format(name=name, type=type_ or "server")
    subject = f"{type_ or 'server'}/{name}"
    details = {"type": type_, "server": name, "cause": cause}
    return told("instance", "discovery", event, at_us, subject, said, details, level)


def _say(row: Row, event: InstanceEvent, text: str, at_us: int, level: Level = "info") -> Told:
    subject = f"{row.type}/{row.name}"
    details = {"type": row.type, "server": row.name, "status": row.status}
    return told("instance", "discovery", event, at_us, subject, text, details, level)


def of_discovery(entry: Entry) -> Told | None:
    """An entry of discovery's feed alone, without what was before it: for what happened before we looked."""
    fields = entry.fields
    event, status = fields["event"], fields.get("status", "")
    type_, _, _ = fields.get("service", "").partition(":")
    name = fields.get("serverId", "")
    if event == "removed":
        return _gone(type_, name, status, entry.at)
    who, subject = f"{name} ({type_})", f"{type_}/{name}"
    word: InstanceEvent
    if event == "added":
        said, word, level = f"{who} registered", "registered", LEVELS[0]
    elif event == "changed" and status == "suspect":
        said, word, level = f"{name} is unhealthy", "unhealthy", LEVELS[1]
    elif event == "changed" and status.partition(" ")[0] in OVERRIDES:
        said, word, level = f"{who}: {OVERRIDES[status.partition(' ')[0]]}", "override", LEVELS[1]
    else:
        return None
    details = {"type": type_, "server": name, "status": status}
    return told("instance", "discovery", word, entry.at, subject, said, details, level)
