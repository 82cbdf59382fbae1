"""Which entity servers a gate can reach: those that discovery shows, this very life of each."""

from __future__ import annotations

import asyncio
from typing import Any

from roost.api.discovery import Change, Instance
from roost.servers.gate.peers import Line, Peers, Server
from roost.servers.gate.routes import Route, Routes


class FakeLine:
    def __init__(self) -> None:
        self.is_closed = False

    def send(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nobody sends here")

    async def close(self) -> None:
        self.is_closed = True


class Dialed:
    def __init__(self) -> None:
        self.lines: list[FakeLine] = []
        self.addresses: list[tuple[str, int]] = []

    def __call__(self, server: Server) -> Line:
        self.addresses.append(server.address)
        self.lines.append(FakeLine())
        return self.lines[-1]


def instance(server_id: str = "501", life: str = "1", *, id_: str = "", **more: Any) -> Instance:
    fields: dict[str, Any] = {"private_ip": "10.0.0.5", "ports": {"wire": 8430}} | more
    return Instance(
        type="entity",
        group="main",
        instance_id=id_ or f"i-{server_id}-{life}",
        server_id=server_id,
        life=life,
        status="ready",
        accepting=True,
        last_heartbeat="",
        **fields,
    )


def added(one: Instance) -> Change:
    return Change("added", 1, "1", one.instance_id, one.life, one.server_id, "ready", one)


def removed(one: Instance) -> Change:
    return Change("removed", 1, "1", one.instance_id, one.life, one.server_id, "terminated")


async def test_a_server_is_dialed_when_it_is_needed_and_once() -> None:
    dialed = Dialed()
    peers = Peers(dialed)
    peers.apply("entity", added(instance()))
    assert not dialed.addresses
    for _ in range(3):
        assert peers.find("entity", Route("501", "1", 5)) is not None
    assert dialed.addresses == [("10.0.0.5", 8430)]


async def test_another_life_or_type_is_not_the_server() -> None:
    peers = Peers(Dialed())
    peers.apply("entity", added(instance()))
    assert peers.find("entity", Route("501", "2", 5)) is None
    assert peers.find("pets", Route("501", "1", 5)) is None
    assert not peers.knows("entity", Route("502", "1", 5))


async def test_a_server_without_the_port_or_an_address_is_left_out() -> None:
    peers = Peers(Dialed())
    peers.apply("entity", added(instance(ports={"ws": 1})))
    peers.apply("entity", added(instance("502", private_ip="")))
    assert len(peers) == 0


async def test_a_new_life_replaces_the_old_one_in_whatever_order_they_are_told_of() -> None:
    peers = Peers(Dialed())
    old, new = instance(), instance(life="2")
    peers.apply("entity", added(old))
    peers.apply("entity", added(new))
    peers.apply("entity", removed(old))
    assert peers.knows("entity", Route("501", "2", 5))
    peers.apply("entity", removed(new))
    assert len(peers) == 0


async def test_a_snapshot_is_all_there_is_of_its_type() -> None:
    appeared: list[int] = []
    peers = Peers(Dialed(), lambda: appeared.append(1))
    peers.apply("entity", added(instance()))
    peers.apply("pets", added(instance("901")))
    peers.apply("entity", Change("snapshot", 1, "1", instances=[instance("502")]))
    assert [peers.knows("entity", Route(one, "1", 0)) for one in ("501", "502")] == [False, True]
    assert peers.knows("pets", Route("901", "1", 0))
    assert len(appeared) == 3


async def test_what_was_dialed_is_closed_in_the_end() -> None:
    dialed = Dialed()
    peers = Peers(dialed)
    for one in ("501", "502"):
        peers.apply("entity", added(instance(one)))
        peers.find("entity", Route(one, "1", 0))
    peers.apply("entity", removed(instance("501")))
    await asyncio.sleep(0)
    await peers.close()
    assert [line.is_closed for line in dialed.lines] == [True, True]


async def test_everybody_who_is_logged_in_there_hears_of_a_lost_connection() -> None:
    class Member:
        losses = 0

        def lost(self) -> None:
            self.losses += 1

    member, server = Member(), Server("entity", "501", "1", ("h", 1))
    server.members.add(member)
    server.lost("cut")
    assert member.losses == 1


def test_routes_follow_the_feed_and_never_go_back() -> None:
    routes = Routes()
    routes.changed("entity", "ann", Route("501", "1", 5))
    assert routes.get("entity", "ann") is None, "nobody asked for it"
    routes.keep("entity", "ann", Route("501", "1", 5))
    routes.changed("entity", "ann", Route("502", "1", 4))
    routes.keep("entity", "ann", Route("503", "1", 3))
    assert routes.get("entity", "ann") == Route("501", "1", 5)
    routes.changed("entity", "ann", Route("502", "1", 6))
    assert routes.get("entity", "ann") == Route("502", "1", 6)
    routes.forget("entity", "ann", Route("501", "1", 5))
    assert len(routes) == 1, "that one is not known any more"
    routes.changed("entity", "ann", Route("", "", 6))
    assert len(routes) == 0


def test_only_so_many_routes_are_kept_and_the_least_used_goes() -> None:
    routes = Routes(most=2)
    for user in ("ann", "bob"):
        routes.keep("entity", user, Route("501", "1", 1))
    routes.get("entity", "ann")
    routes.keep("entity", "cat", Route("501", "1", 1))
    assert [routes.get("entity", user) is not None for user in ("ann", "bob", "cat")] == [True, False, True]
