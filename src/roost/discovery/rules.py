"""The rules of discovery, without I/O: what may be said, and who may take users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from roost.api.discovery import Beat, Override, RegisterInput, SelfStatus, Status
from roost.api.limits import (
    MAX_COUNT,
    MAX_LABELS,
    MAX_OBJECT_BYTES,
    MAX_PORTS,
    MAX_TEXT,
    MAX_TTL_S,
    MAX_WEIGHT,
    MIN_TTL_S,
)
from roost.core.errors import InvalidInput
from roost.core.ids import check_id, check_name

STATES: Mapping[Status, str] = {
    "initializing": "It starts: known, but takes nobody yet.",
    "ready": "It takes users.",
    "draining": "It keeps its users and takes no new ones.",
    "suspect": "It is silent or hangs: it keeps its users and takes no new ones.",
    "terminated": "It stopped cleanly, or an operator removed it.",
    "no-response": "It died: its lease ended, or its own host refused the probe.",
}
_LIVE: frozenset[Status] = frozenset({"initializing", "ready", "draining"})
_ENDS: frozenset[Status] = frozenset({"terminated", "no-response"})
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    "initializing": _LIVE | _ENDS | {"suspect"},
    "ready": _LIVE | _ENDS | {"suspect"},
    "draining": _LIVE | _ENDS | {"suspect"},
    "suspect": _LIVE | _ENDS,
    "terminated": frozenset(),
    "no-response": frozenset(),
}
"""From each state to the states it may turn into. An end is final: what comes back is a new life."""


_check_common_name = lru_cache(1024)(check_name)
_check_common_id = lru_cache(1024)(check_id)
"""For what a whole fleet has in common, and what is right once is right again."""

Sent = TypeVar("Sent", RegisterInput, Beat)


def as_sent(given: Sent) -> Sent:
    """The message as it would have come over HTTP: what could not be sent is refused on every transport."""
    try:
        return msgspec.json.decode(msgspec.json.encode(given), type=type(given))
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(str(error)) from None


def check_registration(given: RegisterInput) -> None:
    """Refuse what would not fit into keys, indexes or bounds, naming the field."""
    _check_common_name(given.type, "type")
    _check_common_name(given.group, "group")
    for field, value in (("instanceId", given.instance_id), ("serverId", given.server_id)):
        if value:
            check_name(value, field)
    for field, value in (
        ("hostname", given.hostname),
        ("publicIp", given.public_ip),
        ("privateIp", given.private_ip),
        ("version", given.version),
        ("zone", given.zone),
        ("health.path", given.health.path if given.health is not None else ""),
    ):
        if len(value) > MAX_TEXT:
            raise InvalidInput(f"{field} has {len(value)} characters, at most {MAX_TEXT} are allowed")
    _check_numbers(given)
    _check_maps(given)
    check_object("systemInfo", given.system_info)
    check_object("performance", given.performance)
    if given.health is not None and given.health.port not in given.ports:
        raise InvalidInput(
            f"health.port {given.health.port!r} is none of its ports",
            hint=f"ports: {', '.join(given.ports) or 'none'}",
        )


def _check_numbers(given: RegisterInput) -> None:
    bounds = (
        ("capacity", given.capacity, MAX_COUNT),
        ("load", given.load, MAX_COUNT),
        ("weight", given.weight, MAX_WEIGHT),
    )
    for field, value, most in bounds:
        _check_bound(field, value, most)
    if not MIN_TTL_S <= given.ttl_seconds <= MAX_TTL_S:
        raise InvalidInput(f"ttlSeconds is {given.ttl_seconds:g}, must be {MIN_TTL_S:g} to {MAX_TTL_S:g}")


def _check_bound(field: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise InvalidInput(f"{field} is {value}, must be 0 to {most}")


def check_override(override: Override | None) -> None:
    """Refuse a weight that no instance may register with: balancers would leave its server out."""
    if override is not None and override.weight is not None:
        _check_bound("weight", override.weight, MAX_WEIGHT)


def _check_maps(given: RegisterInput) -> None:
    if len(given.ports) > MAX_PORTS or len(given.labels) > MAX_LABELS:
        raise InvalidInput(f"at most {MAX_PORTS} ports and {MAX_LABELS} labels are allowed")
    for name, port in given.ports.items():
        _check_common_id(name, "port name")
        if not 0 < port < 65536:
            raise InvalidInput(f"ports.{name} is {port}, must be 1 to 65535")
    for name, value in given.labels.items():
        _check_common_id(name, "label name")
        if len(value) > MAX_TEXT:
            raise InvalidInput(f"labels.{name} has {len(value)} characters, at most {MAX_TEXT} are allowed")


def check_object(field: str, value: Mapping[str, Any]) -> bytes:
    """The object as JSON, refused where it is too large to be carried by every beat."""
    encoded = msgspec.json.encode(value)
    if len(encoded) > MAX_OBJECT_BYTES:
        raise InvalidInput(
            f"{field} has {len(encoded)} bytes as JSON, at most {MAX_OBJECT_BYTES} are allowed"
        )
    return encoded


def service_of(service_type: str, group: str) -> str:
    return f"{service_type}:{group}"


def name_of(service_type: str, server_id: str) -> str:
    """Under which a server id is unique; empty without one."""
    return f"{service_type}:{server_id}" if server_id else ""


def is_willing(
    status: SelfStatus, suspect: bool, weight: int, override: Override | None, panic: bool
) -> bool:
    """Whether it takes new users, were there room. `status` is its own word.

    In a panic of its service suspicion does not count: the fault is likely ours. Everything else still does.
    """
    if override is not None and (override.drain or override.out_of_service):
        return False
    return status == "ready" and weight > 0 and (panic or not suspect)


def is_full(load: int, capacity: int) -> bool:
    return bool(capacity) and load >= capacity


def fits_labels(labels: Mapping[str, str], wanted: Sequence[str]) -> bool:
    """Whether every `name=value` (or bare `name`) that is wanted holds."""
    for want in wanted:
        name, equals, value = want.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def iso(ms: float) -> str:
    second, rest = divmod(int(ms), 1000)
    return f"{_second(second)}.{rest:03d}Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    """Beats of one fleet share their seconds, and every one of them is shown in ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
