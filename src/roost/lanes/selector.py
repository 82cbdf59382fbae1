"""Which shard and lane a symbol has by its hash: the same in every process, language and year.

Two selectors, and a placement table above them (`placement.py`):

- `mixed`, the default: FNV-1a, then the finalizer of Murmur 3, because FNV hardly spreads the last byte.
  Shard and lane are different bits of it, so that the symbols of a shard use all its lanes.
- `ring_v1`: the documented ring, for those who have its mapping already. All 8 points of a shard lie close
  together, so its shares are uneven: the largest is several times the mean.

`docs/lane-vectors.json` holds golden vectors of both. Python's own `hash` differs in each process.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from typing import NamedTuple, Protocol

from roost.core.errors import InvalidId
from roost.core.ids import check_id
from roost.lanes.ids import LANE_BITS, LANES, SHARD_BITS, SHARDS

MAX_SYMBOL_CHARACTERS = 32
VIRTUAL_NODES = 8

_MASK = 0xFFFFFFFF
_SHARD_SHIFT = 32 - SHARD_BITS
_LANE_SHIFT = 12
assert _LANE_SHIFT + LANE_BITS <= _SHARD_SHIFT, "shard and lane must not share bits"
_PLAIN = re.compile(rf"[0-9A-Z._/:-]{{1,{MAX_SYMBOL_CHARACTERS}}}")


class Spot(NamedTuple):
    """A lane among all: 16 shards with 64 lanes each."""

    shard: int
    lane: int


class Selector(Protocol):
    @property
    def name(self) -> str: ...

    def spot(self, symbol: str) -> Spot:
        """Where a symbol, which is normalised, belongs."""


def normalise(symbol: str) -> str:
    """The one spelling of a symbol, or `InvalidId`: spaces around it are cut, NFKC, upper case.

    `btc `, `ＢＴＣ` and `BTC` are one book. Refused is what is empty or above 32
    characters, has braces or spaces inside, or a character that cannot be seen (control, format, private,
    unassigned).
    """
    if _PLAIN.fullmatch(symbol):
        return symbol
    if len(symbol) > 4 * MAX_SYMBOL_CHARACTERS:
        raise InvalidId(f"symbol has {len(symbol)} characters, at most {MAX_SYMBOL_CHARACTERS} are allowed")
    spelt = unicodedata.normalize("NFKC", symbol).strip(" \t\r\n").upper()
    spelt = unicodedata.normalize("NFKC", spelt)
    if len(spelt) > MAX_SYMBOL_CHARACTERS:
        raise InvalidId(f"symbol has {len(spelt)} characters, at most {MAX_SYMBOL_CHARACTERS} are allowed")
    for character in spelt:
        if unicodedata.category(character)[0] in "CZ":
            raise InvalidId(f"symbol {symbol!a} holds {character!a}, which cannot be seen")
    return check_id(spelt, "symbol")


def fnv1a32(data: bytes) -> int:
    """FNV-1a, all 32 bits."""
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & _MASK
    return found


def fmix32(number: int) -> int:
    """The finalizer of Murmur 3: each bit of the 32 depends on all of them. It maps one to one."""
    number ^= number >> 16
    number = number * 0x85EBCA6B & _MASK
    number ^= number >> 13
    number = number * 0xC2B2AE35 & _MASK
    return number ^ number >> 16


class Mixed:
    name = "mixed"

    def spot(self, symbol: str) -> Spot:
        mixed = fmix32(fnv1a32(symbol.encode()))
        return Spot(mixed >> _SHARD_SHIFT, _lane_of(mixed))


class RingV1:
    """Document 004's ring; the lane, which it does not know, is that of `Mixed`."""

    name = "ring_v1"

    def __init__(self) -> None:
        owners = {
            ring_hash(f"shard-{shard}-v{node}"): shard
            for shard in range(SHARDS)
            for node in range(VIRTUAL_NODES)
        }
        self.points = tuple(sorted(owners.items()))
        """(hash, shard), from the lowest on."""
        self._hashes = [point for point, _ in self.points]

    def spot(self, symbol: str) -> Spot:
        at = bisect_left(self._hashes, ring_hash(symbol))
        _, shard = self.points[at if at < len(self.points) else 0]
        return Spot(shard, _lane_of(fmix32(fnv1a32(symbol.encode()))))


def ring_hash(text: str) -> int:
    """FNV-1a without its highest bit, as the document has it."""
    return fnv1a32(text.encode()) & 0x7FFFFFFF


def _lane_of(mixed: int) -> int:
    return mixed >> _LANE_SHIFT & (LANES - 1)


SELECTORS: dict[str, Selector] = {selector.name: selector for selector in (Mixed(), RingV1())}
DEFAULT_SELECTOR = Mixed.name
