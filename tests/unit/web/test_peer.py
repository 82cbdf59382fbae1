"""Who is asking, where load balancers of ours stand in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from multidict import CIMultiDict

from roost.core.networks import parse_networks
from roost.web.peer import client_ip
from roost.web.plain import Asked

OURS = parse_networks("10.0.0.0/8,fd00::/8")


def seen(forwarded: str, remote: str = "10.0.0.1") -> str:
    headers = CIMultiDict({"X-Forwarded-For": forwarded})
    return client_ip(cast(Asked, SimpleNamespace(remote=remote, headers=headers)), OURS)


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.7, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("203.0.113.9:4711, 10.0.0.2:80", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("nonsense", ""),
        ("", "10.0.0.1"),
    ],
)
def test_the_nearest_address_that_is_not_ours_counts_with_or_without_a_port(
    forwarded: str, client: str
) -> None:
    assert seen(forwarded) == client


def test_who_is_no_proxy_of_ours_is_who_asks() -> None:
    assert seen("203.0.113.9", remote="198.51.100.7") == "198.51.100.7"
