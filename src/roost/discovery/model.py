"""What is kept of an instance, and how it becomes what others see."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from roost.api.discovery import Change, Instance, LifeEvent, Override, Record, RegisterInput, Status
from roost.core.events import Entry
from roost.discovery import rules
from roost.discovery.scripts import Found, Snapshot

log = logging.getLogger("roost.discovery")


class KeptBeat(msgspec.Struct, array_like=True):
    """The last beat, as `beat_pack.lua` packs it."""

    silent: bool
    """No beat for half the lease, or a main loop that hangs."""
    unhealthy: bool
    """So the majority of the checkers voted."""
    status: Literal["initializing", "ready", "draining"]
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


def instances_of(found: Snapshot) -> list[Instance]:
    """A snapshot as instances, sorted by id; suspicion is overlooked where more than half are suspect."""
    beats = dict(zip(found.beats[::2], found.beats[1::2], strict=True))
    overrides = dict(zip(found.overrides[::2], map(_override, found.overrides[1::2]), strict=True))
    joined = [
        row
        for key, raw in zip(found.records[::2], found.records[1::2], strict=True)
        if key in beats and (row := _row(key, raw, beats[key])) is not None
    ]
    panics = _panics((record, beat) for _, record, beat in joined)
    instances = []
    for instance_id, record, beat in joined:
        name = rules.name_of(record.type, record.server_id) or instance_id
        override = overrides.get(name.encode()) if overrides else None
        instances.append(
            _instance(instance_id, record, beat, override, (record.type, record.group) in panics)
        )
    instances.sort(key=lambda instance: instance.instance_id)
    return instances


def _row(key: bytes, raw: bytes, beat: bytes) -> tuple[str, Record, KeptBeat] | None:
    """One instance; None, and a line in the log, for one that nobody can read: its neighbours are shown."""
    try:
        return key.decode(), _record(raw), beat_of(beat)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.error("unreadable record left out", extra={"instanceId": repr(key), "reason": str(error)})
        return None


def instance_of(instance_id: str, found: Found) -> Instance:
    override = _override(found.override) if found.override else None
    return _instance(instance_id, _record(found.record), beat_of(found.beat), override)


def _panics(pairs: Iterable[tuple[Record, KeptBeat]]) -> set[tuple[str, str]]:
    counts: dict[tuple[str, str], list[int]] = {}
    for record, beat in pairs:
        count = counts.setdefault((record.type, record.group), [0, 0])
        count[0] += beat.suspect
        count[1] += 1
    return {service for service, (suspects, total) in counts.items() if rules.in_panic(suspects, total)}


def _instance(
    instance_id: str, record: Record, beat: KeptBeat, override: Override | None, panic: bool = False
) -> Instance:
    status: Status = "suspect" if beat.suspect else beat.status
    if override is not None and override.weight is not None:
        record.weight = override.weight
    return Instance(
        **msgspec.structs.asdict(record),
        instance_id=instance_id,
        life=str(beat.life),
        status=status,
        unhealthy=beat.unhealthy,
        accepting=rules.may_take_users(status, beat.load, record.capacity, override, panic),
        last_heartbeat=rules.iso(beat.beat_ms),
        load=beat.load,
        performance=beat.performance,
        override=override,
    )


def change_of(entry: Entry) -> Change:
    """A feed entry as a watcher sees it."""
    fields = entry.fields
    instance = None
    if fields["record"]:
        override = _override(fields["override"]) if fields["override"] else None
        instance = _instance(fields["id"], _record(fields["record"]), beat_of(fields["beat"]), override)
    return Change(
        event=fields["event"],  # type: ignore[arg-type]
        revision=entry.rev,
        revision_at=str(entry.at),
        instance_id=fields["id"],
        life=fields["life"],
        server_id=fields["serverId"],
        status=fields["status"],
        instance=instance,
    )


def record_of(given: RegisterInput) -> Record:
    return Record(**{field: getattr(given, field) for field in Record.__struct_fields__})


def ended_status(cause: str) -> Status:
    return "no-response" if cause == "no-response" else "terminated"


def history_of(lines: list[str]) -> list[LifeEvent]:
    rows = (line.split("\t") for line in lines)
    return [
        LifeEvent(rules.iso(int(at_us) / 1000), event, life, status) for at_us, event, life, status in rows
    ]
