"""The settings of `roost dns`: `ROOST_DNS__…`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from roost.core.setting import check_fields, setting

_ZONE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,7}")


@dataclass(frozen=True, slots=True)
class DnsSettings:
    host: str = setting("127.0.0.1", "Address to listen on, UDP and TCP. Profile dev allows loopback only.")
    port: int = setting(8453, "Port to listen on; health and metrics are on the port 1000 above.", most=64535)
    zone: str = setting("roost", "Zone that it answers for: game.roost, kr-1.game.roost. In small letters.")
    ttl_seconds: int = setting(
        2,
        "How long a resolver may keep an answer, and so how long it may still name a server that has stopped "
        "accepting. In seconds.",
        most=5,
    )
    address: str = setting(
        "private",
        "Which address of a server is told; the other one where it has only that.",
        choices=("private", "public"),
    )
    answers: int = setting(
        48,
        "Records in an answer. Of more servers so many are drawn anew for every query. 48 addresses fit into "
        "one UDP answer; of ports (SRV) over UDP only as many are drawn as fit.",
        most=512,
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        if not _ZONE.fullmatch(self.zone):
            faults.append(f"zone is {self.zone!r}, must be one to eight labels such as roost or live.example")
        return faults
