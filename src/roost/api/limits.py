"""What a field of a message may hold: the bounds that the verbs check, as the OpenAPI document shows them.

Decoding does not refuse what is out of bounds: the verb does, on every transport, with the code that belongs
to it (INVALID_ID, UNKNOWN …). So each bound stands here once; verbs import the number, messages the type.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from roost.core.ids import MAX_ID_BYTES
from roost.core.networks import MAX_URL

MAX_COUNT = 2**31
"""Of users, load and capacity."""
MAX_NUMBER = 2**53
"""What every language counts exactly."""
MAX_WEIGHT = 10_000
MAX_TEXT = 255
"""Characters of a host name, an address, a version, a zone, a label's value."""
MAX_OBJECT_BYTES = 8192
MAX_LABELS = 32
MAX_PORTS = 16
MIN_TTL_S, MAX_TTL_S = 3.0, 3600.0
MAX_NICKNAME = 64
MAX_MESSAGE = 500
MAX_PARTY = 8
MAX_RATE = 1_000_000
MAX_TOKEN_NAME = 100
MAX_BINDINGS = 32
"""Worlds, or types, that one token is bound to."""
MAX_KEYS = 10_000
MAX_COMPARISONS = 5_000_000
"""Keys × servers of one request, with a strategy that looks at every server for each key."""
MAX_SLOW_START_S = 3600
MAX_CANDIDATES = 100
MAX_PREVIEW_NODES = 1000
MAX_RING_POINTS = 4096

STRATEGIES = (
    *("consistent_hash", "hash_ring", "bounded_load", "rendezvous", "round_robin"),
    *("least_connections", "random", "two_choices", "singleton"),
)
"""By name; `roost.balancing` has them."""


def shown(**schema: Any) -> msgspec.Meta:
    """What the OpenAPI document says of a field, in the words of JSON Schema; checks nothing."""
    return msgspec.Meta(extra_json_schema=schema)


_ID_CHARACTER = r"[^\x00-\x20\x7f-\xa0{}\u2028\u2029]"
_NAME_CHARACTER = r"[^\x00-\x20\x7f-\xa0{}:\u2028\u2029]"
_ID_BYTES = f"At most {MAX_ID_BYTES} bytes of UTF-8, no braces, spaces or control characters."
_NAME_BYTES = f"{_ID_BYTES[:-1]}, no colon."

Id = Annotated[
    str, shown(minLength=1, maxLength=MAX_ID_BYTES, pattern=f"^{_ID_CHARACTER}+$", description=_ID_BYTES)
]
Name = Annotated[
    str, shown(minLength=1, maxLength=MAX_ID_BYTES, pattern=f"^{_NAME_CHARACTER}+$", description=_NAME_BYTES)
]
OptionalName = Annotated[
    str, shown(maxLength=MAX_ID_BYTES, pattern=f"^{_NAME_CHARACTER}*$", description=_NAME_BYTES)
]
FileName = Annotated[str, shown(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
WorldName = Annotated[str, shown(pattern="^[A-Za-z0-9_-]{1,32}$")]
Life = Annotated[str, shown(pattern="^[0-9]{1,16}$")]
OptionalLife = Annotated[str, shown(pattern="^[0-9]{0,16}$")]
Text = Annotated[str, shown(maxLength=MAX_TEXT)]
Nickname = Annotated[str, shown(maxLength=MAX_NICKNAME, pattern=r"^[^\x00-\x1f\x7f]*$")]
Announcement = Annotated[str, shown(maxLength=MAX_MESSAGE, pattern=r"^[^\x00-\x1f\x7f]*$")]
Url = Annotated[
    str, shown(maxLength=MAX_URL, pattern=r"^((wss?|https?):/{2}[^\x00-\x20\x7f/?#][^\x00-\x20\x7f]*)?$")
]
Moment = Annotated[str, shown(anyOf=[{"format": "date-time"}, {"const": ""}])]
Count = Annotated[int, shown(minimum=0, maximum=MAX_COUNT)]
Number = Annotated[int, shown(minimum=0, maximum=MAX_NUMBER)]
Weight = Annotated[int, shown(minimum=0, maximum=MAX_WEIGHT)]
Port = Annotated[int, shown(minimum=1, maximum=65535)]
Ports = Annotated[dict[Id, Port], shown(maxProperties=MAX_PORTS)]
Labels = Annotated[dict[Id, Text], shown(maxProperties=MAX_LABELS)]
Object = Annotated[dict[str, Any], shown(description=f"At most {MAX_OBJECT_BYTES} bytes as JSON.")]
Ttl = Annotated[float, shown(anyOf=[{"minimum": MIN_TTL_S, "maximum": MAX_TTL_S}, {"const": 0}])]
PartySize = Annotated[int, shown(minimum=1, maximum=MAX_PARTY)]
Limit = Annotated[int, shown(minimum=-1, maximum=MAX_COUNT)]
Rate = Annotated[float, shown(anyOf=[{"exclusiveMinimum": 0, "maximum": MAX_RATE}, {"const": -1}])]
TokenName = Annotated[str, shown(minLength=1, maxLength=MAX_TOKEN_NAME)]
Strategy = Annotated[str, shown(enum=STRATEGIES)]
SlowStart = Annotated[int, shown(minimum=0, maximum=MAX_SLOW_START_S)]
