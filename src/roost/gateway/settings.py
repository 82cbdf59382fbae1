"""The settings of a gateway: `ROOST_GATEWAY__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.networks import parse_networks
from roost.core.setting import check_fields, checked, setting


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8400, "Port to listen on.", most=65535)
    workers: int = setting(
        1,
        "Processes of `roost gateway` that share its port, one for each core that it may use. One supervisor "
        "starts them, and starts a dead one again. Of connections_per_address each has its share; limits per "
        "second hold in each worker: who has many connections gets up to so many times as much.",
        most=256,
    )
    trusted_proxies: str = setting(
        "",
        "Networks of load balancers whose X-Forwarded-For is believed: 10.0.0.0/8,192.168.1.7. Limits by "
        "address and the publicIp of a registration follow from it: name every proxy in front and nobody "
        "else, or players can say that they are somebody else.",
    )
    body_limit_bytes: int = setting(
        262_144,
        "Largest request body; a larger one is answered with 413 after a bounded part of it was read. In "
        "bytes.",
    )

    connections_per_address: int = setting(
        1000,
        "Connections that one address may hold, and streams that it may have open behind a trusted proxy, "
        "whose own connections are not counted. Of IPv6 a /64 counts as one address. Not applied in profile "
        "dev, where everybody is this machine; raise it for a load test from one machine.",
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "trusted_proxies", parse_networks, self.trusted_proxies)
        return faults
