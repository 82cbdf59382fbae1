"""What is kept of an instance, and how it becomes what others see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from roost.api.discovery import HealthCheck, Instance, LifeEvent, Override, RegisterInput
from roost.discovery import model
from roost.discovery.scripts import Found, Snapshot


def beat(
    *, silent: bool = False, unhealthy: bool = False, status: str = "ready", load: int = 0, life: int = 7
) -> bytes:
    """As beat_pack.lua packs it."""
    fields = [silent, unhealthy, status, load, load, 1_700_000_000_000, life, {"fps": 60}]
    return msgspec.json.encode(fields)


def record(**fields: Any) -> bytes:
    return model.encode(model.record_of(RegisterInput(**{"type": "game", "group": "eu", **fields})))


def snapshot(
    people: dict[str, tuple[bytes, bytes]],
    orders: dict[str, Override] | None = None,
    panics: Sequence[str] = (),
) -> Snapshot:
    return Snapshot(
        5,
        1000,
        [part for id_, (kept, _) in people.items() for part in (id_.encode(), kept)],
        [part for id_, (_, last) in people.items() for part in (id_.encode(), last)],
        [
            part
            for name, override in (orders or {}).items()
            for part in (name.encode(), model.encode(override))
        ],
        list(panics),
    )


def one(found: Snapshot) -> Instance:
    (instance,) = model.instances_of(found)
    return instance


def test_everything_that_was_registered_is_seen() -> None:
    fields: dict[str, Any] = {
        "server_id": "501",
        "hostname": "h",
        "public_ip": "1.2.3.4",
        "private_ip": "10.0.0.1",
        "ports": {"game": 7777},
        "capacity": 100,
        "version": "1.2",
        "zone": "z1",
        "weight": 50,
        "labels": {"map": "desert"},
        "health": HealthCheck("http", "game", "/up"),
        "system_info": {"os": "linux"},
    }
    instance = one(snapshot({"a": (record(**fields), beat(load=3))}))
    for field, value in fields.items():
        assert getattr(instance, field) == value
    assert (instance.instance_id, instance.type, instance.group, instance.life) == ("a", "game", "eu", "7")
    assert (instance.status, instance.load, instance.accepting) == ("ready", 3, True)
    assert instance.last_heartbeat == "2023-11-14T22:13:20.000Z"
    assert instance.performance == {"fps": 60}
    assert instance.override is None


def test_a_record_leaves_out_what_belongs_to_the_beat_or_to_the_call() -> None:
    kept = msgspec.json.decode(record(load=5, status="draining", former_life="3", instance_id="a"))
    assert not kept.keys() & {"load", "status", "formerLife", "instanceId", "ttlSeconds", "performance"}


def test_instances_come_sorted_by_id() -> None:
    people = {id_: (record(), beat()) for id_ in ("c", "a", "b")}
    assert [i.instance_id for i in model.instances_of(snapshot(people))] == ["a", "b", "c"]


def test_a_record_without_a_beat_is_nobody() -> None:
    found = snapshot({"a": (record(), beat())})
    found.beats.clear()
    assert list(model.instances_of(found)) == []


def test_an_empty_snapshot_is_an_empty_list() -> None:
    assert list(model.instances_of(snapshot({}))) == []


# -- suspicion and panic


def fleet(suspects: int, total: int, group: str = "eu") -> dict[str, tuple[bytes, bytes]]:
    return {f"{group}{n}": (record(group=group), beat(silent=n < suspects)) for n in range(total)}


def test_a_suspect_is_seen_as_suspect_and_takes_nobody() -> None:
    found = list(model.instances_of(snapshot(fleet(1, 2))))
    assert [(i.status, i.accepting) for i in found] == [("suspect", False), ("ready", True)]


def test_g3_in_panic_suspects_stay_routable_and_are_seen_as_suspect() -> None:
    found = list(model.instances_of(snapshot(fleet(3, 4), panics=["game:eu"])))
    assert [i.status for i in found] == ["suspect"] * 3 + ["ready"]
    assert all(i.accepting for i in found)


def test_a_panic_is_a_matter_of_one_place() -> None:
    found = list(model.instances_of(snapshot({**fleet(3, 3, "eu"), **fleet(1, 3, "us")}, panics=["game:eu"])))
    assert [i.accepting for i in found] == [True] * 3 + [False, True, True]


def test_a_reader_does_not_find_out_by_itself_that_there_is_a_panic() -> None:
    assert not any(i.accepting for i in model.instances_of(snapshot(fleet(3, 3))))


@pytest.mark.parametrize("panics", [[], ["game:eu"]])
def test_draining_hides_behind_suspicion_and_takes_nobody_in_a_panic_either(panics: list[str]) -> None:
    people = {"a": (record(), beat(silent=True, status="draining")), "b": (record(), beat(status="draining"))}
    found = list(model.instances_of(snapshot(people, panics=panics)))
    assert [i.status for i in found] == ["suspect", "draining"]
    assert [i.accepting for i in found] == [False, False]


# -- orders


def test_an_order_is_found_by_server_id() -> None:
    found = snapshot({"a": (record(server_id="501"), beat())}, {"game:501": Override(drain=True)})
    instance = one(found)
    assert (instance.override, instance.accepting) == (Override(drain=True), False)


def test_an_order_is_found_by_id_where_there_is_no_server_id() -> None:
    assert one(snapshot({"a": (record(), beat())}, {"a": Override(drain=True)})).override == Override(
        drain=True
    )


def test_an_order_for_the_id_does_not_count_where_there_is_a_server_id() -> None:
    found = snapshot({"a": (record(server_id="501"), beat())}, {"a": Override(drain=True)})
    assert one(found).override is None


@pytest.mark.parametrize(
    ("override", "weight"), [(Override(weight=5), 5), (Override(weight=0), 0), (Override(drain=True), 80)]
)
def test_an_ordered_weight_takes_the_place_of_the_registered_one(override: Override, weight: int) -> None:
    assert one(snapshot({"a": (record(weight=80), beat())}, {"a": override})).weight == weight


def test_one_instance_is_seen_alike() -> None:
    for panic in (0, 1):
        found = Found(record(), beat(silent=True), model.encode(Override(weight=3)), panic, [])
        instance = model.instance_of("a", found)
        assert (instance.status, instance.accepting, instance.weight) == ("suspect", bool(panic), 3)
    assert model.instance_of("a", Found(record(), beat(), b"", 0, [])).override is None


def test_an_instance_of_an_older_gateway_that_accepts_is_willing() -> None:
    told = msgspec.to_builtins(one(snapshot({"a": (record(), beat())})))
    del told["willing"]
    assert msgspec.convert(told, Instance).willing
    assert not msgspec.convert({**told, "accepting": False}, Instance).willing


# -- history


def test_a_history_line_is_read() -> None:
    lines = ["1700000000123456\tadded\t7\tready", "1700000001000000\tremoved\t7\tno-response"]
    assert model.history_of(lines) == [
        LifeEvent("2023-11-14T22:13:20.123Z", "added", "7", "ready"),
        LifeEvent("2023-11-14T22:13:21.000Z", "removed", "7", "no-response"),
    ]


def test_a_removal_on_purpose_is_seen_as_terminated() -> None:
    assert [model.ended_status(cause) for cause in ("terminated", "removed", "no-response")] == [
        "terminated",
        "terminated",
        "no-response",
    ]
