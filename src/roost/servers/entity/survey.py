"""SURVEY: who is here, and who could be moved, page by page."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import msgspec

from roost.binding.protocol import Unwilling
from roost.servers.entity.departing import willingness
from roost.servers.entity.peering import BAD, MOST_LISTED, encode, refuse_role
from roost.servers.entity.session import Session
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, refusal

if TYPE_CHECKING:
    from roost.servers.entity.host import Host

_decode = msgspec.msgpack.Decoder(tuple[str, str, int]).decode

Line = tuple[str, int, int, int, str, str, int]
"""User, online, idle ms, unsaved, now or later or pinned, why or the party, retry ms."""


def survey(host: Host, call: Call) -> Answer:
    """Method 7: `[type, cursor, limit]` → `[next cursor, [line, …]]`, by user ids; after the last one the
    cursor is empty."""
    if (refused := refuse_role(call, "manager")) is not None:
        return refused
    try:
        type_, cursor, limit = _decode(call.payload)
    except BAD as error:
        return refusal(Code.BAD_REQUEST, f"a survey is [type, cursor, limit]: {error}")
    if type_ != host.type or not 0 < limit <= MOST_LISTED:
        said = f"this server holds users of {host.type}, and lists 1 to {MOST_LISTED} at once"
        return refusal(Code.BAD_REQUEST, said)
    users = heapq.nsmallest(limit, (user for user in host.sessions if user > cursor))
    now = time.monotonic()
    lines = [_line(host.sessions[user], now) for user in users]
    return Answer(encode((users[-1] if len(users) == limit else "", lines)))


def _line(session: Session, now: float) -> Line:
    idle_ms, dirty = max(0, int((now - session.used_at) * 1000)), int(session.unsaved.is_dirty)
    said = willingness(session) if session.is_open else Unwilling("later", "is being loaded", 100)
    online = int(bool(session.client))
    if isinstance(said, Unwilling):
        return (session.user, online, idle_ms, dirty, said.outcome, said.why, said.retry_ms)
    return (session.user, online, idle_ms, dirty, "now", said.party, 0)
