"""A world as operators see it and as they change it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import cast

from roost.api.limits import MAX_COUNT, MAX_RATE
from roost.api.queue import (
    ClassView,
    Forecast,
    ForecastInput,
    PersonState,
    PersonView,
    ServerView,
    WorldPatch,
    WorldView,
)
from roost.core.errors import InvalidInput
from roost.waitingroom.model import Line, WorldBoard
from roost.waitingroom.rules import Policy, eta_seconds, wait_seconds
from roost.waitingroom.scripts import Seen

EPOCH = datetime.fromtimestamp(0, UTC)
MICROSECOND = timedelta(microseconds=1)
"""Times are counted in whole ones: a float rounds the last of the year 9999 into one that cannot be shown."""

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


def person_view(
    world: str, user: str, seen: Seen, board: WorldBoard, policy: Policy, now_us: float
) -> PersonView:
    waits = seen.state in ("waiting", "away")
    line = board.lines.get(seen.line)
    moves = waits and line is not None and board.mode != "hold" and not board.is_closed(now_us)
    eta = eta_seconds(seen.rank, line.fast, line.slow) if moves and line is not None else None
    known = policy.class_of(seen.line) if seen.state else ""
    return PersonView(
        user_id=user,
        world=world,
        state=cast(PersonState, seen.state or "unknown"),
        class_name=known,
        nickname=seen.nickname,
        rank=seen.rank,
        away_ahead=seen.away_ahead,
        eta_seconds=eta[0] if eta else None,
        eta_high_seconds=eta[1] if eta else None,
        server_id=seen.server,
        left_ms=seen.left_ms,
        cause=seen.cause,
    )


def forecast_view(board: WorldBoard, policy: Policy, asked: ForecastInput) -> Forecast:
    """The world with the change that is asked about, and how long its line would take."""
    check_bounds(asked.limit, asked.rate)
    limit = board.limit if asked.limit == -1 else asked.limit
    kept_rate = float(board.numbers["rate"]) if "rate" in board.numbers else None
    rate = kept_rate if asked.rate == -1 else asked.rate
    leaving = asked.leaving_per_second
    if leaving is None:
        leaving = sum(line.slow for line in board.lines.values()) / 1000
    waiting = board.waiting if asked.waiting is None else asked.waiting
    free = max(0, board.capacity_under(limit) - board.inside - board.offers - board.held)
    issue = policy.most_per_second if rate is None else min(rate, policy.most_per_second)
    return Forecast(
        waiting=waiting,
        free=free,
        leaving_per_second=round(leaving, 3),
        issue_per_second=issue,
        median_seconds=wait_seconds((waiting + 1) // 2, free, leaving, issue),
        last_seconds=wait_seconds(waiting, free, leaving, issue),
    )


def check_bounds(limit: int | None, rate: float | None) -> None:
    if limit is not None and not -1 <= limit <= MAX_COUNT:
        raise InvalidInput(f"limit is {limit}, must be 0 to {MAX_COUNT}, or null")
    if rate is not None and rate != -1 and not 0 < rate <= MAX_RATE:
        raise InvalidInput(f"rate is {rate}, must be above 0, or null")


def changes_in(patch: WorldPatch) -> dict[str, str]:
    """A patch as `WaitingRoom.govern` takes it: empty leaves as it is, a dash takes away."""
    check_bounds(patch.limit, patch.rate)
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
    return (EPOCH + us * MICROSECOND).isoformat(timespec="seconds").replace("+00:00", "Z")


def _micros(text: str) -> str:
    """A time in ISO 8601 as the store counts it."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)  # what has no year there could be shown to nobody
    except (ValueError, OverflowError):
        raise InvalidInput(f"opensAt {text[:40]!r} is no time", hint="write 2026-11-20T18:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidInput("opensAt needs a zone", hint="write 2026-11-20T18:00:00Z or …+09:00")
    return str((moment - EPOCH) // MICROSECOND)


def eta_of(board: WorldBoard, now_us: float) -> int | None:
    """How long whoever comes now would wait, likely; None: nobody knows, or the line stands still."""
    if board.mode == "hold" or board.is_closed(now_us):
        return None
    if not board.waiting:
        return 0 if board.free > 0 else None
    line = max(board.lines.values(), key=lambda line: line.waiting)
    eta = eta_seconds(line.waiting + 1, line.fast, line.slow)
    return eta[0] if eta is not None else None
