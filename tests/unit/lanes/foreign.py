"""Ids of other systems, as they make them at a given time."""

from __future__ import annotations

from datetime import UTC, datetime


def foreign_ids(now_ms: int) -> dict[str, int]:
    """What it looks like → such a number, made at `now_ms`."""
    written = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%d%H%M%S")
    return {
        "an auto-increment number": 10_000_000,
        "a unix timestamp in s": now_ms // 1000,
        "a unix timestamp in ms": now_ms,
        "a unix timestamp in us": now_ms * 1000,
        "a unix timestamp in ns": now_ms * 1_000_000,
        "a Twitter snowflake": (now_ms - 1_288_834_974_657) << 22 | 5 << 12 | 7,
        "a Discord snowflake": (now_ms - 1_420_070_400_000) << 22 | 5 << 12 | 7,
        "an Instagram id": (now_ms - 1_314_220_021_721) << 23 | 341 << 10 | 7,
        "a Sonyflake": (now_ms - 1_409_529_600_000) // 10 << 24 | 7 << 16 | 4321,
        "a Sonyflake 2": (now_ms - 1_735_689_600_000) // 10 << 24 | 7 << 16 | 4321,
        "yyyymmddHHMMSS": int(written),
        "yyyymmddHHMMSS and 4 digits more": int(written + "0042"),
    }
