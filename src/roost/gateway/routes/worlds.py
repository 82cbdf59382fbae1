"""Worlds over HTTP: what game servers report, what operators see and order."""

from __future__ import annotations

from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    Forecast,
    ForecastInput,
    PersonView,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
    WorldList,
    WorldPatch,
    WorldView,
)
from roost.core import errors as e
from roost.core.grants import Target
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.route import Request, Route


def routes(gateway: Gateway) -> list[Route]:
    on = WorldRoutes(gateway)
    return [*_for_servers(on), *_for_operators(on), *_for_lookers(on)]


def _for_servers(on: WorldRoutes) -> list[Route]:
    server = "/queue/v1/worlds/{world}/servers/{serverId}"
    return [
        Route(
            "POST",
            "/api/queue/tickets/consume",
            on.consume_ticket,
            "Let the holder of a ticket into a game server; only this admits",
            scope="gameserver",
            acts_on=on.consumes,
            body=ConsumeInput,
            reply=ConsumeReply,
            errors=(e.UnknownWorld, e.TicketRefused, e.TicketUsed, e.ServerFull, e.ServerNotReported),
        ),
        Route(
            "POST",
            f"{server}/release",
            on.release_user,
            "Somebody has left a game server",
            scope="gameserver",
            acts_on=on.acts_on_server,
            body=ReleaseInput,
            reply=ReleaseReply,
            errors=(e.UnknownWorld,),
        ),
        Route(
            "POST",
            f"{server}/report",
            on.report_users,
            "How many people are on a game server",
            scope="gameserver",
            acts_on=on.acts_on_server,
            body=ReportInput,
            reply=ReportReply,
            errors=(e.UnknownWorld, e.FencedInstance),
        ),
    ]


def _for_operators(on: WorldRoutes) -> list[Route]:
    world = "/queue/v1/worlds/{world}"
    return [
        Route("GET", "/queue/v1/worlds", on.list_worlds, "Every world", scope="read", reply=WorldList),
        Route(
            "GET",
            world,
            on.get_world,
            "One world: its line, its servers, its numbers",
            scope="read",
            reply=WorldView,
            errors=(e.UnknownWorld,),
        ),
        Route(
            "PATCH",
            world,
            on.update_world,
            "Change mode, message, limit or rate of a world",
            scope="admin",
            act=Act("world.govern", "world/{world}", on.world_before, recording.of_world),
            body=WorldPatch,
            reply=WorldView,
            errors=(e.UnknownWorld, e.PolicyConflict),
        ),
        Route(
            "DELETE",
            f"{world}/people/{{userId}}",
            on.remove_from_queue,
            "Take somebody's place away",
            scope="admin",
            act=Act("world.kick", "world/{world}/people/{userId}"),
            errors=(e.UnknownWorld,),
            status=204,
        ),
        Route(
            "DELETE",
            f"{world}/servers/{{serverId}}",
            on.remove_server,
            "Take a server's present life out of the ledger, whatever discovery says",
            scope="admin",
            act=Act("world.drop-server", "world/{world}/servers/{serverId}"),
            errors=(e.UnknownWorld, e.UnknownInstance),
            status=204,
        ),
    ]


def _for_lookers(on: WorldRoutes) -> list[Route]:
    world = "/queue/v1/worlds/{world}"
    return [
        Route(
            "POST",
            f"{world}/forecast",
            on.preview_world,
            "How long people would wait under another limit or rate; changes nothing",
            scope="read",
            body=ForecastInput,
            may_lack_body=True,
            reply=Forecast,
            errors=(e.UnknownWorld,),
        ),
        Route(
            "GET",
            f"{world}/people/{{userId}}",
            on.get_person,
            "What somebody has here: their place, ticket or server; looking changes nothing",
            scope="read",
            reply=PersonView,
            errors=(e.UnknownWorld,),
        ),
    ]


class WorldRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._worlds = gateway.platform.worlds

    # -- what a call acts on

    async def consumes(self, request: Request) -> list[Target]:
        given: ConsumeInput = request.body
        return [Target(world=given.world, server_id=given.server_id)]

    async def acts_on_server(self, request: Request) -> list[Target]:
        return [Target(world=request.path["world"], server_id=request.path["serverId"])]

    # -- game servers

    async def consume_ticket(self, request: Request) -> ConsumeReply:
        given: ConsumeInput = request.body
        self._check_life(request, given.server_id, given)
        return await self._worlds.consume(given)

    async def release_user(self, request: Request) -> ReleaseReply:
        given: ReleaseInput = request.body
        self._check_life(request, request.path["serverId"], given)
        return await self._worlds.release(request.path["world"], request.path["serverId"], given)

    async def report_users(self, request: Request) -> ReportReply:
        given: ReportInput = request.body
        self._check_life(request, request.path["serverId"], given)
        return await self._worlds.report(request.path["world"], request.path["serverId"], given)

    def _check_life(
        self, request: Request, server_id: str, given: ConsumeInput | ReleaseInput | ReportInput
    ) -> None:
        """Nobody acts for a server but itself: its life can be read by everybody, so it must be proved."""
        grant = request.grant
        if "admin" in grant.scopes or grant.server_id == server_id:
            return
        try:
            self._worlds.keyring.passes.check_life(given.proof, server_id, given.life)
        except e.TokenRefused:
            raise e.Forbidden(
                f"nothing proves that this is server {server_id[:40]}, life {given.life[:16]}",
                hint="send the `proof` that its registration returned, or use a token made with --server",
            ) from None

    # -- operators

    async def world_before(self, request: Request) -> object:
        return recording.of_world(await self.get_world(request))

    async def list_worlds(self, request: Request) -> WorldList:
        return WorldList([await self._worlds.view(world.name) for world in self._worlds.all()])

    async def get_world(self, request: Request) -> WorldView:
        return await self._worlds.view(request.path["world"])

    async def get_person(self, request: Request) -> PersonView:
        return await self._worlds.person(request.path["world"], request.path["userId"])

    async def preview_world(self, request: Request) -> Forecast:
        return await self._worlds.forecast(request.path["world"], request.body)

    async def update_world(self, request: Request) -> WorldView:
        given: WorldPatch = request.body
        return await self._worlds.govern(request.path["world"], given)

    async def remove_server(self, request: Request) -> None:
        await self._worlds.drop_server(request.path["world"], request.path["serverId"])

    async def remove_from_queue(self, request: Request) -> None:
        await self._worlds.kick(request.path["world"], request.path["userId"])
