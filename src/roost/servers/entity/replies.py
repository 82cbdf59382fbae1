"""The last replies of a user, so that a message which comes twice is answered twice and executed once.

They are written with the state and read by the next server. A sender says which sequence it still waits for;
what it has is forgotten, so the memory holds what is in flight and seldom more.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from roost.wire.answer import digest_of, refusal
from roost.wire.codes import Code

MOST_REPLIES = 1024
MOST_BYTES = 128 * 1024
LARGEST = 16 * 1024
"""Of a reply above this the digest is kept alone, as of the oldest where there are too many bytes."""
SMALL = MOST_BYTES // MOST_REPLIES
"""So many bytes each reply may have."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode


class Reply(NamedTuple):
    code: Code
    payload: bytes


def without_text(reply: Reply) -> Reply:
    """What is said in its place. By the digest a gate knows the reply that came from the home before."""
    said, digest = "executed, its reply is no longer kept", digest_of(reply.code, reply.payload)
    return Reply(Code.REFUSED, refusal(Code.REFUSED, said, executed=True, digest=digest).payload)


class Replies:
    """By sequence, oldest first, bounded in number and bytes."""

    __slots__ = ("_bytes", "_kept", "_large")

    def __init__(self) -> None:
        self._kept: dict[int, Reply] = {}
        self._bytes = 0
        self._large: deque[int] = deque()
        """Those that are not small, oldest first."""

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, sequence: int, reply: Reply) -> None:
        if len(reply.payload) > LARGEST:
            reply = without_text(reply)
        self._kept[sequence] = reply
        self._bytes += len(reply.payload)
        if len(reply.payload) > SMALL:
            self._large.append(sequence)
        while len(self._kept) > MOST_REPLIES:
            self._drop_first()
        while self._bytes > MOST_BYTES:
            self._shorten_first()

    def get(self, sequence: int) -> Reply | None:
        return self._kept.get(sequence)

    def forget_below(self, oldest: int) -> None:
        """Their sender has them."""
        while self._kept and next(iter(self._kept)) < oldest:
            self._drop_first()

    def _drop_first(self) -> None:
        first = next(iter(self._kept))
        self._bytes -= len(self._kept.pop(first).payload)
        if self._large and self._large[0] == first:
            self._large.popleft()

    def _shorten_first(self) -> None:
        first = self._large.popleft()
        whole, short = self._kept[first], without_text(self._kept[first])
        self._kept[first] = short
        self._bytes -= len(whole.payload) - len(short.payload)

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
            by_sequence = {sequence: (code, payload) for sequence, code, payload in found}
            for sequence, (code, payload) in sorted(by_sequence.items()):
                replies.remember(sequence, Reply(Code(code), payload))
        except (msgspec.DecodeError, ValueError):
            return cls()
        return replies
