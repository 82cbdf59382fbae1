"""Order ids: 63 bits that say when an order was taken and in which lane it is served.

    41 bits  milliseconds since 2024-01-01 UTC (until 2093)
     4 bits  shard
     6 bits  lane of the shard; not the worker, whose number may change at any start
    12 bits  sequence within the millisecond

So a cancel that has nothing but the id finds its lane. Bits are a hint: any number has a shard and a lane in
it. `is_plausible` rules most foreign ids out, and only the shard's own lookup is proof. From 2024-01-25 on
ids are above 2^53: they travel as text in JSON, and never as a Lua number or the score of a sorted set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

EPOCH_MS = 1_704_067_200_000
"""2024-01-01T00:00:00Z."""
TIME_BITS, SHARD_BITS, LANE_BITS, SEQUENCE_BITS = 41, 4, 6, 12
SHARDS = 1 << SHARD_BITS
LANES = 1 << LANE_BITS
SEQUENCES = 1 << SEQUENCE_BITS
LAST_SEQUENCE = SEQUENCES - 1
LANE_SHIFT = SEQUENCE_BITS
SHARD_SHIFT = LANE_SHIFT + LANE_BITS
TIME_SHIFT = SHARD_SHIFT + SHARD_BITS
ONE_MS = 1 << TIME_SHIFT
LAST_MS = EPOCH_MS + (1 << TIME_BITS) - 1
END = 1 << (TIME_SHIFT + TIME_BITS)
"""Every id is above 0 and below this."""

LAUNCHED_MS = 1_762_041_600_000
"""2025-11-02, the date of the document that defines this format: no id of ours is older. The floor is above
what Sonyflake 2 (until 2029) and `yyyymmddHHMMSS` with four digits more give when they are read as ours."""

MAX_AHEAD_MS = 5_000
"""How far a lane may borrow milliseconds from the future."""
FUTURE_MS = 2 * MAX_AHEAD_MS
"""How far ahead of the reader's clock an id may be: what was borrowed, and as much between two clocks."""


class Parts(NamedTuple):
    """What an id is made of; `ms` counts from 1970."""

    ms: int
    shard: int
    lane: int
    sequence: int


def pack(ms: int, shard: int, lane: int, sequence: int) -> int:
    """The id of these parts; ValueError for a part that its bits do not hold."""
    _check("ms", ms - EPOCH_MS, 1 << TIME_BITS)
    _check("shard", shard, SHARDS)
    _check("lane", lane, LANES)
    _check("sequence", sequence, SEQUENCES)
    return (ms - EPOCH_MS) << TIME_SHIFT | shard << SHARD_SHIFT | lane << LANE_SHIFT | sequence


def unpack(order_id: int) -> Parts:
    return Parts(
        extract_time(order_id),
        extract_shard(order_id),
        extract_lane(order_id),
        order_id & LAST_SEQUENCE,
    )


def extract_shard(order_id: int) -> int:
    return order_id >> SHARD_SHIFT & (SHARDS - 1)


def extract_lane(order_id: int) -> int:
    return order_id >> LANE_SHIFT & (LANES - 1)


def extract_time(order_id: int) -> int:
    """Milliseconds since 1970."""
    return (order_id >> TIME_SHIFT) + EPOCH_MS


def logical_shard_count() -> int:
    """Fixed for ever: it is part of the id's format. What grows is the number of workers."""
    return SHARDS


def is_plausible(order_id: int, now_ms: int, launched_ms: int = LAUNCHED_MS) -> bool:
    """Whether it can be an id of ours: in the range of ids, and taken between the launch and now.

    A later `launched_ms` is the better filter: of random numbers, one in 70 passes for each year between
    launch and now. From 2030 on Sonyflake ids pass the default.
    """
    if not 0 < order_id < END:
        return False
    return launched_ms <= extract_time(order_id) <= now_ms + FUTURE_MS


class ClockBehind(NamedTuple):
    """No id: the lane is further ahead of the clock than it may borrow. Try again when time has passed."""

    ahead_ms: int


class LaneIds:
    """Gives out the ids of one shard, each above the last of its lane, whatever the clock does.

    A lane that used up its millisecond, or whose clock went back, borrows from the next ones, at most
    `MAX_AHEAD_MS`; then it refuses. It never waits. What keeps ids apart across restarts and owners is `seed`
    (the log's tail) and `raise_floor` (the lease's high-water mark), both before the first `next`.
    """

    __slots__ = ("_bases", "_last", "_most_ahead", "refusals", "shard")

    def __init__(self, shard: int, max_ahead_ms: int = MAX_AHEAD_MS) -> None:
        _check("shard", shard, SHARDS)
        self.shard = shard
        self.refusals = 0
        self._most_ahead = max_ahead_ms << TIME_SHIFT | LAST_SEQUENCE
        self._bases = [shard << SHARD_SHIFT | lane << LANE_SHIFT for lane in range(LANES)]
        self._last = self._bases.copy()
        """The last id of each lane; its first is above the very first one, which would be 0."""

    def next(self, lane: int, now_ms: int) -> int | ClockBehind:
        order_id = self._last[lane] + 1
        first_of_now = ((now_ms - EPOCH_MS) << TIME_SHIFT) + self._bases[lane]
        if order_id <= first_of_now:
            order_id = first_of_now
        elif not order_id & LAST_SEQUENCE:  # the sequence ran over into the lane's bits
            order_id += ONE_MS - SEQUENCES
        if order_id - first_of_now > self._most_ahead:
            self.refusals += 1
            return ClockBehind((order_id - first_of_now) >> TIME_SHIFT)
        if order_id >= END:
            raise OverflowError(f"41 bits of milliseconds ended in 2093; the clock says {now_ms}")
        self._last[lane] = order_id
        return order_id

    def seed(self, order_id: int) -> None:
        """The next id of its lane is above this one, which the log holds."""
        if extract_shard(order_id) != self.shard:
            raise ValueError(f"{order_id} is an id of shard {extract_shard(order_id)}, not of {self.shard}")
        lane = extract_lane(order_id)
        self._last[lane] = max(self._last[lane], order_id)

    def raise_floor(self, ms: int) -> None:
        """No lane gives out an id of this millisecond or before."""
        floor = ((ms - EPOCH_MS) << TIME_SHIFT) + LAST_SEQUENCE
        self._last = [max(last, floor + base) for last, base in zip(self._last, self._bases, strict=True)]

    @property
    def high_water_ms(self) -> int:
        """The latest millisecond that any lane has used, or was told to stay above."""
        return extract_time(max(self._last))

    def newest(self) -> list[int]:
        """The last id of each lane, to `seed` the next owner's with."""
        return list(self._last)

    def ahead_ms(self, now_ms: int) -> int:
        """How far the furthest lane has borrowed; 0 where none has."""
        return max(0, self.high_water_ms - now_ms)


class OrderIds:
    """The documented generator: all shards of one process, on a clock that is passed in.

    For programs that want ids alone. An order server uses `LaneIds` of the shards that it owns, because
    nothing here keeps two processes apart.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._shards = [LaneIds(shard) for shard in range(SHARDS)]

    def generate(self, shard: int | None = None, lane: int = 0) -> int | ClockBehind:
        """The next id of a lane. Without a shard it is the deprecated form, which means shard 0."""
        if shard is None:
            warnings.warn("generate() without a shard means shard 0", DeprecationWarning, stacklevel=2)
            shard = 0
        _check("shard", shard, SHARDS)
        _check("lane", lane, LANES)
        return self._shards[shard].next(lane, self._now_ms())


def _check(what: str, value: int, end: int) -> None:
    if not 0 <= value < end:
        raise ValueError(f"{what} {value} is not in 0..{end - 1}")
