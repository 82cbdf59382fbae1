"""What can be asked for by DNS, and who is told."""

from __future__ import annotations

import pytest

from roost.api.discovery import Change, Instance
from roost.servers.dns.names import Between, OneServer, Service, parse_labels
from roost.servers.dns.zone import Zone


def instance(name: str, *, group: str = "kr-1", accepting: bool = True, ip: str = "10.0.0.1") -> Instance:
    return Instance(
        type="game",
        group=group,
        server_id=name,
        private_ip=ip,
        public_ip="203.0.113.9",
        ports={"ws": 8000, "metrics": 9000},
        instance_id=f"I{name}",
        life="1",
        status="ready",
        accepting=accepting,
        last_heartbeat="",
    )


def snapshot(*instances: Instance) -> Change:
    return Change("snapshot", 1, "1", instances=list(instances))


def told(zone: Zone, *labels: str) -> set[str]:
    asked = parse_labels(labels)
    assert asked is not None
    return {server.label for server in zone.servers(asked)}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("game", Service("game")),
        ("KR-1.Game", Service("game", "kr-1")),
        ("_ws._tcp.game", Service("game", "", "ws")),
        ("_ws._udp.kr-1.game", Service("game", "kr-1", "ws")),
        ("501.game.server", OneServer("game", "501")),
        ("_tcp.game", Between("game")),
        ("game.server", Between("game")),
        ("server", Between()),
        ("a.b.c", None),
        ("_ws._sctp.game", None),
        ("_ws._tcp.a.b.c", None),
    ],
)
def test_a_name_asks_for_one_thing_or_for_nothing(text: str, asked: object) -> None:
    assert parse_labels(text.split(".")) == asked


def test_only_accepting_servers_are_told_by_type_and_by_group() -> None:
    zone = Zone()
    zone.apply(snapshot(instance("501"), instance("502", group="us-1"), instance("503", accepting=False)))

    assert told(zone, "game") == {"501", "502"}
    assert told(zone, "kr-1", "game") == {"501"}
    assert told(zone, "jp-1", "game") == set()


def test_a_name_exists_while_somebody_is_registered_under_it_accepting_or_not() -> None:
    zone = Zone()
    zone.apply(snapshot(instance("503", accepting=False)))

    assert told(zone, "kr-1", "game") == set()
    assert zone.exists(Service("game", "kr-1"))
    assert zone.exists(Service("game", "", "ws"))
    assert not zone.exists(Service("game", "us-1"))
    assert not zone.exists(Service("game", "", "grpc"))


def test_changes_are_followed_and_what_is_removed_leaves_nothing() -> None:
    zone = Zone()
    zone.apply(snapshot(instance("501"), instance("502")))

    zone.apply(Change("changed", 2, "2", "I501", instance=instance("501", accepting=False)))
    assert told(zone, "game") == {"502"}
    zone.apply(Change("removed", 3, "3", "I502"))
    zone.apply(Change("removed", 4, "4", "I501"))

    assert len(zone) == 0
    assert not zone.exists(Service("game"))
    assert not zone.exists(OneServer("game", "501"))


def test_another_snapshot_replaces_everything() -> None:
    zone = Zone()
    zone.apply(snapshot(instance("501")))
    zone.apply(snapshot(instance("502")))

    assert told(zone, "game") == {"502"}
    assert not zone.exists(OneServer("game", "501"))


def test_of_many_servers_each_answer_draws_some_and_in_time_all() -> None:
    zone = Zone(most=5)
    zone.apply(snapshot(*(instance(str(number)) for number in range(20))))

    drawn = [told(zone, "game") for _ in range(200)]

    assert {len(one) for one in drawn} == {5}
    assert set().union(*drawn) == {str(number) for number in range(20)}


def test_a_server_whose_name_is_no_label_has_another_and_one_without_an_address_is_left_out() -> None:
    zone = Zone()
    zone.apply(snapshot(instance("a.b"), instance("501", ip="a-host")))
    (label,) = told(zone, "game") - {"501"}

    assert told(zone, label, "game", "server") == {label}
    assert {str(server.address) for server in zone.servers(OneServer("game", "501"))} == {"203.0.113.9"}
    nowhere = instance("502", ip="")
    nowhere.public_ip = ""
    zone.apply(Change("added", 2, "2", "I502", instance=nowhere))
    assert zone.unnameable == 1
    assert not zone.exists(OneServer("game", "502"))


def test_the_public_address_is_told_where_that_is_wanted() -> None:
    zone = Zone(public=True)
    zone.apply(snapshot(instance("501")))

    assert {str(server.address) for server in zone.servers(Service("game"))} == {"203.0.113.9"}
