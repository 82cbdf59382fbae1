"""What a DNS name below our zone asks for. Pure.

    game.roost                   servers of type game, of any group
    kr-1.game.roost              of group kr-1
    _ws._tcp.game.roost          SRV: their port named ws
    _ws._tcp.kr-1.game.roost     of group kr-1
    501.game.server.roost        one server, accepting or not: what an SRV record points to

Case does not count in DNS. A type, group or port whose name is no DNS label (it has a dot, say, or is longer
than 63 characters) cannot be asked for; a server whose name is none is called by a digest of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

SERVER = "server"
PROTOCOLS = frozenset({"_tcp", "_udp"})

_LABEL = re.compile(r"[a-z0-9_-]{1,63}")


@dataclass(frozen=True, slots=True)
class Service:
    """The servers of a type; `group` empty: of any. `port` empty: none was named."""

    type: str
    group: str = ""
    port: str = ""


@dataclass(frozen=True, slots=True)
class OneServer:
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Between:
    """A name that has names below it and nothing of its own: the zone itself, `_tcp.game`, `game.server`."""

    type: str = ""


Asked = Service | OneServer | Between


def parse_labels(labels: Sequence[str]) -> Asked | None:
    """What the labels before the zone ask for; None: there is no such name, and never will be."""
    match [label.lower() for label in labels]:
        case [] | ["server"]:
            return Between()
        case [type_, "server"]:
            return Between(type_)
        case [name, type_, "server"]:
            return OneServer(type_, name)
        case [protocol, *rest] if protocol in PROTOCOLS and 1 <= len(rest) <= 2:
            return Between(rest[-1])
        case [port, protocol, *rest] if port[:1] == "_" and protocol in PROTOCOLS and 1 <= len(rest) <= 2:
            return Service(rest[-1], rest[0] if len(rest) == 2 else "", port[1:])
        case [type_]:
            return Service(type_)
        case [group, type_]:
            return Service(type_, group)
        case _:
            return None


def label_of(name: str) -> str:
    """The name as DNS has it; empty: it cannot be one label."""
    small = name.lower()
    return small if _LABEL.fullmatch(small) else ""


def server_label(name: str) -> str:
    return label_of(name) or hashlib.sha256(name.encode()).hexdigest()[:32]
