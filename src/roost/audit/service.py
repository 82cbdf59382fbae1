"""The verbs of the audit log: writing an act down, looking for acts, reading all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Coroutine
from datetime import UTC, datetime
from typing import Any

from roost.api.audit import MAX_ENTRIES, AuditEntry, AuditPage
from roost.audit.metrics import AuditMetrics
from roost.audit.model import Deed, Wanted, entry_of
from roost.audit.scripts import AuditScripts
from roost.audit.settings import AuditSettings
from roost.audit.writing import AuditWriter
from roost.core.errors import InvalidInput
from roost.core.events import Entry
from roost.core.loops import Loops
from roost.store.feed import parse_entry
from roost.store.scopes import audit
from roost.store.store import Store

PAGE = 250
MOST_LOOKED_AT = 2000
"""Entries that one question looks through; `next` goes on from there."""


class AuditLog:
    """Every act of an operator, in the store."""

    def __init__(self, store: Store, settings: AuditSettings, *, loops: Loops | None = None) -> None:
        self.writer = AuditWriter(
            AuditScripts(store.library, store.keys), settings.keep, loops or store.loops
        )
        self.feed = store.feed(audit())
        self.metrics = AuditMetrics(self.writer)
        self._store = store
        self._key = store.keys.feed(audit())

    def loops(self, roles: Collection[str]) -> list[Coroutine[Any, Any, None]]:
        """None: the writer runs while something is to be written."""
        return []

    async def record(self, deed: Deed, *, wait: bool = True) -> None:
        """Write it down; never fails the act."""
        await self.writer.record(deed, wait=wait)

    async def entries(self, wanted: Wanted, limit: int, before: str = "") -> AuditPage:
        """Newest first. `next`, if it is not empty, is the `before` of the page after this one."""
        if not 1 <= limit <= MAX_ENTRIES:
            raise InvalidInput(f"limit is {limit}, must be 1 to {MAX_ENTRIES}")
        since_us = since_of(wanted.since)
        newest = _before(before)
        found: list[AuditEntry] = []
        for _ in range(MOST_LOOKED_AT // PAGE):
            page = await self._back_from(newest)
            for entry in page:
                if entry.at < since_us:
                    return AuditPage(found)
                if (shown := _readable(entry)) is not None and wanted.fits(shown):
                    found.append(shown)
                    if len(found) == limit:
                        return AuditPage(found, str(entry.rev) if entry.rev > 1 else "")
                newest = f"({entry.rev}-0"
            if len(page) < PAGE:
                return AuditPage(found)
        return AuditPage(found, newest[1:].partition("-")[0])

    async def export(self, wanted: Wanted) -> AsyncIterator[AuditEntry]:
        """All that fit, oldest first."""
        since_us, after = since_of(wanted.since), "-"
        page: list[Entry] | None = None
        while page is None or len(page) == PAGE:
            reply = await self._store.call(
                "XRANGE", self._key, after, "+", "COUNT", PAGE, key=self._key, idempotent=True, bulk=True
            )
            page = [parse_entry(raw) for raw in reply]
            for entry in page:
                after = f"({entry.rev}-0"
                shown = _readable(entry) if entry.at >= since_us else None
                if shown is not None and wanted.fits(shown):
                    yield shown

    async def _back_from(self, newest: str) -> list[Entry]:
        reply = await self._store.call(
            "XREVRANGE", self._key, newest, "-", "COUNT", PAGE, key=self._key, idempotent=True, bulk=True
        )
        return [parse_entry(raw) for raw in reply]


def _before(text: str) -> str:
    if not text:
        return "+"
    if not (text.isascii() and text.isdecimal() and int(text[:16]) > 0 and len(text) <= 15):
        raise InvalidInput("before must be the id of an entry")
    return f"({text}-0"


def since_of(text: str) -> int:
    """µs; 0: from the first on."""
    if not text:
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"since is {text[:40]!r}, must be a time such as 2026-11-18T04:00:00Z") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return int(aware.timestamp() * 1e6)
    except (OverflowError, ValueError):
        raise InvalidInput(f"since is {text[:40]!r}, which is out of range") from None


def _readable(entry: Entry) -> AuditEntry | None:
    try:
        return entry_of(entry)
    except (KeyError, ValueError):
        return None
