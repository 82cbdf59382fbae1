"""The durable log of one shard: a stream whose entries are the batches of its turns.

The id of an entry is `<epoch>-<seq of its first command>`. The store takes only ids above the last one, so
once an owner has written its first entry whatever an earlier owner appends is refused for ever. Each append
names the entry that it follows, so that a primary which lost acknowledged entries is noticed by the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from roost.core.errors import StoreError
from roost.lanes.appending import Appended, Appending, Behind, Done, Entry
from roost.lanes.commands import Batch, decode_batch
from roost.store.keys import Key
from roost.store.scripts import ScopedScript, Script
from roost.store.store import Store

READ_ENTRIES = 32
"""Entries read at once: what a replay holds up everybody else for."""

REMEMBERED_BYTES = 4 * 1024 * 1024
"""Entries that are kept in memory, for a primary that lost its newest ones; the last one always is."""

_BATCH = b"b"

_tuple = tuple.__new__


class Logged(NamedTuple):
    """One turn as the log has it."""

    epoch: int
    seq: int
    """Of its first command."""
    batch: Batch

    @property
    def last_seq(self) -> int:
        return self.seq + len(self.batch.commands) - 1


class Tail(NamedTuple):
    """Where a log ends."""

    epoch: int
    seq: int
    last_seq: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}:{self.last_seq}"

    @classmethod
    def parse(cls, text: str) -> Tail:
        """The end that the store names; an empty log ends before everything."""
        if not text:
            return NOTHING
        head, _, last = text.partition(":")
        epoch, _, seq = head.partition("-")
        return cls(int(epoch), int(seq), int(last))


NOTHING = Tail(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Taken:
    seq: int
    last: int
    previous: str


@dataclass(frozen=True, slots=True)
class NotLeading:
    pass


class Log:
    """Appends under one epoch, in order; `keys` are those of the shard's scope."""

    def __init__(self, store: Store, keys: Mapping[str, Key], appending: Appending) -> None:
        self._store = store
        self._appending = appending
        self.key = keys["log"]
        self._tail_key = keys["tail"]
        take: Script[Taken | NotLeading] = store.library.script("lanes", "take_over", Taken, NotLeading)
        self._take = ScopedScript(take, keys)
        self._recent: deque[tuple[str, str, int, bytes]] = deque()
        """Tails before and after an entry, its commands and they.

        NB: in text: there are thousands of them, and the garbage collector leaves tuples of text alone.
        """
        self._recent_bytes = 0
        self._entries: deque[tuple[int, int]] = deque()
        """Epoch and first seq of each entry that was not cut yet, as far as they are known here."""
        self._mark = ""

    async def take_over(self, holder: str, epoch: int, floor: int, batch: bytes) -> Taken | NotLeading:
        """Write the first entry of an epoch; from then on nobody appends under an earlier one."""
        taken = await self._take(holder=holder, epoch=str(epoch), floor=floor, batch=batch)
        if isinstance(taken, Taken):
            self._mark = str(Tail(epoch, taken.seq, taken.seq))
            self._remember((taken.previous, self._mark, 1, batch))
        return taken

    @property
    def tail(self) -> Tail:
        """The entry that the next one follows."""
        return Tail.parse(self._mark)

    def append(self, epoch: int, seq: int, count: int, batch: bytes, done: Done) -> None:
        """Send the next entry, one at a time; `done` is told what the store says."""
        previous, entry_id = self._mark, f"{epoch}-{seq}"
        self._mark = mark = f"{entry_id}:{seq + count - 1}"
        self._recent.append((previous, mark, count, batch))
        self._recent_bytes += len(batch)
        if self._recent_bytes > REMEMBERED_BYTES:
            self._forget()
        self._entries.append((epoch, seq))
        entry = (self.key, self._tail_key, previous, mark, entry_id, count, batch, done)
        self._appending.add(_tuple(Entry, entry))

    def afterwards(self, send: Callable[[], None]) -> None:
        """Have `send`, which appends, called when the answers of the last entry have left."""
        self._appending.afterwards(send)

    async def heal(self, kept: Tail | None) -> Appended | Behind:
        """Append again what a log that ends with `kept` has lost of ours; `Behind` if that is not known.

        None: only of the last entry is it not known whether it is there.
        """
        lost = list(self._recent)[-1:] if kept is None else self._after(kept)
        if not lost or (kept is not None and Tail.parse(lost[0][0]) != kept):
            return Behind(str(kept))
        answer: Appended | Behind = Appended()
        for previous, mark, count, batch in lost:
            answer = await self._sent(previous, mark, count, batch)
            if isinstance(answer, Behind):
                return answer
        return answer

    async def read(self, after_seq: int = 0) -> AsyncIterator[Logged]:
        """Every entry with a command after `after_seq`, in order, to the end. Before the first `append`."""
        start, found = "-", [None] * READ_ENTRIES
        self._entries.clear()
        while len(found) == READ_ENTRIES:
            found = await self._store.call(
                *("XRANGE", self.key, start, "+", "COUNT", READ_ENTRIES),
                key=self.key,
                idempotent=True,
                bulk=True,
            )
            for raw in found:
                entry = _entry(raw)
                self._entries.append((entry.epoch, entry.seq))
                start = f"({raw[0].decode()}"
                if entry.last_seq > after_seq:
                    yield entry
            await asyncio.sleep(0)

    @property
    def first_seq(self) -> int:
        """Of the oldest command that was not cut, as far as `read` has seen; 0: it has seen none."""
        return self._entries[0][1] if self._entries else 0

    async def trim(self, seq: int) -> None:
        """Forget the entries that hold nothing after this command; the newest always stays."""
        entries, cut = self._entries, False
        while len(entries) > 1 and entries[1][1] <= seq + 1:
            entries.popleft()
            cut = True
        if cut:
            first = f"{entries[0][0]}-{entries[0][1]}"
            await self._store.call("XTRIM", self.key, "MINID", first, key=self.key, idempotent=True)

    def _after(self, kept: Tail) -> list[tuple[str, str, int, bytes]]:
        """The entries that follow this end of the log, as far as they are remembered."""
        return [entry for entry in self._recent if Tail.parse(entry[0]).last_seq >= kept.last_seq]

    async def _sent(self, previous: str, mark: str, count: int, batch: bytes) -> Appended | Behind:
        told: asyncio.Future[Appended | Behind | StoreError] = asyncio.get_running_loop().create_future()

        def done(answer: Appended | Behind | StoreError) -> None:
            if not told.done():
                told.set_result(answer)

        entry_id = mark[: mark.index(":")]
        self._appending.add(Entry(self.key, self._tail_key, previous, mark, entry_id, count, batch, done))
        answer = await told
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def _remember(self, entry: tuple[str, str, int, bytes]) -> None:
        self._recent.append(entry)
        self._recent_bytes += len(entry[3])
        self._forget()

    def _forget(self) -> None:
        while self._recent_bytes > REMEMBERED_BYTES and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popleft()[3])


def _entry(raw: list[Any]) -> Logged:
    epoch, _, seq = raw[0].partition(b"-")
    fields = raw[1]
    return Logged(int(epoch), int(seq), decode_batch(fields[fields.index(_BATCH) + 1]))
