"""What is kept of an instance, and how it becomes what others see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from roost.api.discovery import Change, Instance, LifeEvent, Order, Record, RegisterInput, Status
from roost.core.events import Entry
from roost.discovery import rules
from roost.discovery.scripts import Found, Snapshot


class KeptBeat(msgspec.Struct, rename="camel"):
    """The last beat, as `heartbeat.lua` writes it."""

    suspect: Literal[0, 1, 2, 3]
    """0 well, 1 silent, 2 unhealthy by the checkers' votes, 3 both."""
    status: Literal["initializing", "ready", "draining"]
    load: int
    beat_ms: int
    life: int
    performance: dict[str, Any]


encode = msgspec.json.Encoder().encode
_record = msgspec.json.Decoder(Record).decode
_beat = msgspec.json.Decoder(KeptBeat).decode
_order = msgspec.json.Decoder(Order).decode


def instances_of(found: Snapshot) -> list[Instance]:
    """A snapshot as instances, sorted by id; suspicion is overlooked where more than half are suspect."""
    beats = dict(zip(found.beats[::2], found.beats[1::2], strict=True))
    orders = dict(zip(found.orders[::2], map(_order, found.orders[1::2]), strict=True))
    joined = [
        (key.decode(), _record(raw), _beat(beats[key]))
        for key, raw in zip(found.records[::2], found.records[1::2], strict=True)
        if key in beats
    ]
    panics = _panics((record, beat) for _, record, beat in joined)
    instances = []
    for instance_id, record, beat in joined:
        name = rules.name_of(record.type, record.server_id) or instance_id
        order = orders.get(name.encode()) if orders else None
        instances.append(_instance(instance_id, record, beat, order, (record.type, record.group) in panics))
    instances.sort(key=lambda instance: instance.instance_id)
    return instances


def instance_of(instance_id: str, found: Found) -> Instance:
    order = _order(found.order) if found.order else None
    return _instance(instance_id, _record(found.record), _beat(found.beat), order)


def _panics(pairs: Iterable[tuple[Record, KeptBeat]]) -> set[tuple[str, str]]:
    counts: dict[tuple[str, str], list[int]] = {}
    for record, beat in pairs:
        count = counts.setdefault((record.type, record.group), [0, 0])
        count[0] += beat.suspect > 0
        count[1] += 1
    return {place for place, (suspects, total) in counts.items() if rules.in_panic(suspects, total)}


def _instance(
    instance_id: str, record: Record, beat: KeptBeat, order: Order | None, panic: bool = False
) -> Instance:
    status: Status = "suspect" if beat.suspect else beat.status
    if order is not None and order.weight is not None:
        record.weight = order.weight
    return Instance(
        **msgspec.structs.asdict(record),
        instance_id=instance_id,
        life=str(beat.life),
        status=status,
        unhealthy=beat.suspect >= 2,
        accepting=rules.may_take_users(status, beat.load, record.capacity, order, panic),
        last_heartbeat=rules.iso(beat.beat_ms),
        load=beat.load,
        performance=beat.performance,
        order=order,
    )


def change_of(entry: Entry) -> Change:
    """A feed entry as a watcher sees it."""
    fields = entry.fields
    instance = None
    if fields["record"]:
        order = _order(fields["order"]) if fields["order"] else None
        instance = _instance(fields["id"], _record(fields["record"]), _beat(fields["beat"]), order)
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
