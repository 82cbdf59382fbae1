"""A world as operators see it and as they change it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from roost.api.limits import MAX_COUNT, MAX_RATE
from roost.api.queue import ClassView, ServerView, WorldPatch, WorldView
from roost.core.errors import InvalidInput
from roost.waitingroom.model import Line, WorldBoard
from roost.waitingroom.rules import Policy

COUNTERS = (
    *("entries", "issued", "expired", "no_shows", "consumed", "gone", "left"),
    *("overadmit", "drift", "lost_writes", "eta_error_ms", "eta_count", "ticket_left_ms"),
)


def world_view(world: str, server_type: str, board: WorldBoard, policy: Policy, now_us: float) -> WorldView:
    """`now_us` decides whether the seed of the draw may be seen: not before the world is open."""
    seed = board.numbers.get("seed", "")
    return WorldView(
        world=world,
        server_type=server_type,
        mode=board.mode,  # type: ignore[arg-type]
        message=board.message,
        revision=board.number("revision"),
        waiting=board.waiting,
        away=board.away,
        tickets=board.offers,
        held=board.held,
        inside=board.inside,
        capacity=board.capacity,
        free=board.free,
        limit=board.limit,
        rate=float(board.numbers["rate"]) if "rate" in board.numbers else None,
        opens_at=_iso(board.opens_at_us) if board.opens_at_us else None,
        draw_digest=hashlib.sha256(seed.encode()).hexdigest() if seed else "",
        draw_seed="" if board.is_closed(now_us) else seed,
        classes=[_class_view(policy, name, line) for name, line in board.lines.items()],
        servers=[
            ServerView(row.server_id, row.life, row.capacity, row.inside, row.url, row.doubt, row.open)
            for row in board.servers
        ],
        pending=sorted(row.server_id for row in board.pending),
        counters={name: board.number(name) for name in COUNTERS},
    )


def changes_in(patch: WorldPatch) -> dict[str, str]:
    """A patch as `WaitingRoom.govern` takes it: empty leaves as it is, a dash takes away."""
    if patch.limit is not None and not -1 <= patch.limit <= MAX_COUNT:
        raise InvalidInput(f"limit is {patch.limit}, must be 0 to {MAX_COUNT}, or null")
    if patch.rate is not None and patch.rate != -1 and not 0 < patch.rate <= MAX_RATE:
        raise InvalidInput(f"rate is {patch.rate}, must be above 0, or null")
    return {
        "mode": patch.mode or "",
        "message": "-" if patch.message is None else patch.message,
        "limit": "-" if patch.limit is None else "" if patch.limit < 0 else str(patch.limit),
        "rate": "-" if patch.rate is None else "" if patch.rate < 0 else f"{patch.rate:g}",
        "opens_at": "-" if patch.opens_at is None else _micros(patch.opens_at) if patch.opens_at else "",
        "expected": "" if patch.revision is None else str(patch.revision),
    }


def _class_view(policy: Policy, name: str, line: Line) -> ClassView:
    class_name = policy.class_of(name)
    return ClassView(class_name, policy.share_of(class_name), line.waiting, line.away, line.fast / 1000)


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _micros(text: str) -> str:
    """A time in ISO 8601 as the store counts it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"opensAt {text[:40]!r} is no time", hint="write 2026-11-20T18:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidInput("opensAt needs a zone", hint="write 2026-11-20T18:00:00Z or …+09:00")
    return str(int(moment.timestamp() * 1_000_000))
