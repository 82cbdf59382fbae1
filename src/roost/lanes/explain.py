"""What a number that should be an order id looks like: for rejects, and for `roost orders explain-id`.

A number fits a format if the time in it is one at which it can have been made. Several formats may fit; the
one whose time is nearest to now is named first, as clients mostly send what they have just got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from roost.lanes.ids import END, LAUNCHED_MS, extract_time, is_plausible, unpack

_DAY_MS = 86_400_000
MOST_GUESSES = 2
_LARGEST_COUNTER = 10**11
"""No table has counted further; what is above, and fits nothing else, is random."""


class Format(NamedTuple):
    name: str
    since_ms: int
    """Earlier ids of the format do not exist, or are not told from small numbers."""
    read: Callable[[int], int]
    """Number → milliseconds since 1970."""


_UNIX_SINCE_MS = 1_000_000_000_000
"""2001-09-09: below this the units of unix time overlap with counters."""


def _snowflake(epoch_ms: int, shift: int, unit_ms: int = 1) -> tuple[int, Callable[[int], int]]:
    return epoch_ms, lambda number: epoch_ms + (number >> shift) * unit_ms


FORMATS = (
    Format("a unix timestamp in s", _UNIX_SINCE_MS, lambda number: number * 1000),
    Format("a unix timestamp in ms", _UNIX_SINCE_MS, lambda number: number),
    Format("a unix timestamp in us", _UNIX_SINCE_MS, lambda number: number // 1000),
    Format("a unix timestamp in ns", _UNIX_SINCE_MS, lambda number: number // 1_000_000),
    Format("a Twitter snowflake", *_snowflake(1_288_834_974_657, 22)),
    Format("a Discord snowflake", *_snowflake(1_420_070_400_000, 22)),
    Format("an Instagram id", *_snowflake(1_314_220_021_721, 23)),
    Format("a Sonyflake", *_snowflake(1_409_529_600_000, 24, 10)),
    Format("a Sonyflake 2", *_snowflake(1_735_689_600_000, 24, 10)),
)


def explain(number: int, now_ms: int, launched_ms: int = LAUNCHED_MS) -> str:
    """One line for people; it begins with the number."""
    if number <= 0:
        return f"{number} is no order id: they are above 0"
    if number >= END:
        return f"{number} is no order id: they are below 2^63"
    if is_plausible(number, now_ms, launched_ms):
        return f"{number} can be an order id: {_as_ours(number)}"
    if now_ms < (made_ms := extract_time(number)) <= now_ms + _DAY_MS:
        return f"{number} is an order id of the future, {made_ms - now_ms} ms ahead: {_as_ours(number)}"
    if guesses := list(_guesses(number, now_ms))[:MOST_GUESSES]:
        return f"{number} is no order id: it looks like {' or '.join(guesses)}"
    return f"{number} is no order id: it looks random; read as one it would be {_as_ours(number)}"


def _guesses(number: int, now_ms: int) -> Iterator[str]:
    """What it may be, the likeliest first."""
    if dated := _as_digits(number, now_ms):
        yield f"yyyymmddHHMMSS{_more(number)} of {_when(dated)}"
    if number < _UNIX_SINCE_MS // 1000:
        yield "an auto-increment number"
        return
    fitting = [
        (made_ms, form.name)
        for form in FORMATS
        if form.since_ms + _DAY_MS <= (made_ms := form.read(number)) <= now_ms + _DAY_MS
    ]
    for made_ms, name in sorted(fitting, reverse=True):
        yield f"{name} of {_when(made_ms)}" if "timestamp" in name else f"{name} of {_when(made_ms)[:4]}"
    if number < _LARGEST_COUNTER:
        yield "an auto-increment number"


def _as_digits(number: int, now_ms: int) -> int | None:
    """The time of a number that is written as one: 20261118003136, with or without digits after it."""
    text = str(number)
    if len(text) < 14:
        return None
    try:
        made = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    made_ms = int(made.timestamp() * 1000)
    return made_ms if 946_684_800_000 <= made_ms <= now_ms + _DAY_MS else None


def _more(number: int) -> str:
    digits = len(str(number)) - 14
    return f" and {digits} digits more" if digits else ""


def _as_ours(number: int) -> str:
    parts = unpack(number)
    return f"shard {parts.shard}, lane {parts.lane}, {_when(parts.ms)}, sequence {parts.sequence}"


def _when(ms: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
