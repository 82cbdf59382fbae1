"""What is in the store and nobody can read: it is left out, counted and named, and harms nothing else."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal

log = logging.getLogger("roost.discovery")

NAME_AGAIN_S = 60.0
MAX_NAMED = 1000

Kind = Literal["record", "override", "entry"]


class Unreadable:
    """Every finding is counted; each name is in the log at most once a minute, however often it is read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[Kind] = Counter()
        self._clock = clock
        self._named_at: dict[tuple[Kind, str], float] = {}

    def note(self, kind: Kind, name: str, error: Exception) -> None:
        self.counts[kind] += 1
        now = self._clock()
        if now - self._named_at.get((kind, name), -NAME_AGAIN_S) < NAME_AGAIN_S:
            return
        if len(self._named_at) >= MAX_NAMED:
            self._named_at.clear()
        self._named_at[(kind, name)] = now
        log.error(f"unreadable {kind} left out", extra={"named": name, "reason": str(error)[:200]})
