"""The ports of drills: free, and out of the way of the clients' own connections."""

from __future__ import annotations

from pathlib import Path

from roost.drills.processes import OPS_PORT_ABOVE, free_port

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_outgoing_connection_can_take_a_port_before_its_server_starts() -> None:
    lowest = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32_768
    assert all(free_port(OPS_PORT_ABOVE) + OPS_PORT_ABOVE < lowest for _ in range(50))
    assert all(1024 < free_port() < lowest for _ in range(50))
