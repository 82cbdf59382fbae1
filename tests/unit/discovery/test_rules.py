"""The rules of discovery: what may be said, and who may take users."""

from __future__ import annotations

import math
from typing import Any, get_args

import msgspec
import pytest

from roost.api.discovery import HealthCheck, Override, RegisterInput, SelfStatus, Status
from roost.core.errors import InvalidId, InvalidInput, Mistake
from roost.discovery import rules

STATUSES: tuple[Status, ...] = get_args(Status)


def given(**fields: Any) -> RegisterInput:
    return RegisterInput(**{"type": "game", "group": "eu", "ttl_seconds": 30.0, **fields})


# -- states


def test_every_status_has_a_sentence_and_a_row_of_transitions() -> None:
    assert rules.STATES.keys() == rules.TRANSITIONS.keys() == set(STATUSES)
    assert all(sentence.endswith(".") for sentence in rules.STATES.values())


@pytest.mark.parametrize("end", ["terminated", "no-response"])
def test_an_end_is_final_and_reached_from_everywhere(end: Status) -> None:
    assert rules.TRANSITIONS[end] == frozenset()
    for status in STATUSES:
        if rules.TRANSITIONS[status]:
            assert end in rules.TRANSITIONS[status]


@pytest.mark.parametrize("status", get_args(SelfStatus))
def test_whatever_an_instance_says_of_itself_may_follow_suspicion(status: Status) -> None:
    assert status in rules.TRANSITIONS["suspect"]
    assert "suspect" in rules.TRANSITIONS[status]


def test_a_suspect_does_not_become_suspect() -> None:
    assert "suspect" not in rules.TRANSITIONS["suspect"]


# -- registration


def test_a_plain_registration_passes() -> None:
    rules.check_registration(given())


def test_the_limits_themselves_pass() -> None:
    rules.check_registration(
        given(
            instance_id="x" * 128,
            server_id="501",
            hostname="h" * 255,
            capacity=2**31,
            load=2**31,
            weight=10_000,
            ttl_seconds=3.0,
            ports={f"p{n}": 65535 - n for n in range(16)},
            labels={f"l{n}": "v" * 255 for n in range(32)},
            health=HealthCheck("http", "p0", "/" * 255),
            system_info={"x": "y" * (8192 - len('{"x":""}'))},
        )
    )


@pytest.mark.parametrize("field", ["type", "group"])
@pytest.mark.parametrize("value", ["", "a:b", "a{b", "a b", "*\n", "x" * 129])
def test_a_place_that_would_not_fit_into_a_key_is_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidId, match=f"^{field} "):
        rules.check_registration(given(**{field: value}))


@pytest.mark.parametrize(("field", "name"), [("instance_id", "instanceId"), ("server_id", "serverId")])
@pytest.mark.parametrize("value", ["a:b", "a\tb", "a}", "x" * 129])
def test_an_id_that_would_not_fit_into_an_index_is_refused(field: str, name: str, value: str) -> None:
    with pytest.raises(InvalidId, match=f"^{name} "):
        rules.check_registration(given(**{field: value}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hostname": "h" * 256}, "hostname has 256 characters, at most 255"),
        ({"public_ip": "h" * 256}, "publicIp has 256"),
        ({"private_ip": "h" * 256}, "privateIp has 256"),
        ({"version": "h" * 256}, "version has 256"),
        ({"zone": "h" * 300}, "zone has 300"),
        ({"capacity": -1}, "capacity is -1, must be 0 to 2147483648"),
        ({"capacity": 2**31 + 1}, "capacity is 2147483649"),
        ({"load": -1}, "load is -1"),
        ({"load": 2**31 + 1}, "load is 2147483649"),
        ({"weight": -1}, "weight is -1, must be 0 to 10000"),
        ({"weight": 10_001}, "weight is 10001"),
        ({"ttl_seconds": 2.9}, "ttlSeconds is 2.9, must be 3 to 3600"),
        ({"ttl_seconds": 3601.0}, "ttlSeconds is 3601"),
        ({"ttl_seconds": math.nan}, "ttlSeconds is nan"),
        ({"ttl_seconds": math.inf}, "ttlSeconds is inf"),
        ({"ports": {f"p{n}": 1 for n in range(17)}}, "at most 16 ports"),
        ({"labels": {f"p{n}": "" for n in range(33)}}, "32 labels"),
        ({"ports": {"game": 0}}, r"ports\.game is 0, must be 1 to 65535"),
        ({"ports": {"game": 65536}}, r"ports\.game is 65536"),
        ({"ports": {"": 1}}, "port name is empty"),
        ({"ports": {"a b": 1}}, "port name 'a b' holds ' '"),
        ({"labels": {"": "x"}}, "label name is empty"),
        ({"labels": {"a\nb": "x"}}, "label name"),
        ({"labels": {"map": "x" * 256}}, r"labels\.map has 256 characters"),
        ({"system_info": {"x": "y" * 8192}}, "systemInfo has 8200 bytes as JSON, at most 8192"),
        ({"performance": {"x": "y" * 8192}}, "performance has 8200 bytes"),
        ({"health": HealthCheck("tcp", "game")}, r"health\.port 'game' is none of its ports"),
        ({"ports": {"game": 1}, "health": HealthCheck("http", "game", "/" * 256)}, r"health\.path has 256"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_its_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        rules.check_registration(given(**fields))


def test_the_hint_for_a_wrong_health_port_lists_the_ports() -> None:
    with pytest.raises(InvalidInput) as caught:
        rules.check_registration(given(ports={"game": 1, "admin": 2}, health=HealthCheck("tcp", "http")))
    assert caught.value.hint == "ports: game, admin"


def test_an_object_comes_back_as_json() -> None:
    assert msgspec.json.decode(rules.check_object("performance", {"fps": 60})) == {"fps": 60}


# -- names


def test_a_server_id_is_unique_within_its_type() -> None:
    assert rules.name_of("game", "501") == "game:501"
    assert rules.name_of("game", "") == ""
    assert rules.service_of("game", "eu") == "game:eu"


# -- who may take users


@pytest.mark.parametrize(
    ("status", "suspect", "calm", "panic"),
    [
        ("initializing", False, False, False),
        ("initializing", True, False, False),
        ("ready", False, True, True),
        ("ready", True, False, True),
        ("draining", False, False, False),
        ("draining", True, False, False),
    ],
)
def test_g6_who_is_willing_to_take_users(status: SelfStatus, suspect: bool, calm: bool, panic: bool) -> None:
    assert rules.is_willing(status, suspect, 100, None, panic=False) is calm
    assert rules.is_willing(status, suspect, 100, None, panic=True) is panic


@pytest.mark.parametrize(
    ("load", "capacity", "expected"),
    [(9, 10, False), (10, 10, True), (11, 10, True), (0, 0, False), (10**6, 0, False), (0, 1, False)],
)
def test_g6_who_is_full(load: int, capacity: int, expected: bool) -> None:
    assert rules.is_full(load, capacity) is expected


@pytest.mark.parametrize(
    ("override", "weight", "expected"),
    [
        (Override(), 100, True),
        (None, 0, False),
        (Override(drain=True), 100, False),
        (Override(out_of_service=True), 100, False),
        (Override(drain=True, out_of_service=True), 100, False),
    ],
)
def test_g6_an_order_to_take_nobody_and_weight_0_count_in_a_panic_too(
    override: Override | None, weight: int, expected: bool
) -> None:
    assert rules.is_willing("ready", False, weight, override, panic=False) is expected
    assert rules.is_willing("ready", True, weight, override, panic=True) is expected


# -- labels and times


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], True),
        (["map=desert"], True),
        (["map"], True),
        (["map=ice"], False),
        (["mode"], False),
        (["map=desert", "empty="], True),
        (["empty=x"], False),
        (["formula=a=b"], True),
        (["map=desert", "mode=ranked"], False),
    ],
)
def test_every_wanted_label_must_hold(wanted: list[str], expected: bool) -> None:
    labels = {"map": "desert", "empty": "", "formula": "a=b"}
    assert rules.fits_labels(labels, wanted) is expected


def test_times_are_utc_in_milliseconds() -> None:
    assert rules.iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert rules.iso(0) == "1970-01-01T00:00:00.000Z"
