"""What is asked of a shard, and what it answers: the messages on the wire and in the log, in msgpack arrays.

A command is sequenced once: it gets the next number of its shard and stands in the log with everything that
its execution depends on, so that a replay comes to the same state. Order ids and numbers are integers here;
in JSON they are strings, because 63 bits do not fit into its numbers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from roost.core.errors import InvalidInput
from roost.db.orders import is_storable

SERVICE: Final = 2
"""The number of the order service on the wire."""

MAX_ACCOUNT_CHARS = 128
MAX_QUANTITY = 10**12
MAX_PRICE = 10**15


class Method(IntEnum):
    """The methods of the service; those from 200 on are written by owners and operators, never by traders."""

    NEW = 1
    CANCEL = 2
    AMEND = 3
    QUERY = 4
    """Reads; it is not sequenced."""
    FOLLOW = 5
    """Have the events of accounts pushed over this connection, those after a cursor first."""
    PLACES = 6
    """Which server owns which shard; the placement's version and its pins."""
    REPLAY = 7
    """The book of a symbol as it stood at a command of the log; for operators."""
    UNFOLLOW = 8
    """Have the events of an account pushed over this connection no more."""

    TAKEOVER = 200
    """The first entry of an owner: whatever an earlier one appends after it is refused by the store."""
    CHECK = 201
    """The digest of the state at this point: a replay compares it."""
    HALT = 202
    RESUME = 203
    MOVE_OUT = 204
    """A symbol leaves with its book; cancels by id are sent on from here."""
    MOVE_IN = 205


class Side(IntEnum):
    BUY = 1
    SELL = 2


class State(IntEnum):
    """What became of an order, as an answer says it."""

    REFUSED = 0
    """`reason` says why; nothing was changed."""
    OPEN = 1
    FILLED = 2
    CANCELLED = 3


class Durability(IntEnum):
    """What an accepted command has survived before it was answered."""

    MEMORY = 0
    """It is in the store's memory: it survives the order server, not the store."""
    EVERYSEC = 1
    """It is in the store's append-only file, which is synced once a second: a power cut may take a second."""
    FSYNC = 2
    """It is on the store's disk."""
    REPLICA = 3
    """A replica of the store has it too."""

    @property
    def word(self) -> str:
        return self.name.lower()


class New(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A limit order; what is not filled at once rests in the book, unless it is immediate-or-cancel."""

    account: str
    client_seq: int
    """The account's own number of this command: the same number again gets the first answer again."""
    acked: int
    """Answers to numbers below this one have been seen and need not be kept."""
    symbol: str
    side: int
    price: int
    """In ticks."""
    quantity: int
    immediate: bool = False


class Cancel(msgspec.Struct, array_like=True, frozen=True, gc=False):
    account: str
    client_seq: int
    acked: int
    order_id: int
    symbol: str = ""
    """Of the order; where it is known, no id has to be interpreted."""


class Amend(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A smaller quantity at the same price keeps the order's place in the line; anything else loses it."""

    account: str
    client_seq: int
    acked: int
    order_id: int
    symbol: str
    price: int
    quantity: int
    """Of the whole order, what is filled included."""


class Query(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What became of an order, or of a command: `client_seq` 0 asks for the order."""

    account: str
    order_id: int
    client_seq: int = 0
    symbol: str = ""


class Standing(msgspec.Struct, array_like=True, frozen=True):
    """The answer to a query: an order as its last command left it."""

    order_id: int
    state: int
    """REFUSED: `reason` says why nothing is known."""
    symbol: str
    """Of an order that has MOVED: by it, the shard that has it now can be asked."""
    side: int
    price: int
    quantity: int
    remaining: int
    reason: str
    shard: int
    seq: int


class ReplayTo(msgspec.Struct, array_like=True, frozen=True):
    shard: int
    symbol: str
    to_seq: int
    """The last command that counts; 0: the newest."""


class Follow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    account: str
    cursor: dict[int, int]
    """By shard the number of the last event that was seen."""


class Unfollow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    account: str


class Places(msgspec.Struct, array_like=True, frozen=True):
    """The answer to PLACES: who owns what, as this server knows it."""

    version: int
    """Of the placement."""
    selector: str
    pins: dict[str, tuple[int, int]]
    owners: dict[int, str]
    """Shard → host:port."""


class Halt(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Of HALT and RESUME."""

    symbol: str
    why: str = ""


class MoveOut(msgspec.Struct, array_like=True, frozen=True, gc=False):
    symbol: str
    move_id: str
    shard: int
    lane: int
    most_bytes: int = 0
    """What its book may take on the way; 0: whatever it takes."""


class MoveIn(msgspec.Struct, array_like=True, frozen=True, gc=False):
    symbol: str
    move_id: str
    book: bytes
    """As MOVE_OUT left it: `Machine` knows the form."""


Command = New | Cancel | Amend | Halt | MoveOut | MoveIn | bytes
"""A command as its machine gets it; `bytes` of those that only mark a point (TAKEOVER, CHECK)."""


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The answer to a sequenced command. From `shard` on it is the receipt."""

    order_id: int
    state: int
    filled: int
    remaining: int
    reason: str
    """Empty unless the state is REFUSED: a word of `Reason`."""
    shard: int
    lane: int
    epoch: int
    seq: int
    durability: int
    at_ms: int


SIDES: dict[str, Side] = {side.name.lower(): side for side in Side}
"""By the word that people and programs use."""


class Reason:
    """Why a sequenced command was refused: words for programs."""

    UNKNOWN_ORDER: Final = "UNKNOWN_ORDER"
    NOT_YOURS: Final = "NOT_YOURS"
    """The order is another account's."""
    CLOSED: Final = "CLOSED"
    """The order is filled or cancelled already."""
    BAD_QUANTITY: Final = "BAD_QUANTITY"
    BAD_PRICE: Final = "BAD_PRICE"
    BAD_SIDE: Final = "BAD_SIDE"
    HALTED: Final = "HALTED"
    MOVED: Final = "MOVED"
    """The symbol left this shard."""
    DUPLICATE: Final = "DUPLICATE"
    """The client's number was used for something else."""
    TOO_OLD: Final = "TOO_OLD"
    """The client's number was used, and its answer is no longer kept."""
    TOO_LARGE: Final = "TOO_LARGE"
    """The book does not fit into the message that would carry it: the symbol stays."""
    FAILED: Final = "FAILED"
    """The machine failed at it; nothing was changed."""


class Event(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A fill of an account's order. Numbers are dense per account and shard, so that a gap is seen."""

    account: str
    number: int
    shard: int
    seq: int
    order_id: int
    symbol: str
    side: int
    price: int
    quantity: int
    remaining: int
    at_ms: int


class Batch(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One entry of a shard's log: the commands of one turn. Its id is `<epoch>-<seq of the first>`."""

    at_ms: int
    durability: int
    commands: list[tuple[int, int, int, bytes]]
    """Method, lane, order id (0: none was made), payload."""


class Turn:
    """What the commands of one turn have in common, live and in a replay."""

    __slots__ = ("at_ms", "durability", "epoch", "shard")

    def __init__(self, shard: int, epoch: int, at_ms: int, durability: int) -> None:
        self.shard = shard
        self.epoch = epoch
        self.at_ms = at_ms
        self.durability = durability


_TYPES: dict[int, Any] = {
    Method.NEW: New,
    Method.CANCEL: Cancel,
    Method.AMEND: Amend,
    Method.QUERY: Query,
    Method.FOLLOW: Follow,
    Method.REPLAY: ReplayTo,
    Method.UNFOLLOW: Unfollow,
    Method.HALT: Halt,
    Method.RESUME: Halt,
    Method.MOVE_OUT: MoveOut,
    Method.MOVE_IN: MoveIn,
}

DECODERS = {method: msgspec.msgpack.Decoder(kind).decode for method, kind in _TYPES.items()}
"""By method; raises `msgspec.MsgspecError` or `UnicodeDecodeError` for what is none."""

encode = msgspec.msgpack.Encoder().encode
decode_batch = msgspec.msgpack.Decoder(Batch).decode
decode_outcome = msgspec.msgpack.Decoder(Outcome).decode
decode_standing = msgspec.msgpack.Decoder(Standing).decode
decode_event = msgspec.msgpack.Decoder(Event).decode


def check_account(name: str) -> None:
    """Refuse what no row of an order could name: it would trade, and the database would have none of it."""
    if not (0 < len(name) <= MAX_ACCOUNT_CHARS and is_storable(name)):
        raise InvalidInput(
            f"an account has 1 to {MAX_ACCOUNT_CHARS} characters, none of them NUL or half a surrogate pair"
        )


def decode_command(method: int, payload: bytes) -> Command:
    """A command of the log; what is not read by any method stays bytes."""
    decoder = DECODERS.get(method)
    return payload if decoder is None else decoder(payload)
