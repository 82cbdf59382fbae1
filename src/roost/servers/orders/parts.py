"""The state of a shard in parts: only those that changed are encoded, hashed and written.

book:<symbol>        the open orders of a symbol
accounts:<bucket>    answers and events of the accounts of a bucket
closed:<index>       orders that were closed lately
meta                 halts, forwards, moves taken, where numbers of events begin
left                 hints of what left (not in the digest, see `moves`)
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from roost.lanes.commands import encode
from roost.servers.orders.accounts import Accounts
from roost.servers.orders.book import Book, Order
from roost.servers.orders.closed import ClosedOrders
from roost.servers.orders.moves import Moves, Place

META: Final = "meta"
LEFT: Final = "left"


class KeptMeta(msgspec.Struct, array_like=True):
    halts: list[tuple[str, str]]
    forwards: list[tuple[str, Place]]
    taken: list[tuple[str, str]]
    """The oldest first."""
    events_from: int = 0


class ShardState:
    """All that the commands of a shard change. Whoever changes something adds its part to `touched`."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.books: dict[str, Book] = {}
        self.orders: dict[int, Order] = {}
        """The open ones by id; each is in the book of its symbol too."""
        self.closed = ClosedOrders()
        self.accounts = Accounts()
        self.halts: dict[str, str] = {}
        """Symbol and why."""
        self.moves = Moves()
        self.touched: set[str] = set()
        self._unwritten: dict[str, bytes] = {}
        self._digests: dict[str, bytes] = {}

    def dirty(self) -> dict[str, bytes]:
        """The parts that changed since the last call; nothing in it says that the part is gone."""
        self._encode_touched()
        unwritten, self._unwritten = self._unwritten, {}
        return dict(sorted(unwritten.items()))

    def all_parts(self) -> dict[str, bytes]:
        """What a store that has nothing needs."""
        self._encode_touched()
        self._unwritten = {}
        names = {*self._digests, LEFT} if self.moves.order_ids or self.moves.departed else {*self._digests}
        return {name: data for name in sorted(names) if (data := self._encode_part(name))}

    def digest(self) -> bytes:
        self._encode_touched()
        whole = blake2b(digest_size=16)
        for name in sorted(self._digests):
            whole.update(b"%d:%b%b" % (len(name), name.encode(), self._digests[name]))
        return whole.digest()

    def restore(self, parts: Mapping[str, bytes]) -> None:
        """Become what the parts say, and nothing else."""
        for one in (self.books, self.orders, self.closed, self.accounts, self.halts, self.moves):
            one.clear()
        for own in (self.touched, self._unwritten, self._digests):
            own.clear()
        for name in sorted(parts):
            if data := parts[name]:
                self._restore_part(name, data)
                self._remember_digest(name, data)

    def _encode_touched(self) -> None:
        for name in self.touched:
            data = self._unwritten[name] = self._encode_part(name)
            self._remember_digest(name, data)
        self.touched.clear()

    def _remember_digest(self, name: str, data: bytes) -> None:
        if not data:
            self._digests.pop(name, None)
        elif name != LEFT:
            self._digests[name] = blake2b(data, digest_size=16).digest()

    def _encode_part(self, name: str) -> bytes:
        kind, _, rest = name.partition(":")
        match kind:
            case "book":
                return self._encode_book(rest)
            case "accounts":
                return self.accounts.encode_part(name)
            case "closed":
                return self.closed.encode_part(name)
            case "meta":
                return self._encode_meta()
            case _:
                return self.moves.encode_hints()

    def _restore_part(self, name: str, data: bytes) -> None:
        kind, _, rest = name.partition(":")
        match kind:
            case "book":
                book = self.books[rest] = Book(rest, _decode_orders(data))
                self.orders.update((order.order_id, order) for order in book)
            case "accounts":
                self.accounts.restore_part(data)
            case "closed":
                self.closed.restore_part(data)
            case "meta":
                self._restore_meta(_decode_meta(data))
            case "left":
                self.moves.restore_hints(data)
            case _:
                raise ValueError(f"no part of a shard's state is called {name!r}")

    def _encode_book(self, symbol: str) -> bytes:
        book = self.books.get(symbol)
        if book:
            return encode(list(book))
        self.books.pop(symbol, None)
        return b""

    def _encode_meta(self) -> bytes:
        moves = self.moves
        if not (self.halts or moves.forwards or moves.taken or self.accounts.events_from):
            return b""
        halts, forwards = sorted(self.halts.items()), sorted(moves.forwards.items())
        return encode(KeptMeta(halts, forwards, list(moves.taken.items()), self.accounts.events_from))

    def _restore_meta(self, kept: KeptMeta) -> None:
        self.halts.update(kept.halts)
        self.accounts.events_from = kept.events_from
        self.moves.forwards.update(kept.forwards)
        self.moves.taken.update(kept.taken)


_decode_orders = msgspec.msgpack.Decoder(list[Order]).decode
_decode_meta = msgspec.msgpack.Decoder(KeptMeta).decode
