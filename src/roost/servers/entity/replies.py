"""The last replies of a user, so that a message which comes twice is answered twice and executed once.

They are written with the state and read by the next server. A sender says which sequence it still waits for;
what it has is forgotten, so the memory holds what is in flight and seldom more.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from roost.wire.codes import Code

MOST_REPLIES = 1024
MOST_BYTES = 128 * 1024
LARGEST = 16 * 1024
"""A reply above this is not kept: its sender is told that the message was executed."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode


class Reply(NamedTuple):
    code: Code
    payload: bytes


class Replies:
    """By sequence, oldest first, bounded in number and bytes."""

    __slots__ = ("_bytes", "_kept")

    def __init__(self) -> None:
        self._kept: dict[int, Reply] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, sequence: int, reply: Reply) -> None:
        if len(reply.payload) > LARGEST:
            return
        self._kept[sequence] = reply
        self._bytes += len(reply.payload)
        while len(self._kept) > MOST_REPLIES or self._bytes > MOST_BYTES:
            self._drop_first()

    def get(self, sequence: int) -> Reply | None:
        return self._kept.get(sequence)

    def forget_below(self, oldest: int) -> None:
        """Their sender has them."""
        while self._kept and next(iter(self._kept)) < oldest:
            self._drop_first()

    def _drop_first(self) -> None:
        first = next(iter(self._kept))
        self._bytes -= len(self._kept.pop(first).payload)

    def pack(self) -> bytes:
        if not self._kept:
            return b""
        return _encode([(sequence, int(code), payload) for sequence, (code, payload) in self._kept.items()])

    @classmethod
    def unpack(cls, packed: bytes) -> Replies:
        """What `pack` gave; unreadable ones are as good as none, for they only answer repetitions."""
        replies = cls()
        try:
            found = _decode(packed) if packed else []
            for sequence, code, payload in sorted(found):
                replies.remember(sequence, Reply(Code(code), payload))
        except (msgspec.DecodeError, ValueError):
            return cls()
        return replies
