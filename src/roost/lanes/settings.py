"""The settings of lanes: `ROOST_LANES__…`, the section `[lanes]` of the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from roost.core.lease import MIN_TTL_MS
from roost.core.setting import check_fields, setting

DURABILITIES = ("memory", "everysec", "fsync", "replica")
SELECTORS = ("mixed", "ring_v1")


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """Every process of one Roost needs the same selector; the rest is each order server's own."""

    selector: str = setting(
        "mixed",
        "How a symbol without a pin finds its shard and lane: mixed (even), or ring_v1, the ring of document "
        "004. Changing it sends live symbols elsewhere: only while there are no orders.",
        choices=SELECTORS,
    )
    workers: int = setting(
        4,
        "Sub-workers of a shard; lane % workers is the one that serves a lane. They help handlers that wait; "
        "the order of a symbol never depends on it.",
        most=64,
    )
    queue_limit: int = setting(
        65_536,
        "Commands that may wait for one sub-worker. Beyond nine tenths of it only cancels are taken.",
        least=10,
        most=1_000_000,
    )
    max_wait_ms: int = setting(
        250,
        "New orders are refused while the oldest command of their sub-worker has waited for longer. In "
        "milliseconds; 0: never.",
        least=0,
        most=60_000,
    )
    failures_to_halt: int = setting(
        5, "Commands of one symbol that fail in a row before the symbol is halted. 0: never.", least=0
    )
    durability: str = setting(
        "everysec",
        "What an accepted command has survived when it is answered: memory (the store has it), everysec (its "
        "append-only file), fsync (its disk; Redis or Valkey 7.2), replica (a replica has it too). A level "
        "that the store cannot give is refused at start.",
        choices=DURABILITIES,
    )
    lease_ms: int = setting(
        6000,
        "How long an order server owns its shards without renewing. A dead one's symbols wait for so long.",
        least=MIN_TTL_MS,
        most=600_000,
    )
    snapshot_commands: int = setting(
        20_000, "Commands of a shard after which its state is written, so that the log can be cut.", least=100
    )
    index_seconds: int = setting(
        604_800, "How long the index in the store knows an order. In seconds.", most=31_536_000
    )
    launched: str = setting(
        "2025-11-02",
        "The day since which orders have been numbered here. An id of an earlier day is somebody else's.",
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        if not _is_day(self.launched):
            faults.append(f"launched is {self.launched!r}, must be a day such as 2026-11-18")
        return faults


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
