"""Where a role listens that has nothing but its ops pages: `ROOST_MANAGER__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    host: str = setting("127.0.0.1", "Address for its health and metrics. Profile dev allows loopback only.")
    port: int = setting(9400, "Port for its health and metrics.", most=65535)

    def faults(self) -> list[str]:
        return check_fields(self)
