"""Which texts may become part of a key.

A brace would move a key to another cluster slot, a control character would hide in a log, and an
endless id would be paid for in every key. So they are refused where they enter, by one rule.
"""

from __future__ import annotations

import re
import secrets
import time
from functools import lru_cache
from typing import NewType

from roost.core.errors import InvalidId

MAX_ID_BYTES = 128

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0{}\u2028\u2029\ud800-\udfff]")
_is_plain_id = re.compile(r"[!-z|~]{1,128}").fullmatch
_is_plain_name = re.compile(r"[!-9;-z|~]{1,128}").fullmatch
"""Of ASCII alone, as nearly all are: one look is enough to see that nothing is wrong with it."""


def check_id(text: str, what: str = "id") -> str:
    """Return `text` if it may be an id: 1 to 128 bytes of UTF-8, no braces, spaces or control characters."""
    if text and _is_plain_id(text):
        return text
    if not text:
        raise InvalidId(f"{what} is empty")
    if bad := _FORBIDDEN.search(text):
        raise InvalidId(
            f"{what} {_shown(text)} holds {bad.group()!r} at position {bad.start()}",
            hint="braces, spaces and control characters are not allowed in ids",
        )
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_ID_BYTES:
        raise InvalidId(f"{what} {_shown(text)} has {size} bytes, at most {MAX_ID_BYTES} are allowed")
    return text


def check_name(text: str, what: str = "name") -> str:
    """Like `check_id`, and without a colon: names stand in the middle of keys, where a colon separates."""
    if text and _is_plain_name(text):
        return text
    check_id(text, what)
    if ":" in text:
        raise InvalidId(f"{what} {_shown(text)} holds ':'", hint="colons separate the parts of a key")
    return text


def check_service(type_: str, group: str) -> None:
    """Refuse what cannot name a service: type and group are names, or `*` for any."""
    for what, value in (("type", type_), ("group", group)):
        if value != "*":
            check_name(value, what)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


InstanceId = NewType("InstanceId", str)
"""One process, from its registration to its end. A ULID unless its owner chose another id."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_DRAWN = range(70, -1, -10)


def new_ulid(now_ms: int | None = None, entropy: bytes | None = None) -> InstanceId:
    """26 characters that sort by time: 48 bits of milliseconds and 80 random bits."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    drawn = int.from_bytes(secrets.token_bytes(10) if entropy is None else entropy, "big")
    return InstanceId(_time_part(now_ms) + "".join([_PAIRS[(drawn >> shift) & 1023] for shift in _DRAWN]))


@lru_cache(8)
def _time_part(now_ms: int) -> str:
    """Ten characters, which all who come in one millisecond share."""
    return "".join([_PAIRS[(now_ms >> shift) & 1023] for shift in range(40, -1, -10)])
