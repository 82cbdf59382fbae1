"""Who may log in at a gate, by its settings."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from roost.core.errors import TokenRefused, WorldClosed
from roost.core.passes import sign_login
from roost.core.signing import parse_keys
from roost.servers.gate.hosting import proofs_of, ring_of
from roost.servers.settings import GateSettings
from roost.settings import Settings

KEYS = "k:" + base64.b64encode(b"k" * 32).decode()


def test_a_name_will_do_in_profile_dev_without_keys(tmp_path: Path) -> None:
    proofs = proofs_of(ring_of(Settings(data=tmp_path)))
    assert proofs.login("dev:ann", 0.0).user == "ann"
    with pytest.raises(TokenRefused):
        proofs.login("ann", 0.0)


def test_a_name_will_not_do_where_there_are_keys(tmp_path: Path) -> None:
    proofs = proofs_of(ring_of(Settings(data=tmp_path, queue_keys=KEYS)))
    assert proofs.login(sign_login(parse_keys(KEYS), user="ann", now=0.0), 1.0).user == "ann"
    with pytest.raises(TokenRefused):
        proofs.login("dev:ann", 0.0)


def test_without_a_world_no_key_for_tickets_is_needed() -> None:
    cloud = Settings(profile="cloud", queue_keys=KEYS)
    assert proofs_of(ring_of(cloud)).login(sign_login(parse_keys(KEYS), user="ann", now=0.0), 1.0)
    with pytest.raises(WorldClosed, match="ROOST_TICKET_KEYS"):
        proofs_of(ring_of(Settings(profile="cloud", queue_keys=KEYS, gate=GateSettings(world="main"))))


def test_without_any_key_outside_profile_dev_nobody_could_log_in() -> None:
    with pytest.raises(WorldClosed, match="ROOST_QUEUE_KEYS"):
        proofs_of(ring_of(Settings(profile="cloud")))


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (GateSettings(types="entity,a b"), "types"),
        (GateSettings(world="a{b}"), "world"),
        (GateSettings(port=70_000), "port"),
        (GateSettings(public_url="nonsense"), "public_url"),
        (GateSettings(trusted_proxies="nowhere"), "trusted_proxies"),
    ],
)
def test_bad_settings_are_named(settings: GateSettings, fault: str) -> None:
    assert any(fault in line for line in settings.faults())


def test_the_default_type_comes_first_and_once() -> None:
    assert GateSettings(type="room", types="pets, room,,entity").allowed_types == ("room", "pets", "entity")
