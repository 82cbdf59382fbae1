"""From the bytes of a query to those of its answer. No I/O; whatever the bytes are, nothing is raised."""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Iterable

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
from dns.rdataclass import IN
from dns.rdatatype import AAAA, SOA, SRV, A

from roost.servers.dns.names import SERVER, Asked, Service, parse_labels
from roost.servers.dns.zone import Server, Zone

log = logging.getLogger("roost.dns")

PLAIN_UDP_BYTES = 512
MOST_UDP_BYTES = 1232
"""What crosses every network unfragmented (DNS flag day 2020); more goes over TCP."""
MOST_TCP_BYTES = 65535
HEADER_BYTES = 12
RECORD_BYTES = 12
"""Of a record beside its data; its name is the question's, which two bytes point to."""
IS_RESPONSE = 0x80
_PRIORITY_WEIGHT_PORT = struct.Struct(">HHH")
REFUSED_TYPES = frozenset({dns.rdatatype.ANY, dns.rdatatype.AXFR, dns.rdatatype.IXFR})


class Answerer:
    """`answers` counts by response code; `dropped` are packets that deserve none, `truncated` those sent to
    TCP."""

    def __init__(self, zone: Zone, name: str, ttl_s: int) -> None:
        self.answers: Counter[str] = Counter()
        self.dropped = 0
        self.truncated = 0
        self._zone = zone
        self._origin = dns.name.from_text(name)
        self._ttl_s = ttl_s
        self._soa = dns.rdata.from_text(IN, SOA, f"ns.{name}. hostmaster.{name}. 1 3600 600 86400 {ttl_s}")

    def answer(self, packet: bytes, *, over_tcp: bool = False) -> bytes | None:
        """None: what came is no query, or too short to be answered."""
        if len(packet) < HEADER_BYTES or packet[2] & IS_RESPONSE:
            self.dropped += 1
            return None
        try:
            wire = self._answered(packet, over_tcp)
        except Exception:  # our fault, not the packet's: it is told apart, and the next one is answered
            log.exception("a query was not answered")
            self.answers["SERVFAIL"] += 1
            wire = _bare(packet, dns.rcode.SERVFAIL)
        return wire

    def _answered(self, packet: bytes, over_tcp: bool) -> bytes:
        try:
            query = dns.message.from_wire(packet, ignore_trailing=False)
        except (dns.exception.DNSException, ValueError, IndexError, AssertionError):
            self.answers["FORMERR"] += 1
            return _bare(packet, dns.rcode.FORMERR)
        refusal = self._refusal(query)
        if refusal == dns.rcode.FORMERR:
            self.answers["FORMERR"] += 1
            return _bare(packet, dns.rcode.FORMERR)
        reply = dns.message.make_response(query, our_payload=MOST_UDP_BYTES)
        room = MOST_TCP_BYTES if over_tcp else _room(query)
        if refusal is None:
            self._fill(reply, query, room)
        else:
            reply.set_rcode(refusal)
        self.answers[dns.rcode.to_text(reply.rcode())] += 1
        return self._wire(reply, room)

    def _refusal(self, query: dns.message.Message) -> dns.rcode.Rcode | None:
        if query.opcode() != dns.opcode.QUERY:
            return dns.rcode.NOTIMP
        if query.edns > 0:
            return dns.rcode.BADVERS
        if len(query.question) != 1 or query.answer or query.authority:
            return dns.rcode.FORMERR
        question = query.question[0]
        if question.rdtype in REFUSED_TYPES:
            return dns.rcode.NOTIMP
        if question.rdclass != IN or not question.name.is_subdomain(self._origin):
            return dns.rcode.REFUSED
        return None if self._zone.known else dns.rcode.SERVFAIL

    def _fill(self, reply: dns.message.Message, query: dns.message.Message, room: int) -> None:
        question = query.question[0]
        reply.flags |= dns.flags.AA
        asked = self._asked(question.name)
        if asked is None or not self._zone.exists(asked):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif question.name == self._origin and question.rdtype == SOA:
            reply.answer.append(_rrset(question.name, self._ttl_s, [self._soa]))
        else:
            self._add(reply, question.name, question.rdtype, asked, room)
        if not reply.answer:  # how long "nothing" may be kept
            reply.authority.append(_rrset(self._origin, self._ttl_s, [self._soa]))

    def _add(
        self,
        reply: dns.message.Message,
        name: dns.name.Name,
        kind: dns.rdatatype.RdataType,
        asked: Asked,
        room: int,
    ) -> None:
        if kind in (A, AAAA) and not (isinstance(asked, Service) and asked.port):
            servers = self._zone.servers(asked, lambda server: _kind_of(server) == kind)
            if servers:
                reply.answer.append(_rrset(name, self._ttl_s, map(_address, servers)))
        elif kind == SRV and isinstance(asked, Service):
            self._add_ports(reply, name, asked, room)

    def _add_ports(self, reply: dns.message.Message, name: dns.name.Name, asked: Service, room: int) -> None:
        """As many of those drawn as there is room for: an answer is a draw anyhow, and TCP is slow."""
        left = room - len(reply.to_wire())
        found, beside = list[dns.rdata.Rdata](), list[dns.rrset.RRset]()
        for server in self._zone.servers(asked, lambda server: bool(server.port(asked.port))):
            target = self._target(server)
            wire = _srv(server, server.port(asked.port) or 0, target)
            left -= RECORD_BYTES + len(wire)
            if left < 0 and found:
                break
            found.append(_rdata(SRV, wire))
            beside.append(_rrset(target, self._ttl_s, [_address(server)]))
        if found:
            reply.answer.append(_rrset(name, self._ttl_s, found))
            reply.additional += beside

    def _wire(self, reply: dns.message.Message, room: int) -> bytes:
        """As much as there is room for: first without the addresses beside, then only that TCP has more."""
        try:
            return reply.to_wire(max_size=room)
        except dns.exception.TooBig:
            reply.additional.clear()
        try:
            return reply.to_wire(max_size=room)
        except dns.exception.TooBig:
            self._truncate(reply)
        return reply.to_wire(max_size=room)

    def _truncate(self, reply: dns.message.Message) -> None:
        self.truncated += 1
        reply.answer.clear()
        reply.authority.clear()
        reply.flags |= dns.flags.TC

    def _asked(self, name: dns.name.Name) -> Asked | None:
        labels = name.relativize(self._origin).labels
        try:
            return parse_labels([label.decode("ascii") for label in labels])
        except UnicodeDecodeError:
            return None

    def _target(self, server: Server) -> dns.name.Name:
        return self._below(server.label, server.type, SERVER)

    def _below(self, *labels: str) -> dns.name.Name:
        return dns.name.Name(tuple(label.encode() for label in labels)).concatenate(self._origin)


def _room(query: dns.message.Message) -> int:
    if query.edns < 0:
        return PLAIN_UDP_BYTES
    return max(PLAIN_UDP_BYTES, min(query.payload, MOST_UDP_BYTES))


def _kind_of(server: Server) -> dns.rdatatype.RdataType:
    return A if server.address.version == 4 else AAAA


def _address(server: Server) -> dns.rdata.Rdata:
    return _rdata(_kind_of(server), server.address.packed)


def _srv(server: Server, port: int, target: dns.name.Name) -> bytes:
    return _PRIORITY_WEIGHT_PORT.pack(0, server.weight, port) + target.to_digestable()


def _rdata(kind: dns.rdatatype.RdataType, wire: bytes) -> dns.rdata.Rdata:
    return dns.rdata.from_wire(IN, kind, wire, 0, len(wire))


def _rrset(name: dns.name.Name, ttl_s: int, found: Iterable[dns.rdata.Rdata]) -> dns.rrset.RRset:
    return dns.rrset.from_rdata_list(name, ttl_s, list(found))


def _bare(packet: bytes, code: dns.rcode.Rcode) -> bytes:
    """A header alone, for what could not be read: its id, its opcode, and the code."""
    flags = IS_RESPONSE | (packet[2] & 0x79)
    return packet[:2] + bytes((flags, int(code))) + bytes(8)
