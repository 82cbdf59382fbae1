"""What one watcher of discovery has been told, as far as the next change needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from roost.api.discovery import Change, Instance
from roost.core.events import Entry, Mark
from roost.discovery import model, rules
from roost.discovery.model import Row
from roost.discovery.scripts import Snapshot
from roost.discovery.unreadable import Unreadable

MADE_PER_TURN = 250
"""Rows or instances, of which one takes some 10 µs."""

T = TypeVar("T")


class Unknowable(Exception):
    """The watcher went on from a mark, so it is not known whom a panic concerns: take a snapshot."""


class Watched:
    """Turns snapshots and feed entries into changes for one watcher of a type, group and labels.

    A panic of a service changes the answer of its suspects and of nobody else. So the suspects that the
    watcher has been told of are kept, and told again when the panic begins or ends.
    """

    def __init__(
        self,
        type_: str,
        group: str,
        labels: Sequence[str],
        unreadable: Unreadable | None = None,
        read: Callable[[Entry], tuple[Row | None, Change]] | None = None,
    ) -> None:
        """`read` is `read_entry`, or what remembers what it has read: watchers of one process share it."""
        self._wanted = (type_, group)
        self._labels = labels
        self._unreadable = unreadable or Unreadable()
        self._read = read or partial(read_entry, unreadable=self._unreadable)
        self._suspects: dict[str, Row] | None = None
        """By instance id; None until the first snapshot."""

    async def snapshot(self, found: Snapshot) -> Change:
        fitting = (
            row
            for row in model.rows_of(found, self._unreadable)
            if rules.fits_labels(row.record.labels, self._labels)
        )
        rows = await in_turns(fitting)
        instances = await in_turns(row.seen(row.service in found.panics) for row in rows)
        self._suspects = {row.instance_id: row for row in rows if row.beat.suspect}
        return Change("snapshot", found.rev, str(found.at), instances=instances)

    def readable_changes(self, entry: Entry) -> list[Change]:
        """What the watcher is to hear; nothing of an entry that nobody can read. `Unknowable`: a snapshot."""
        try:
            return list(self.changes(entry))
        except model.UNREADABLE as error:
            self._unreadable.note("entry", str(entry.rev), error)
            return []

    def changes(self, entry: Entry) -> Iterator[Change]:
        if not self._is_wanted(entry):
            return
        if entry.fields["event"] == "panic":
            yield from self._panic(entry)
            return
        row, change = self._read(entry)
        if row is None:
            if self._suspects is not None:
                self._suspects.pop(entry.fields["id"], None)
            yield change
        elif rules.fits_labels(row.record.labels, self._labels):
            self._keep(row)
            yield change

    def _is_wanted(self, entry: Entry) -> bool:
        type_, group = self._wanted
        if type_ == group == "*":
            return True
        service_type, _, service_group = entry.fields["service"].partition(":")
        return type_ in ("*", service_type) and group in ("*", service_group)

    def _keep(self, row: Row) -> None:
        if self._suspects is None:
            return
        if row.beat.suspect:
            self._suspects[row.instance_id] = row
        else:
            self._suspects.pop(row.instance_id, None)

    def _panic(self, entry: Entry) -> Iterator[Change]:
        if self._suspects is None:
            raise Unknowable
        service, panic = entry.fields["service"], entry.fields["panic"] == "1"
        told = [row for row in self._suspects.values() if row.service == service and row.willing(True)]
        before = Mark(entry.rev - 1, entry.prev_at)
        for row in told:
            mark = entry.mark if row is told[-1] else before
            instance = row.seen(panic)
            name = instance.server_id or instance.instance_id
            yield Change(
                "changed", mark.rev, str(mark.at), row.instance_id, instance.life, name, "suspect", instance
            )


async def in_turns(made: Iterable[T]) -> list[T]:
    """All of them; others have their turn in between, however many there are to make."""
    rest, all_ = iter(made), list[T]()
    while len(part := list(islice(rest, MADE_PER_TURN))) == MADE_PER_TURN:
        all_ += part
        await asyncio.sleep(0)
    return all_ + part


def read_entry(entry: Entry, unreadable: Unreadable) -> tuple[Row | None, Change]:
    """What a feed entry carries, kept and as everybody sees it. Raises one of `model.UNREADABLE`."""
    row = model.row_of(entry, unreadable)
    return row, _change(entry, row.seen(entry.fields.get("panic") == "1") if row is not None else None)


def _change(entry: Entry, instance: Instance | None) -> Change:
    fields = entry.fields
    return Change(
        event=fields["event"],  # type: ignore[arg-type]
        revision=entry.rev,
        revision_at=str(entry.at),
        instance_id=fields["id"],
        life=fields["life"],
        server_id=fields["serverId"],
        status=fields["status"],
        instance=instance,
    )
