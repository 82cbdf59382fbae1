"""Where events may go, and what is said of an address that cannot be one."""

from __future__ import annotations

import pytest

from roost.core.errors import InvalidInput
from roost.forward.destination import Destination, parse_destination
from roost.forward.settings import ForwardSettings

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("webhook:https://a.b/c?d=e", Destination("webhook", "https://a.b/c?d=e", "a.b")),
        ("nats://u:p@a.b:4222", Destination("nats", "nats://u:p@a.b:4222", "a.b", "roost.events")),
        ("tls://a.b:4222/live.eu", Destination("nats", "tls://a.b:4222", "a.b", "live.eu")),
        ("kafka://a.b/events", Destination("kafka", "a.b:9092", "a.b", "events")),
    ],
)
def test_a_destination_is_read(text: str, destination: Destination) -> None:
    assert parse_destination(text) == destination


@pytest.mark.parametrize(
    "text",
    [
        f"webhook:ftp://{SECRET}@a.b",
        f"webhook:{SECRET}",
        f"amqp://{SECRET}@a.b",
        f"nats://{SECRET}@a.b/not a subject",
        f"nats://{SECRET}@a.b/a..b",
        f"kafka://{SECRET}@a.b:99999/t",
        "nats://",
    ],
)
def test_a_fault_repeats_nothing_of_the_address(text: str) -> None:
    with pytest.raises(InvalidInput) as found:
        parse_destination(text)

    assert SECRET not in found.value.message + (found.value.hint or "")
    (fault,) = ForwardSettings(to=text).faults()
    assert SECRET not in fault


def test_the_address_is_not_in_a_repr_since_it_may_hold_a_token() -> None:
    assert SECRET not in repr(parse_destination(f"webhook:https://a.b/{SECRET}"))


def test_an_unknown_scope_is_a_fault() -> None:
    assert ForwardSettings(scopes="binding, fishing").faults() == [
        "scopes has fishing, may have discovery, queue, binding, drain, orders, audit"
    ]
