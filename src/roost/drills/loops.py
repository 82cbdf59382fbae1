"""What the metrics pages and the logs say of failed loops, held against each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from roost.api import Message

FAILURES = "roost_loop_failures_total"
Where = tuple[str, int, str]
"""Process, which life of it, loop."""


class LoopView(Message):
    process: str
    loop: str
    failures: int


class LoopBook:
    """Failed turns, as each process counted them when it was last asked."""

    def __init__(self) -> None:
        self.now: dict[Where, int] = {}
        self.unread: set[str] = set()
        """Processes that could not be asked, though they should run."""

    @property
    def total(self) -> int:
        return sum(self.now.values())

    def read(self, process: str, life: int, page: str) -> None:
        """Take over what a metrics page says; `ValueError` if it says nothing of loops."""
        found = {
            (process, life, sample.labels["loop"]): int(sample.value)
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == FAILURES
        }
        if not found:
            raise ValueError("the page counts no loop")
        self.now |= found

    def rising_since(self, before: Mapping[Where, int]) -> list[Where]:
        return [where for where, count in self.now.items() if count > before.get(where, count)]

    def views(self) -> list[LoopView]:
        """Those that failed, by process and loop, over all lives."""
        sums: dict[tuple[str, str], int] = {}
        for (process, _, loop), count in self.now.items():
            sums[(process, loop)] = sums.get((process, loop), 0) + count
        return [LoopView(process, loop, count) for (process, loop), count in sorted(sums.items()) if count]

    def uncounted(self, logs: Mapping[str, Path]) -> list[str]:
        """Loops that a log says failed and no counter does."""
        counted = {(process, loop) for (process, _, loop), count in self.now.items() if count}
        return sorted(
            {
                f"{process} {loop}"
                for process, log in logs.items()
                for loop in failed_in(log.read_text(encoding="utf-8", errors="replace"))
                if (process, loop) not in counted
            }
        )


def failed_in(log: str) -> Iterator[str]:
    """The loop of every line that tells of a failed turn."""
    for line in log.splitlines():
        if '"loop failed"' in line:
            try:
                yield str(json.loads(line)["loop"])
            except (ValueError, KeyError):  # cut off by a kill
                continue
