"""The settings of an order server: `ROOST_ORDERS__…`; `ROOST_LANES__…` holds for all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from roost.core.setting import check_fields, setting

SHARDS = 16

_PART = re.compile(r"([0-9]{1,2})(?:-([0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class OrdersSettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8440, "Port for traders; its metrics are on the port 1000 above.", most=64535)
    shards: str = setting(
        "auto",
        "Shards that it may own: auto (its even share among the order servers that discovery shows), or a "
        "list such as 0-7,12.",
    )
    symbols: str = setting(
        "",
        "Symbols that are traded, a comma list; for others only cancels are taken. Empty: any symbol is.",
    )
    clock: str = setting(
        "checked",
        "Order ids are numbered by the store's clock. checked: no start where it is more than an hour from "
        "this host's, since ids of a clock that is ahead cannot be taken back; store: no comparison, for a "
        "start on a host whose own clock is the wrong one.",
        choices=("checked", "store"),
    )
    stop_ms: int = setting(10_000, "How long a clean stop may take to hand everything over.")

    def faults(self) -> list[str]:
        faults = check_fields(self)
        if self.shards != "auto" and not parse_shards(self.shards):
            faults.append(
                f"shards is {self.shards!r}, must be auto or a list such as 0-7,12 of 0 to {SHARDS - 1}"
            )
        return faults

    def traded(self) -> frozenset[str]:
        """The symbols that are traded; empty: all are."""
        return frozenset(symbol.strip().upper() for symbol in self.symbols.split(",") if symbol.strip())


def parse_shards(text: str) -> frozenset[int]:
    """The shards of a list such as 0-7,12; empty if it is none."""
    found: set[int] = set()
    for part in text.split(","):
        numbers = _PART.fullmatch(part.strip())
        first, last = (int(numbers[1]), int(numbers[2] or numbers[1])) if numbers else (SHARDS, SHARDS)
        if not first <= last < SHARDS:
            return frozenset()
        found.update(range(first, last + 1))
    return frozenset(found)
