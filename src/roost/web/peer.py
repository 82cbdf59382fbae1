"""Who is really asking, where trusted load balancers stand in between."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from roost.core.networks import Network
from roost.web.plain import Asked


def client_ip(http: Asked, trusted: Sequence[Network]) -> str:
    """The nearest address in the chain that is not one of our own proxies."""
    peer = http.remote or ""
    if not trusted:
        return peer
    forwarded = ",".join(http.headers.getall("X-Forwarded-For", ()))  # some proxies add a line of their own
    chain = [_bare(part.strip()) for part in forwarded.split(",") if part.strip()]
    while chain and is_trusted(peer, trusted):
        peer = chain.pop()
    return peer if _parsed(peer) is not None else ""


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    ip = _parsed(address)
    return ip is not None and any(ip in network for network in trusted)


def _bare(address: str) -> str:
    """Without the port that some load balancers add: `203.0.113.9:4711`, `[2001:db8::1]:4711`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
