"""Addresses: which networks are meant, what counts as one source, what only this machine can reach."""

from __future__ import annotations

import ipaddress

from roost.core.errors import InvalidInput

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks in a comma-separated list."""
    try:
        return tuple(
            ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()
        )
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def network_of(address: str) -> str:
    """What counts as one source: an IPv4 address, or the /64 that one customer of a provider has."""
    if ":" not in address:
        return address
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip) >> 64 << 64, 64)))


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
