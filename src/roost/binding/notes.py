"""What became of attempts to move users, kept beside their bindings for operators to read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from roost.binding.drain.model import MoveNote
from roost.binding.partition import Partition
from roost.binding.rules import check_user, partition_of
from roost.store.keys.binding import partition_keys
from roost.store.store import Store

AT_ONCE = 500
"""Users in one call."""


class MoveNotes:
    """The notes of all partitions: of each user the last twenty, for seven days."""

    def __init__(self, store: Store, partitions: Sequence[Partition]) -> None:
        self._store = store
        self._partitions = partitions
        self._keys = [partition_keys(store.keys, one.scope)["moves"] for one in partitions]

    async def add(self, type_: str, notes: Sequence[tuple[str, MoveNote]]) -> None:
        by_partition: dict[int, list[str | bytes]] = {}
        for user, note in notes:
            check_user(type_, user)
            number = partition_of(type_, user, len(self._partitions))
            by_partition.setdefault(number, []).extend((user, msgspec.json.encode(note)))
        for number, flat in by_partition.items():
            script = self._partitions[number].scripts.moves_note
            for start in range(0, len(flat), 2 * AT_ONCE):
                await script(type=type_, notes=flat[start : start + 2 * AT_ONCE])

    async def of(self, type_: str, user: str) -> list[MoveNote]:
        """Newest first; what cannot be read is left out."""
        check_user(type_, user)
        key = self._keys[partition_of(type_, user, len(self._partitions))] + f"{type_}:{user}".encode()
        found: list[MoveNote] = []
        for packed in await self._store.call("LRANGE", key, 0, -1, key=key, idempotent=True):
            with suppress(msgspec.MsgspecError):
                found.append(msgspec.json.decode(packed, type=MoveNote))
        return found
