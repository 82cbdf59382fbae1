"""The settings of discovery: `ROOST_DISCOVERY__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.ids import check_id
from roost.core.setting import check_fields, checked, setting


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    key_prefix: str = setting(
        "service:",
        "Stands before the keys of discovery, after the namespace. Every gateway, manager and Redis-direct "
        "client of one fleet needs the same: one with another prefix sees another fleet.",
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "key_prefix", check_id, self.key_prefix, "it")
        return faults
