"""docs/lane-vectors.json: what a client in another language must compute as we do.

`python -m roost.lanes.vectors > docs/lane-vectors.json` makes it anew. It changes only if a promise does.
"""

from __future__ import annotations

import json
from typing import Any

from roost.core.errors import InvalidId
from roost.lanes import ids
from roost.lanes.ids import ClockBehind, LaneIds
from roost.lanes.selector import SELECTORS, RingV1, fmix32, fnv1a32, normalise

ABOUT = (
    "Golden vectors of lanes. 64-bit numbers are texts. `hashes`: FNV-1a-32 over UTF-8 and the Murmur 3 "
    "finalizer of it. `symbols`: as typed and as hashed; null is refused. `ring`: the points of ring_v1, "
    "hash and shard, in order. `places`: shard and lane by selector. `ids`: packing and unpacking both give "
    "the other. `issued`: the ids of one lane of shard 5 as the clock steps; a refusal says how far "
    "the lane is ahead of the clock."
)
SYMBOLS = (
    *("AAPL", "005930", "BTCUSDT", "TSLA", "EURUSD", "7203", "ETHUSDT", "ESZ26", "BRK.B", "MSFT", "KRW-BTC"),
    *("삼성전자", "A", "0", "XAU/USD", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"),
)
TYPED = (
    *("AAPL", "aapl", " AAPL ", "AAPL\n", "ＡＡＰＬ", "btcUsdt", "straße", "É", "e\u0301", "삼성전자"),
    *("", " ", "A B", "{AAPL}", "A\u200bB", "A\x00B", "A" * 33),
)
NOW_MS = 1_795_000_000_123
PARTS = (
    *((ids.EPOCH_MS, 0, 0, 1), (ids.EPOCH_MS + 1, 0, 0, 0), (NOW_MS, 13, 17, 5), (NOW_MS, 15, 63, 4095)),
    *((NOW_MS, 0, 0, 0), (ids.EPOCH_MS + 2**31 + 1, 1, 2, 3), (ids.LAST_MS, 15, 63, 4095)),
)
CLOCK = (0, 0, 1, 1, -1, -1000, 2, 1000, -4000, -4001, 999, 86_400_000)
"""When ids are asked for, in ms from `NOW_MS`."""


def vectors() -> dict[str, Any]:
    return {
        "about": ABOUT,
        "version": 1,
        "hashes": [_hashed(text) for text in ("", "a", "foobar", *SYMBOLS)],
        "symbols": [{"typed": typed, "symbol": _spelt(typed)} for typed in TYPED],
        "ring": [f"{point}:{shard}" for point, shard in RingV1().points],
        "places": [_placed(symbol) for symbol in SYMBOLS],
        "epochMs": str(ids.EPOCH_MS),
        "ids": [_packed(ids.Parts(*parts)) for parts in PARTS],
        "issued": _issued(),
    }


def document() -> str:
    return json.dumps(vectors(), indent=1) + "\n"


def _hashed(text: str) -> dict[str, Any]:
    found = fnv1a32(text.encode())
    return {"text": text, "fnv1a32": found, "fmix32": fmix32(found)}


def _spelt(typed: str) -> str | None:
    try:
        return normalise(typed)
    except InvalidId:
        return None


def _placed(symbol: str) -> dict[str, Any]:
    spots = {name: selector.spot(symbol) for name, selector in SELECTORS.items()}
    return {"symbol": symbol} | {name: f"{spot.shard}:{spot.lane}" for name, spot in spots.items()}


def _packed(parts: ids.Parts) -> dict[str, Any]:
    return {"id": str(ids.pack(*parts)), **parts._asdict(), "ms": str(parts.ms)}


def _issued() -> list[dict[str, Any]]:
    source, lane = LaneIds(5), 42
    rows = []
    for step_ms in CLOCK:
        found = source.next(lane, NOW_MS + step_ms)
        row: dict[str, Any] = {"nowMs": str(NOW_MS + step_ms), "lane": lane}
        if isinstance(found, ClockBehind):
            rows.append(row | {"aheadMs": found.ahead_ms})
        else:
            rows.append(row | {"id": str(found)})
    return rows


if __name__ == "__main__":
    print(document(), end="")
