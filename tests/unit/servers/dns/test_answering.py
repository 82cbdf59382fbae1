"""Bytes in, bytes out: whatever comes, an answer of DNS or none, and never an exception."""

from __future__ import annotations

import logging
import random

import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.servers.dns.answering import HEADER_BYTES, IS_RESPONSE, MOST_UDP_BYTES, PLAIN_UDP_BYTES, Answerer
from roost.servers.dns.zone import Zone
from tests.unit.servers.dns.test_zone import instance, snapshot


def answerer(count: int = 2, most: int = 512) -> Answerer:
    zone = Zone(most=most)
    zone.apply(snapshot(*(instance(str(n), ip=f"10.0.{n // 200}.{n % 200 + 1}") for n in range(count))))
    return Answerer(zone, "roost", ttl_s=2)


def ask(
    server: Answerer, name: str, kind: str = "A", *, tcp: bool = False, payload: int | None = None
) -> dns.message.Message:
    query = dns.message.make_query(name, kind, use_edns=payload is not None, payload=payload or 0)
    wire = server.answer(query.to_wire(), over_tcp=tcp)
    assert wire is not None
    reply = dns.message.from_wire(wire)
    assert query.is_response(reply)
    return reply


def test_addresses_and_ports_are_told_with_a_short_ttl() -> None:
    server = answerer()

    addresses, ports = ask(server, "kr-1.game.roost."), ask(server, "_ws._tcp.game.roost.", "SRV")

    assert {rdata.to_text() for rdata in addresses.answer[0]} == {"10.0.0.1", "10.0.0.2"}
    assert addresses.answer[0].ttl == 2
    assert {rdata.to_text() for rdata in ports.answer[0]} == {
        "0 100 8000 0.game.server.roost.",
        "0 100 8000 1.game.server.roost.",
    }
    assert len(ports.additional) == 2, "their addresses come along"
    assert addresses.flags & dns.flags.AA


def test_nothing_there_is_told_apart_from_nobody_accepting() -> None:
    server = answerer(0)
    assert ask(server, "game.roost.").rcode() == dns.rcode.NXDOMAIN
    zone = Zone()
    zone.apply(snapshot(instance("501", accepting=False)))

    reply = ask(Answerer(zone, "roost", 2), "game.roost.")

    assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, [])
    assert reply.authority[0].ttl == 2, "so long may nothing be kept"


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("example.com.", "A", dns.rcode.REFUSED),
        ("game.roost.", "ANY", dns.rcode.NOTIMP),
        ("roost.", "AXFR", dns.rcode.NOTIMP),
        ("roost.", "SOA", dns.rcode.NOERROR),
        ("game.roost.", "TXT", dns.rcode.NOERROR),
        ("game.roost.", "AAAA", dns.rcode.NOERROR),
        ("a.b.c.d.roost.", "A", dns.rcode.NXDOMAIN),
        ("0.game.server.roost.", "A", dns.rcode.NOERROR),
    ],
)
def test_what_is_not_served_is_refused_by_the_code_that_dns_has_for_it(
    name: str, kind: str, code: dns.rcode.Rcode
) -> None:
    assert ask(answerer(), name, kind).rcode() == code


def test_before_discovery_was_heard_nobody_is_told_that_there_is_nothing() -> None:
    assert ask(Answerer(Zone(), "roost", 2), "game.roost.").rcode() == dns.rcode.SERVFAIL


def test_what_does_not_fit_into_a_packet_is_left_to_tcp() -> None:
    server = answerer(48)
    plain, large = ask(server, "game.roost."), ask(server, "game.roost.", payload=4096)
    whole = ask(server, "game.roost.", tcp=True)

    assert plain.flags & dns.flags.TC
    assert not plain.answer
    assert len(large.answer[0]) == 48, "48 addresses fit where the asker takes more than 512 bytes"
    assert len(whole.answer[0]) == 48
    assert server.truncated == 1


def test_no_packet_is_larger_than_networks_carry_whatever_the_asker_says() -> None:
    server = answerer(400)
    query = dns.message.make_query("game.roost.", "A", use_edns=True, payload=65535)

    wire = server.answer(query.to_wire())

    assert wire is not None
    assert len(wire) <= MOST_UDP_BYTES


def test_an_srv_answer_drops_the_addresses_beside_it_before_it_goes_to_tcp() -> None:
    reply = ask(answerer(25), "_ws._tcp.game.roost.", "SRV", payload=1232)

    assert len(reply.answer[0]) == 25
    assert not reply.additional


def mixed_fleet() -> Answerer:
    """400 servers, of which ten have a port `admin` and ten others an IPv6 address."""
    servers = [instance(str(n)) for n in range(400)]
    for server in servers[:10]:
        server.ports["admin"] = 7000
    for number, server in enumerate(servers[10:20]):
        server.private_ip = f"fd00::{number + 1}"
    zone = Zone(rng=random.Random(1))
    zone.apply(snapshot(*servers))
    return Answerer(zone, "roost", ttl_s=2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("_admin._tcp.game.roost.", "SRV"), ("game.roost.", "AAAA"), ("kr-1.game.roost.", "AAAA")],
)
def test_the_few_that_fit_the_question_are_found_among_many_that_do_not(name: str, kind: str) -> None:
    server = mixed_fleet()

    for _ in range(20):
        assert len(ask(server, name, kind).answer[0]) == 10


@pytest.mark.parametrize("payload", [None, 4096])
def test_of_many_servers_as_many_ports_are_drawn_as_fit_into_one_packet(payload: int | None) -> None:
    server = answerer(60, most=48)

    told = [ask(server, "_ws._tcp.game.roost.", "SRV", payload=payload) for _ in range(100)]
    over_tcp = ask(server, "_ws._tcp.game.roost.", "SRV", tcp=True)

    room = MOST_UDP_BYTES if payload else PLAIN_UDP_BYTES
    assert all(room - 60 < len(reply.to_wire()) <= room for reply in told)
    assert len({rdata for reply in told for rdata in reply.answer[0]}) == 60, "in time all of them"
    assert len(over_tcp.answer[0]) == 48
    assert server.truncated == 0


def test_names_so_long_that_not_one_port_fits_are_left_to_tcp() -> None:
    origin, one = ".".join(["z" * 52] * 3), instance("a.b", group="g" * 20)
    one.type = "t" * 50
    zone = Zone()
    zone.apply(snapshot(one))
    server, name = Answerer(zone, origin, ttl_s=2), f"_ws._tcp.{one.group}.{one.type}.{origin}."

    over_udp, over_tcp = ask(server, name, "SRV"), ask(server, name, "SRV", tcp=True)

    assert over_udp.flags & dns.flags.TC
    assert len(over_tcp.answer[0]) == 1


def test_a_newer_edns_and_another_opcode_are_told_that_we_do_not_know_them() -> None:
    newer = dns.message.make_query("game.roost.", "A", use_edns=1)
    update = dns.message.make_query("game.roost.", "A")
    update.set_opcode(dns.opcode.STATUS)
    server = answerer()

    codes = [
        dns.message.from_wire(server.answer(query.to_wire()) or b"").rcode() for query in (newer, update)
    ]

    assert codes == [dns.rcode.BADVERS, dns.rcode.NOTIMP]


def test_a_response_is_never_answered_so_that_two_servers_cannot_keep_each_other_busy() -> None:
    server = answerer()
    reply = server.answer(dns.message.make_query("game.roost.", "A").to_wire())
    assert reply is not None

    assert server.answer(reply) is None
    assert server.dropped == 1


QUERY = dns.message.make_query("_ws._tcp.kr-1.game.roost.", "SRV", use_edns=True).to_wire()
SERVER = answerer(5)


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=600),
        st.tuples(st.binary(min_size=12, max_size=12), st.just(QUERY[12:])).map(b"".join),
        st.tuples(st.integers(0, len(QUERY)), st.binary(max_size=8)).map(lambda at: QUERY[: at[0]] + at[1]),
    )
)
def test_no_bytes_raise_and_every_answer_is_one_of_dns(packet: bytes) -> None:
    errors = list[logging.LogRecord]()
    handler = logging.Handler()
    handler.emit = errors.append  # type: ignore[method-assign,assignment]
    logging.getLogger("roost.dns").addHandler(handler)
    try:
        wire = SERVER.answer(packet, over_tcp=random.random() < 0.5)
    finally:
        logging.getLogger("roost.dns").removeHandler(handler)

    assert not errors, "a traceback"
    if len(packet) < HEADER_BYTES or packet[2] & IS_RESPONSE:
        assert wire is None
    else:
        assert wire is not None
        assert dns.message.from_wire(wire).id == int.from_bytes(packet[:2], "big")
