"""Addresses: which networks are meant, what counts as one source, where players may be sent."""

from __future__ import annotations

import ipaddress
import re

from roost.core.errors import InvalidInput

MAX_URL = 255
_PLAYERS_URL = re.compile(rf"(?=.{{1,{MAX_URL}}}$)(wss?|https?)://[^\x00-\x20\x7f/?#][^\x00-\x20\x7f]*")

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


def check_players_url(url: str) -> str:
    """Return a URL at which players connect, or the empty one; nothing that a browser would run or open."""
    if url and not _PLAYERS_URL.fullmatch(url):
        raise InvalidInput(
            f"url {url[:40]!r} is no address for players",
            hint=f"ws://, wss://, http:// or https://, at most {MAX_URL} characters, no spaces; or empty",
        )
    return url


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
