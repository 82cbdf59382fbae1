"""Lists that many ask for, read from the store once.

A list is served from memory for at most a second, and only while the feed proves that nothing was
added, changed or removed since it was read: what a second can hide is the time of the last beat.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from roost.api.discovery import InstanceList
from roost.discovery.service import Discovery

MAX_AGE_S = 1.0
MAX_LISTS = 256

_Wanted = tuple[str, str, tuple[str, ...]]


class ListCache:
    """Encoded lists by what was asked for. While nobody follows the feed it reads through."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._kept: dict[_Wanted, tuple[float, int, bytes]] = {}
        self._encode = msgspec.json.Encoder().encode

    async def encoded(self, type_: str, group: str, labels: Sequence[str]) -> bytes:
        wanted = (type_, group, tuple(labels))
        kept = self._kept.get(wanted)
        head = self._discovery.feed.seen
        if kept is not None and head is not None:
            until, revision, body = kept
            if head.rev <= revision and time.monotonic() < until:
                return body
        found = await self._discovery.discover(type_, group, labels)
        return self._keep(wanted, found)

    def forget(self) -> None:
        """After a write of our own, which its writer expects to see."""
        self._kept.clear()

    def _keep(self, wanted: _Wanted, found: InstanceList) -> bytes:
        body = self._encode(found)
        if len(self._kept) >= MAX_LISTS:
            self._kept.clear()
        self._kept[wanted] = (time.monotonic() + MAX_AGE_S, found.revision, body)
        return body
