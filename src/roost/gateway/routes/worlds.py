"""Worlds over HTTP: what game servers report, what operators see and order."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime

from roost.api.queue import (
    ClassView,
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
    ServerView,
    WorldList,
    WorldPatch,
    WorldView,
)
from roost.app import Platform
from roost.core import errors as e
from roost.gateway.route import Request, Route
from roost.waitingroom import rules
from roost.waitingroom import scripts as answers
from roost.waitingroom.board import Line
from roost.worlds import World

COUNTERS = (
    *("entries", "issued", "expired", "no_shows", "consumed", "gone", "left"),
    *("overadmit", "drift", "lost_writes", "eta_error_ms", "eta_count", "ticket_left_ms"),
)


def world_routes(platform: Platform) -> list[Route]:
    handlers = _Handlers(platform)
    return [*_for_servers(handlers), *_for_operators(handlers)]


def _for_servers(handlers: _Handlers) -> list[Route]:
    server = "/queue/v1/worlds/{world}/servers/{serverId}"
    return [
        Route(
            "POST",
            "/api/queue/tickets/consume",
            handlers.consume,
            "Let the holder of a ticket into a game server; only this admits",
            scope="gameserver",
            body=ConsumeInput,
            reply=ConsumeReply,
            errors=(e.UnknownWorld, e.TicketRefused, e.ServerFull, e.ServerNotReported),
        ),
        Route(
            "POST",
            f"{server}/release",
            handlers.release,
            "Somebody has left a game server",
            scope="gameserver",
            body=ReleaseInput,
            reply=ReleaseReply,
            errors=(e.UnknownWorld,),
        ),
        Route(
            "POST",
            f"{server}/report",
            handlers.report,
            "How many people are on a game server",
            scope="gameserver",
            body=ReportInput,
            reply=ReportReply,
            errors=(e.UnknownWorld, e.FencedInstance),
        ),
    ]


def _for_operators(handlers: _Handlers) -> list[Route]:
    world = "/queue/v1/worlds/{world}"
    return [
        Route("GET", "/queue/v1/worlds", handlers.worlds, "Every world", scope="read", reply=WorldList),
        Route(
            "GET",
            world,
            handlers.world,
            "One world: its line, its servers, its numbers",
            scope="read",
            reply=WorldView,
            errors=(e.UnknownWorld,),
        ),
        Route(
            "PATCH",
            world,
            handlers.govern,
            "Change mode, message, limit or rate of a world",
            scope="admin",
            body=WorldPatch,
            reply=WorldView,
            errors=(e.UnknownWorld, e.PolicyConflict),
        ),
        Route(
            "DELETE",
            f"{world}/people/{{userId}}",
            handlers.kick,
            "Take somebody's place away",
            scope="admin",
            errors=(e.UnknownWorld,),
            status=204,
        ),
    ]


class _Handlers:
    def __init__(self, platform: Platform) -> None:
        self._worlds = platform.worlds

    # -- game servers

    async def consume(self, request: Request) -> ConsumeReply:
        given: ConsumeInput = request.body
        return await self._worlds.consume(given)

    async def release(self, request: Request) -> ReleaseReply:
        given: ReleaseInput = request.body
        return await self._worlds.release(request.path["world"], request.path["serverId"], given)

    async def report(self, request: Request) -> ReportReply:
        given: ReportInput = request.body
        return await self._worlds.report(request.path["world"], request.path["serverId"], given)

    # -- operators

    async def worlds(self, request: Request) -> WorldList:
        return WorldList([await self._view(world) for world in self._worlds.all()])

    async def world(self, request: Request) -> WorldView:
        return await self._view(self._worlds.of(request.path["world"]))

    async def govern(self, request: Request) -> WorldView:
        given: WorldPatch = request.body
        world = self._worlds.of(request.path["world"])
        if given.limit is not None and not -1 <= given.limit <= 2**31:
            raise e.InvalidInput(f"limit is {given.limit}, must be 0 to {2**31}, or null")
        if given.rate is not None and given.rate != -1 and not 0 < given.rate <= 1_000_000:
            raise e.InvalidInput(f"rate is {given.rate}, must be above 0, or null")
        answer = await world.room.govern(
            mode=given.mode or "",
            message="-" if given.message is None else given.message,
            limit="-" if given.limit is None else "" if given.limit < 0 else str(given.limit),
            rate="-" if given.rate is None else "" if given.rate < 0 else f"{given.rate:g}",
            opens_at="-" if given.opens_at is None else _micros(given.opens_at) if given.opens_at else "",
            expected="" if given.revision is None else str(given.revision),
        )
        if isinstance(answer, answers.Conflict):
            raise e.PolicyConflict(f"the world is at revision {answer.revision}")
        return await self._view(world)

    async def kick(self, request: Request) -> None:
        world = self._worlds.of(request.path["world"])
        if isinstance(await world.room.leave(request.path["userId"], kicked=True), answers.Inside):
            raise e.InvalidInput("they are in the game: the game server must let them go")

    async def _view(self, world: World) -> WorldView:
        board, policy = await world.room.read_board(), world.room.policy
        seed = board.numbers.get("seed", "")
        return WorldView(
            world=world.name,
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
            opens_at=iso(board.opens_at_us) if board.opens_at_us else None,
            draw_digest=hashlib.sha256(seed.encode()).hexdigest() if seed else "",
            draw_seed="" if board.is_closed(time.time() * 1e6) else seed,
            classes=[_class_view(policy, name, line) for name, line in board.lines.items()],
            servers=[
                ServerView(row.server_id, row.life, row.capacity, row.inside, row.url, row.doubt)
                for row in board.servers
            ],
            counters={name: board.number(name) for name in COUNTERS},
        )


def iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _micros(text: str) -> str:
    """A time in ISO 8601 as the store counts it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise e.InvalidInput(f"opensAt {text[:40]!r} is no time", hint="write 2026-11-20T18:00:00Z") from None
    if moment.tzinfo is None:
        raise e.InvalidInput("opensAt needs a zone", hint="write 2026-11-20T18:00:00Z or …+09:00")
    return str(int(moment.timestamp() * 1_000_000))


def _class_view(policy: rules.Policy, name: str, line: Line) -> ClassView:
    class_name = policy.class_of(name)
    return ClassView(class_name, policy.share_of(class_name), line.waiting, line.away, line.fast / 1000)
