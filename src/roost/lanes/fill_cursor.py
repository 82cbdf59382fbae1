"""How far an account has heard of its fills, by shard: what is new, heard before, or missing."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from roost.lanes.commands import Event, Follow, encode

decode_followed = msgspec.msgpack.Decoder(tuple[list[int], dict[int, int]]).decode
"""The answer to FOLLOW: the shards that are followed, and where those go on of which fills are missing."""


class FillCursor:
    """Numbers of a shard are dense: a fill that comes too early says that one before it was not heard."""

    def __init__(self, seen: Mapping[int, int]) -> None:
        self.seen = dict(seen)
        """By shard the number of the last fill that was taken."""
        self.missed = 0
        """Fills that were told and not taken: whoever asked for them meanwhile has to ask again."""

    def takes(self, event: Event, has_room: bool) -> bool | None:
        """Whether it is the next one, to be handed out; None: it, or one before it, has to be asked for."""
        seen = self.seen.get(event.shard, 0)
        if event.number <= seen:
            return False
        if event.number > seen + 1 or not has_room:
            self.missed += 1
            return None
        self.seen[event.shard] = event.number
        return True

    def follow(self, account: str) -> bytes:
        """The request for all that comes after."""
        return encode(Follow(account, self.seen))

    def skip(self, shard: int, to: int) -> int:
        """The server does not have what comes next: go on after `to`. The last number before is returned."""
        seen = self.seen.get(shard, 0)
        self.seen[shard] = to
        return seen
