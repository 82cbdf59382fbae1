"""What one connection, and one server, may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`wire/settings.py` says what each means to an operator."""

    max_frame_bytes: int = 1024 * 1024
    max_in_flight: int = 1024
    """Of one connection: calls at work (server), calls without a reply (client)."""
    max_in_flight_total: int = 16_384
    """Calls at work in one server."""
    max_waiting: int = 8192
    """Calls of a peer that wait for a connection, or for room in it."""
    max_connections: int = 4096
    max_unsent_bytes: int = 8 * 1024 * 1024
    """Bytes that a reader may leave unread before it is cut off."""
    slow_reader_s: float = 10.0
    """How long a reader may let its socket be full."""
    handshake_s: float = 5.0
    """From the socket to the end of the handshake; for a client, connecting included."""
    wait_s: float = 2.0
    """How long a call waits for a connection that is away, if its budget allows that much."""
    ping_s: float = 5.0
    """After so long a silence a client asks whether the server is there."""
    silence_s: float = 20.0
    """After so long a silence either side takes the other for gone; at least three pings."""
    backoff_s: float = 0.05
    backoff_cap_s: float = 2.0


DEFAULTS = Limits()
