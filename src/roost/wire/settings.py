"""The settings of calls between servers: `ROOST_WIRE__…`. The secret is `ROOST_WIRE_SECRET`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting
from roost.wire.limits import Limits


@dataclass(frozen=True, slots=True)
class WireSettings:
    max_frame_bytes: int = setting(
        1_048_576,
        "Largest frame, which bounds a message and its answer. In bytes. A larger one is refused by its "
        "first four bytes. Both sides tell theirs; the smaller holds.",
        least=1024,
        most=1 << 30,
    )
    max_in_flight: int = setting(
        1024,
        "Calls at work at once for one connection. A client keeps more than that waiting on its side.",
    )
    max_in_flight_total: int = setting(
        16_384,
        "Calls at work at once in one server; more are refused with OVERLOADED. Each costs about 2 kB.",
    )
    max_waiting: int = setting(
        8192, "Calls to one server that may wait for a connection or for room; more are refused at once."
    )
    max_connections: int = setting(4096, "Connections that one server accepts.")
    max_unsent_bytes: int = setting(
        8_388_608, "Bytes that a peer may leave unread before its connection is cut. In bytes.", least=65_536
    )
    slow_reader_ms: int = setting(
        10_000, "How long a peer may read nothing while there is something to read. In milliseconds."
    )
    handshake_ms: int = setting(
        5000, "How long connecting and proving the secret may take. In milliseconds.", least=10
    )
    wait_ms: int = setting(
        2000,
        "How long a call waits for a server that is away, if its own budget allows that much. In "
        "milliseconds.",
        least=0,
    )
    ping_ms: int = setting(
        5000, "A client asks a silent server for a sign of life so often. In milliseconds."
    )
    silence_ms: int = setting(
        20_000,
        "A peer without a sign of life for so long is taken for gone. In milliseconds; at least three pings.",
    )
    tls_cert: str = setting(
        "",
        "File with this server's certificate (PEM). With it connections are encrypted. Empty: they are not.",
    )
    tls_key: str = setting("", "File with the key of the certificate (PEM).")
    tls_ca: str = setting(
        "",
        "File with the authority that signed the servers' certificates (PEM): clients then insist on TLS. "
        "The names in them are not checked, because servers are found by address; the secret proves who "
        "they are.",
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        if self.silence_ms < 3 * self.ping_ms:
            faults.append(f"silence_ms is {self.silence_ms}, must be at least three times ping_ms")
        if bool(self.tls_cert) != bool(self.tls_key):
            faults.append("tls_cert and tls_key belong together")
        return faults

    def limits(self) -> Limits:
        return Limits(
            max_frame_bytes=self.max_frame_bytes,
            max_in_flight=self.max_in_flight,
            max_in_flight_total=self.max_in_flight_total,
            max_waiting=self.max_waiting,
            max_connections=self.max_connections,
            max_unsent_bytes=self.max_unsent_bytes,
            slow_reader_s=self.slow_reader_ms / 1000,
            handshake_s=self.handshake_ms / 1000,
            wait_s=self.wait_ms / 1000,
            ping_s=self.ping_ms / 1000,
            silence_s=self.silence_ms / 1000,
        )
