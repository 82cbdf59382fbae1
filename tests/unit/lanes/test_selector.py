"""Symbol → shard and lane: stable for ever, even over many symbols, and one spelling for each symbol."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidId
from roost.lanes.ids import LANES, SHARDS
from roost.lanes.selector import (
    DEFAULT_SELECTOR,
    SELECTORS,
    Mixed,
    RingV1,
    Selector,
    fmix32,
    fnv1a32,
    normalise,
    ring_hash,
)

COINS = ["".join(letters) for letters in itertools.product(ascii_uppercase, repeat=3)][::26]
MONTHS = "FGHJKMNQUVXZ"
FUTURES = [
    *("ES", "NQ", "CL", "GC", "ZN", "ZB", "6E", "6J", "HG", "SI", "NG", "RB", "YM", "RTY", "KC"),
    *("CC", "SB", "CT", "ZC", "ZS", "ZW"),
]
SYMBOL_SETS = {
    "crypto pairs": [coin + quote for coin in COINS for quote in ("USDT", "BTC", "ETH", "KRW")],
    "numeric codes": [f"{number:06d}" for number in range(50, 125_050, 50)],
    "futures codes": [
        f"{code}{month}{year}" for code in FUTURES for month in MONTHS for year in range(25, 35)
    ],
}


def test_the_default_is_the_mixed_hash() -> None:
    assert DEFAULT_SELECTOR == "mixed"
    assert {name: selector.name for name, selector in SELECTORS.items()} == {
        "mixed": "mixed",
        "ring_v1": "ring_v1",
    }


@pytest.mark.parametrize(
    ("symbol", "shard"),
    [("AAPL", 13), ("005930", 7), ("BTCUSDT", 2), ("TSLA", 15), ("EURUSD", 7), ("7203", 15)],
)
def test_the_ring_says_what_the_document_says(symbol: str, shard: int) -> None:
    assert RingV1().spot(symbol).shard == shard


@given(st.text(min_size=1, max_size=20))
def test_the_ring_is_the_documents_algorithm_in_its_own_words(symbol: str) -> None:
    ring: dict[int, int] = {}
    for shard in range(16):
        for node in range(8):
            ring[ring_hash(f"shard-{shard}-v{node}")] = shard
    points = sorted(ring)
    symbol = symbol.encode(errors="ignore").decode()
    at = bisect_left(points, ring_hash(symbol))
    assert RingV1().spot(symbol).shard == ring[points[at % len(points)]]


def test_a_symbol_above_the_last_point_belongs_to_the_first() -> None:
    ring = RingV1()
    above = next(text for n in itertools.count() if ring_hash(text := f"S{n}") > ring.points[-1][0])
    assert ring.spot(above).shard == ring.points[0][1]


def test_a_symbol_on_a_point_belongs_to_it() -> None:
    ring = RingV1()
    for shard in range(SHARDS):
        assert ring.spot(f"shard-{shard}-v3").shard == shard


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)]
)
def test_fnv_is_the_published_one(data: bytes, expected: int) -> None:
    assert fnv1a32(data) == expected


@pytest.mark.parametrize(("number", "expected"), [(0, 0), (1, 0x514E28B7), (0xFFFFFFFF, 0x81F16F39)])
def test_the_finalizer_is_the_published_one(number: int, expected: int) -> None:
    assert fmix32(number) == expected


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
@given(symbol=st.text(st.characters(codec="utf-8"), max_size=32))
def test_shard_and_lane_are_in_range_and_never_negative(selector: Selector, symbol: str) -> None:
    shard, lane = selector.spot(symbol)
    assert 0 <= shard < SHARDS
    assert 0 <= lane < LANES
    assert selector.spot(symbol) == (shard, lane)


def test_a_hash_with_its_highest_bit_is_a_place_like_any_other() -> None:
    """`abs` of the smallest 32-bit number is negative elsewhere, and half of all hashes have that bit."""
    symbols = [symbol for symbol in SYMBOL_SETS["numeric codes"] if fnv1a32(symbol.encode()) >> 31]
    assert len(symbols) > 1_000
    for selector in SELECTORS.values():
        assert {selector.spot(symbol).shard for symbol in symbols} <= set(range(SHARDS))


@pytest.mark.parametrize("symbols", SYMBOL_SETS.values(), ids=SYMBOL_SETS)
def test_the_fullest_shard_has_less_than_a_quarter_more_than_the_mean(symbols: list[str]) -> None:
    assert len(set(symbols)) >= 2_500
    shares = Counter(SELECTORS[DEFAULT_SELECTOR].spot(symbol).shard for symbol in symbols)
    assert len(shares) == SHARDS
    assert max(shares.values()) / (len(symbols) / SHARDS) < 1.25


def test_symbols_that_differ_in_the_last_byte_are_spread() -> None:
    """Eight points of the documented ring lie within an 18th of it; by the default they are anywhere."""
    families = [[f"SYM{n}-{last}" for last in range(8)] for n in range(200)]
    shards = [len({Mixed().spot(symbol).shard for symbol in family}) for family in families]
    assert sum(shards) / len(shards) > 6, "chance gives 6.45"
    for shard in range(SHARDS):
        points = [ring_hash(f"shard-{shard}-v{node}") for node in range(8)]
        assert (max(points) - min(points)) / 2**31 < 0.055


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
@pytest.mark.parametrize("workers", [2, 3, 4, 8, 64])
def test_the_symbols_of_one_shard_use_all_its_workers_evenly(selector: Selector, workers: int) -> None:
    """Lanes from the shard's own bits would put a whole shard on one worker."""
    used = [Counter[int]() for _ in range(SHARDS)]
    for number in range(16_000):
        shard, lane = selector.spot(f"{number:06d}")
        used[shard][lane % workers] += 1
    for loads in used:
        mean = loads.total() / workers
        assert len(loads) > 0.9 * workers
        assert max(loads.values()) < mean + 6 * mean**0.5


@pytest.mark.parametrize(
    "typed", ["AAPL", "aapl", " AAPL ", "\tAAPL\r\n", "ＡＡＰＬ", "\u3000aapl", "aA\uff30l"]
)
def test_spellings_of_one_symbol_are_one(typed: str) -> None:
    assert normalise(typed) == "AAPL"


@pytest.mark.parametrize(
    "typed",
    [
        *("", " ", "A B", "A\tB", "A\xa0B", "{A}", "A}", "A\x00", "A\x7f", "\x1fA", "A\u200b", "\ufeffA"),
        *("A\u202eB", "A\ud800", "A\ue000", "A\u0378", "A" * 33, "A" * 1_000_000, "\ufdfa\ufdfa"),
    ],
    ids=lambda typed: ascii(typed[:12]),
)
def test_what_is_no_symbol_is_refused(typed: str) -> None:
    with pytest.raises(InvalidId, match="symbol"):
        normalise(typed)


def test_a_refusal_repeats_no_control_characters() -> None:
    with pytest.raises(InvalidId) as refused:
        normalise("A\x1b[31mB")
    assert refused.value.message.isprintable()


def test_symbols_of_every_usual_form_are_taken_as_they_are() -> None:
    for symbol in ("BRK.B", "XAU/USD", "KRW-BTC", "^GSPC", "@ES", "ES=F", "삼성전자", "NYSE:IBM", "A" * 32):
        assert normalise(symbol) == symbol


def again(symbol: str) -> bool:
    """Whether what was normalised stays as it is; what is refused counts as well."""
    try:
        once = normalise(symbol)
    except InvalidId:
        return True
    return normalise(once) == once


def test_what_is_normalised_stays_as_it_is_for_every_character() -> None:
    assert [code for code in range(0x30000) if not again(f"A{chr(code)}b")] == []


@given(st.text(max_size=12))
def test_what_is_normalised_stays_as_it_is_for_every_text(symbol: str) -> None:
    assert again(symbol)
