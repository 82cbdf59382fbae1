"""What is kept of an instance, and how it becomes what others see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from roost.api.discovery import (
    Instance,
    LifeEvent,
    Override,
    Record,
    RegisterInput,
    SelfStatus,
    Status,
)
from roost.core.events import Entry
from roost.discovery import rules
from roost.discovery.scripts import Found, Snapshot
from roost.discovery.unreadable import Unreadable

UNREADABLE = (msgspec.DecodeError, ValueError, KeyError, RecursionError)
"""What reading something damaged may raise."""
MAX_TIME_DIGITS = 17
"""Of a time in µs: enough for a thousand years."""
NO_ORDER = Override()
UNREADABLE_ORDER = Override(out_of_service=True)
"""In place of an override that cannot be read: whatever was ordered, it was not to send it more users."""


class KeptBeat(msgspec.Struct, array_like=True):
    """The last beat, as `beat_pack.lua` packs it."""

    silent: bool
    """No beat for half the lease, or a main loop that hangs."""
    unhealthy: bool
    """So the majority of the checkers voted."""
    status: SelfStatus
    """What the instance says of itself."""
    load: int
    told_load: int
    """The load that the feed told last."""
    beat_ms: int
    life: int
    performance: dict[str, Any]

    @property
    def suspect(self) -> bool:
        return self.silent or self.unhealthy


encode = msgspec.json.Encoder().encode
_record = msgspec.json.Decoder(Record).decode
beat_of = msgspec.json.Decoder(KeptBeat).decode
_override = msgspec.json.Decoder(Override).decode
_values = attrgetter(*Record.__struct_fields__)


class Row(NamedTuple):
    """All that is kept of one instance. Others see it as `seen` says, and in no other way."""

    instance_id: str
    record: Record
    beat: KeptBeat
    override: Override | None

    @property
    def service(self) -> str:
        return rules.service_of(self.record.type, self.record.group)

    def willing(self, panic: bool) -> bool:
        override = self.override
        ordered = override.weight if override is not None else None
        weight = self.record.weight if ordered is None else ordered
        return rules.is_willing(self.beat.status, self.beat.suspect, weight, override, panic)

    def seen(self, panic: bool) -> Instance:
        """The instance as others see it while its service is in panic or not."""
        record, beat, override = self.record, self.beat, self.override
        if override is not None and override.weight is not None:
            record.weight = override.weight
        willing = self.willing(panic)
        return Instance(
            *_values(record),
            instance_id=self.instance_id,
            life=str(beat.life),
            status="suspect" if beat.suspect else beat.status,
            unhealthy=beat.unhealthy,
            accepting=willing and not rules.is_full(beat.load, record.capacity),
            willing=willing,
            last_heartbeat=rules.iso(beat.beat_ms),
            load=beat.load,
            performance=beat.performance,
            override=override,
        )


def ordered_for(life: int, override: Override | None) -> Override | None:
    """The override as it counts for this life: a drain that was ordered for another one is over."""
    if override is None or override.drain_life in ("", str(life)):
        return override
    rest = msgspec.structs.replace(override, drain=False, drain_life="")
    return None if rest == NO_ORDER else rest


def _read(key: str, record: bytes | str, beat: bytes | str, override: Override | None) -> Row:
    kept = beat_of(beat)
    return Row(key, _record(record), kept, ordered_for(kept.life, override))


def rows_of(found: Snapshot, unreadable: Unreadable) -> Iterator[Row]:
    """The rows of a snapshot, sorted by instance id, without those that cannot be read. Each is read when it
    is asked for: who lets others work in between holds up nobody, however many there are."""
    beats = dict(zip(found.beats[::2], found.beats[1::2], strict=True))
    orders = zip(found.overrides[::2], found.overrides[1::2], strict=True)
    overrides = {name: override_of(repr(name), raw, unreadable) for name, raw in orders}
    for key, raw in sorted(zip(found.records[::2], found.records[1::2], strict=True)):
        try:
            row = _row(key.decode(), raw, beats[key], overrides) if key in beats else None
        except UNREADABLE as error:
            unreadable.note("record", repr(key), error)
        else:
            if row is not None:
                yield row


def _row(key: str, raw: bytes, beat: bytes, overrides: Mapping[bytes, Override | None]) -> Row:
    record = _record(raw)
    name = rules.name_of(record.type, record.server_id) or key
    kept = beat_of(beat)
    return Row(key, record, kept, ordered_for(kept.life, overrides.get(name.encode()) if overrides else None))


def override_of(name: str, raw: bytes | str, unreadable: Unreadable) -> Override | None:
    """The override that is kept under a name; None where nothing is."""
    try:
        return _override(raw) if raw else None
    except UNREADABLE as error:
        unreadable.note("override", name, error)
        return UNREADABLE_ORDER


def instances_of(found: Snapshot, unreadable: Unreadable | None = None) -> Iterator[Instance]:
    """A snapshot as instances, as `rows_of` reads them."""
    return (row.seen(row.service in found.panics) for row in rows_of(found, unreadable or Unreadable()))


def instance_of(instance_id: str, found: Found, unreadable: Unreadable | None = None) -> Instance:
    """One instance; raises one of `UNREADABLE`."""
    override = override_of(instance_id, found.override, unreadable or Unreadable())
    return _read(instance_id, found.record, found.beat, override).seen(bool(found.panic))


def row_of(entry: Entry, unreadable: Unreadable) -> Row | None:
    """The instance that a feed entry carries; None for a removal. Raises one of `UNREADABLE`."""
    fields = entry.fields
    if not fields["record"]:
        return None
    ordered = fields["override"]
    override = override_of(fields["id"], ordered, unreadable) if ordered else None
    return _read(fields["id"], fields["record"], fields["beat"], override)


def record_of(given: RegisterInput) -> Record:
    return Record(*_values(given))


def ended_status(cause: str) -> Status:
    return "no-response" if cause == "no-response" else "terminated"


def history_of(lines: list[str]) -> list[LifeEvent]:
    """Without the lines that cannot be read."""
    rows = (line.split("\t") for line in lines)
    return [
        LifeEvent(rules.iso(int(row[0]) / 1000), *row[1:])
        for row in rows
        if len(row) == 4 and row[0].isdecimal() and len(row[0]) <= MAX_TIME_DIGITS
    ]
