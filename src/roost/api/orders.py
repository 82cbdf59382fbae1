"""Messages for those who look after ordered work, and its errors. Order ids are text: JSON has no 63 bits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from roost.api import Message
from roost.api.limits import MAX_NUMBER, MAX_TEXT, shown
from roost.core import errors as e

MAX_SHARD, MAX_LANE = 15, 63
SYMBOL_PATTERN = r"^[^\x00-\x20\x7f-\xa0{}\u2028\u2029]+$"

Symbol = Annotated[
    str,
    shown(minLength=1, maxLength=128, pattern=SYMBOL_PATTERN, description="At most 32 once it is spelled."),
]
Reason = Annotated[str, shown(maxLength=MAX_TEXT, pattern=r"^[^\x00-\x1f\x7f]*$")]
ShardNumber = Annotated[int, shown(minimum=0, maximum=MAX_SHARD)]
Lane = Annotated[int, shown(minimum=0, maximum=MAX_LANE)]
Seq = Annotated[int, shown(minimum=0, maximum=MAX_NUMBER)]

PlaceHow = Literal["hash", "pinned", "moving", "unreadable"]
"""moving: its orders are still there, and nothing new is taken until they have left."""


class UnknownOrder(e.NotFound):
    """Nobody knows this order of this account."""

    code = "UNKNOWN_ORDER"
    hint = "`roost orders explain-id ID` says what the number looks like"


class ShardUnowned(e.Unavailable):
    """No order server owns the shard at the moment."""

    code = "SHARD_UNOWNED"
    hint = "`roost orders shards` shows who owns which; start one with `roost orders serve`"


class PlacementConflict(e.Conflict):
    """The placement is not what was expected."""

    code = "PLACEMENT_CONFLICT"
    hint = "look at it again (`roost orders place SYMBOL`), then repeat"


class SymbolMoving(e.Conflict):
    """The symbol is on its way to another shard."""

    code = "SYMBOL_MOVING"
    hint = "it takes a moment, while both shards have an owner; then repeat"


class LogCut(e.Gone):
    """The log does not reach back so far."""

    code = "LOG_CUT"
    hint = "only what is after the last snapshot can be replayed; ROOST_LANES__SNAPSHOT_COMMANDS keeps more"


class SpotView(Message):
    """A lane among all."""

    shard: ShardNumber
    lane: Lane


class PlaceView(Message):
    """Where a symbol is served."""

    symbol: str
    """As it is spelled everywhere: upper case, no spaces."""
    how: PlaceHow
    shard: int
    lane: int
    version: int
    """Of the placement; give it as `expected` to change what you have seen."""
    to: SpotView | None = None
    """Where it moves."""
    move_id: str = ""
    owner: str = ""
    """Server id of who owns the shard; empty: nobody."""
    address: str = ""
    record: str = ""
    """What the table says where it cannot be read: nobody serves the symbol."""


class PlacementView(Message):
    version: int
    selector: str
    """How symbols that are not listed find their place."""
    symbols: list[PlaceView]
    """Those that the table names."""


class MoveInput(Message):
    """Where a symbol should be served."""

    shard: ShardNumber
    lane: Lane | None = None
    """Nothing: the lane that its hash gives it."""
    expected: Seq | None = None
    """The version of the placement that you have seen; nothing: whatever it is."""


class PlacedReply(Message):
    """What came of a change of place."""

    changed: bool
    """False: it was so already, or is on its way there."""
    place: PlaceView


class WorkerLoad(Message):
    """What waits at one of the workers that share a shard: worker n has lanes n, n + workers, …"""

    depth: int = 0
    """Commands that wait for their turn."""
    wait_ms: int = 0
    """How long the oldest of them has waited."""
    rejected: int = 0
    """Commands that it did not take, since its server was started."""


class ShardStatus(Message):
    """What the owner told with its last renewal of the lease, once a second."""

    seq: int = 0
    """Of the last command in the log."""
    snapshot_seq: int = 0
    depth: int = 0
    """Commands that wait for their turn."""
    wait_ms: int = 0
    """How long the oldest of them has waited."""
    rate: float = 0.0
    """Commands a second."""
    lanes: dict[str, float] = {}
    """Commands a second by lane, where there were any."""
    workers: list[WorkerLoad] = []
    """In the order of their numbers; empty: its owner does not tell."""
    failed: int = 0
    violations: int = 0
    """Commands that ran out of order: 0."""
    lost: int = 0
    """Commands that were acknowledged and that the store no longer had at the takeover: 0."""
    mismatches: int = 0
    """Replays that came to another state: 0."""
    durability: str = ""
    halted: int = 0
    """Symbols that are."""
    hot: dict[str, float] = {}
    """The busiest symbols, commands a second."""
    rejected: dict[str, int] = {}
    """Of its server, since it was started: commands that were not taken, by reason."""


class ShardView(Message):
    shard: int
    owner: str
    """Server id; empty: nobody owns it, and its symbols wait."""
    address: str
    epoch: int
    """µs; it rises with each takeover."""
    lease_left_ms: int
    status: ShardStatus


class ShardList(Message):
    shards: list[ShardView]


class MoveAdvice(Message):
    symbol: str
    rate: float
    """Commands a second."""
    source: SpotView
    target: SpotView


class AdviceView(Message):
    """Ratios: the load of the fullest shard by that of the mean one; 1 is even."""

    moves: list[MoveAdvice]
    """Empty: as even as it gets, or nothing happens."""
    before: float
    after: float
    hottest: str
    ceiling: float
    """The hottest symbol's load by that of the mean shard: no placement is better than this, nor than 1."""
    unowned: list[int]
    """Shards of which nothing is known."""


class IdView(Message):
    """What a number is, read as an order id."""

    id: str
    said: str
    """In one line."""
    plausible: bool
    """Whether it can be an id of ours. Only the shard's own lookup is proof."""
    shard: int
    lane: int
    made_at: str
    sequence: int


class OrderView(Message):
    """An order as its last command left it."""

    id: str
    account: str
    symbol: str
    state: Literal["open", "filled", "cancelled"]
    side: Literal["buy", "sell"]
    price: int
    quantity: int
    remaining: int
    shard: int
    seq: int
    """Of its last command."""


class HaltInput(Message):
    why: Reason = ""


class HaltReply(Message):
    """A halt or its end, as it stands in the log."""

    symbol: str
    halted: bool
    why: str
    shard: int
    lane: int
    epoch: int
    seq: int
    durability: str


class RestingOrder(Message):
    order_id: str
    account: str
    quantity: int
    remaining: int
    created_ms: int


class LevelView(Message):
    price: int
    quantity: int
    """Of all its orders, what remains."""
    orders: list[RestingOrder]
    """In the order in which they are served."""


class BookView(Message):
    """The book of a symbol as it stood at a command of its shard's log."""

    symbol: str
    shard: int
    seq: int
    """Of the last command that is in it, of whatever symbol; 0: none was."""
    at_ms: int
    halted: str | None
    """Why, if it is."""
    moved_to: str | None
    """`<shard>/<lane>` if the symbol had left this shard."""
    bids: list[LevelView]
    asks: list[LevelView]
    """The best first; of each side the first thousand orders."""
    failed: int
    """Commands at which the machine failed; it failed at them live too, and they changed nothing."""
    orders: int = 0
    """Open ones, all of them."""
    missing: int = 0
    """Commands up to the one that was asked for that the store has lost: what they did is not in the book."""


encode_book = msgspec.msgpack.Encoder().encode
decode_book = msgspec.msgpack.Decoder(BookView).decode
