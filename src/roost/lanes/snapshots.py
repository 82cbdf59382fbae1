"""The snapshot of a shard: sent in calls of bounded size, visible all at once, read whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from roost.core.errors import InvalidInput
from roost.lanes.scripts import Fenced, OtherBase, Saved, ShardScripts, Staged, Unstaged
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

MAX_CALL_BYTES = 512 << 10
"""Of parts that travel together; one larger travels alone."""

SAVE_TIMEOUT_S = 10.0


class Snapshot(NamedTuple):
    epoch: int
    seq: int
    """The last command that the state includes."""
    digest: bytes
    ids: bytes
    parts: dict[str, bytes]

    @property
    def at(self) -> str:
        """As the next one names it as its base."""
        return f"{self.epoch}-{self.seq}"


class Snapshots:
    """Of one shard. `base` is `Snapshot.at` of the one that is kept; "": `parts` are all there are.

    After anything but `Saved`, also after an exception, the parts belong into the next attempt as well.
    """

    def __init__(self, store: Store, shard: int) -> None:
        scope = shard_scope(shard)
        self._store = store
        self._snapshot = ShardScripts(store.library, store.keys, scope).snapshot
        self._key = shard_keys(store.keys, scope)["snapshot"]

    async def save(
        self, epoch: int, seq: int, parts: Mapping[str, bytes], *, base: str, digest: bytes, ids: bytes = b""
    ) -> Saved | Fenced | OtherBase | Unstaged:
        if any(name.startswith("@") or not name for name in parts):
            raise InvalidInput("a part has a name that does not begin with @")
        answer: object = None
        sent, calls = 0, list(_calls(parts))
        for number, flat in enumerate(calls, start=1):
            answer = await self._snapshot(
                epoch=str(epoch),
                seq=str(seq),
                base=base,
                digest=digest,
                ids=ids,
                before=sent,
                commit=int(number == len(calls)),
                parts=flat,
                timeout_s=SAVE_TIMEOUT_S,
            )
            if not isinstance(answer, Staged):
                break
            sent += len(flat) // 2
        assert isinstance(answer, (Saved, Fenced, OtherBase, Unstaged))
        return answer

    async def load(self) -> Snapshot | None:
        flat = await self._store.call(
            "HGETALL", self._key, key=self._key, idempotent=True, bulk=True, timeout_s=SAVE_TIMEOUT_S
        )
        if not flat:
            return None
        kept = {name.decode(): content for name, content in zip(flat[::2], flat[1::2], strict=True)}
        epoch, seq = int(kept.pop("@epoch")), int(kept.pop("@seq"))
        return Snapshot(epoch, seq, kept.pop("@digest"), kept.pop("@ids"), kept)


def _calls(parts: Mapping[str, bytes]) -> Iterator[list[str | bytes]]:
    """Names and contents, in turn, of parts that travel together; at least one call, though it be empty."""
    flat, size = list[str | bytes](), 0
    for name, content in parts.items():
        if flat and size + len(content) > MAX_CALL_BYTES:
            yield flat
            flat, size = [], 0
        flat += (name, content)
        size += len(name) + len(content)
    yield flat
