"""What a feed carries, and the rule by which a reader knows that it missed nothing.

Every entry carries `rev` (dense, from 1), `at` (µs, strictly growing within one history) and
`prev_at`, the `at` of the entry before it. Two histories that forked in a failover reuse revision
numbers but not times, so (rev, at) names a point in one history, and a chain of `prev_at` proves
that nothing lies between two entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    """A point in the history of a scope. (0, 0) is before its first entry."""

    rev: int
    at: int


START = Mark(0, 0)


class Entry:
    """One change, as the script that made it wrote it. Nobody changes it."""

    __slots__ = ("_fields", "_flat", "at", "prev_at", "rev")

    def __init__(
        self,
        rev: int,
        at: int,
        prev_at: int,
        fields: Mapping[str, str] | None = None,
        flat: Sequence[bytes] = (),
    ) -> None:
        """`flat`: names and values by turns, in place of the fields."""
        self.rev = rev
        self.at = at
        self.prev_at = prev_at
        self._fields = fields
        self._flat = flat

    @property
    def fields(self) -> Mapping[str, str]:
        """Decoded when somebody asks: a follower passes on many that nobody reads."""
        fields = self._fields
        if fields is None:
            texts = map(bytes.decode, self._flat)
            fields = self._fields = dict(zip(texts, texts, strict=True))
            self._flat = ()
        return fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Entry({}, {}, {}, {!r})".format(*self._all)

    @property
    def _all(self) -> tuple[int, int, int, Mapping[str, str]]:
        return self.rev, self.at, self.prev_at, self.fields

    @property
    def mark(self) -> Mark:
        return Mark(self.rev, self.at)


@dataclass(frozen=True, slots=True)
class Gap:
    """Continuity with `after` cannot be proved: take a new snapshot."""

    after: Mark


def news(after: Mark, found: Sequence[Entry]) -> Sequence[Entry] | Gap:
    """The entries that follow `after`, or `Gap`.

    `found` is what the store holds from `after.rev` on, the entry at `after` included where it is
    still there. Meeting that entry again proves that the history did not fork; if it was trimmed,
    the next entry's `prev_at` proves the same. An empty answer to a reader who has seen something
    means that the history is gone.
    """
    if not found:
        return found if after == START else Gap(after)
    fresh = found[1:] if found[0].mark == after else found
    rev, at = after
    for entry in fresh:
        if entry.rev != rev + 1 or entry.prev_at != at:
            return Gap(after)
        rev, at = entry.rev, entry.at
    return fresh
