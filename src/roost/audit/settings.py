"""The settings of the audit log: `ROOST_AUDIT__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting


@dataclass(frozen=True, slots=True)
class AuditSettings:
    keep: int = setting(
        10_000,
        "Acts of operators that the store keeps; the oldest go first. One takes 600 bytes, 5 kB at most. "
        "`roost audit --export` writes them out before they go.",
        least=100,
        most=1_000_000,
    )

    def faults(self) -> list[str]:
        return check_fields(self)
