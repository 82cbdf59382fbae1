"""What was read from the newest entries of the feed: several watchers of one process share the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from roost.core.events import Entry

MAX_KEPT = 1024

Read = TypeVar("Read")


class Decoded(Generic[Read]):
    """Reads each entry once. Those who share what was read must not change it."""

    def __init__(self, read: Callable[[Entry], Read]) -> None:
        self._read = read
        self._kept: dict[int, tuple[Entry, Read]] = {}
        """By revision; the entry too, because a forked history uses a revision twice."""

    def of(self, entry: Entry) -> Read:
        kept = self._kept.get(entry.rev)
        if kept is not None and kept[0] is entry:
            return kept[1]
        if len(self._kept) >= MAX_KEPT:
            self._kept = {}
        found = self._read(entry)
        self._kept[entry.rev] = (entry, found)
        return found
