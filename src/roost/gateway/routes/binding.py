"""Bindings over HTTP: which server holds a user."""

from __future__ import annotations

from typing import Annotated

from roost.api import Message
from roost.api.binding import (
    ENTITY,
    HeldUsers,
    HolderList,
    Home,
    HomeHistory,
    HomeList,
    UnknownBinding,
    UnknownHolder,
)
from roost.api.drain import MoveList
from roost.api.limits import Name, shown
from roost.binding import views
from roost.core.errors import Unavailable
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.route import Request, Route

PAGE = 100


class TypeQuery(Message):
    type: Name = ENTITY


class HomesQuery(Message):
    user_id: Name
    type: Name = ENTITY


class PageQuery(TypeQuery):
    cursor: str = ""
    """Of the page before; empty: from the first user on."""
    limit: Annotated[int, shown(minimum=1, maximum=views.PAGE_LIMIT)] = PAGE


def routes(gateway: Gateway) -> list[Route]:
    on = BindingRoutes(gateway)
    return [_homes(on), *_of_users(on, "/bind/v1/users/{userId}"), *_of_servers(on, "/bind/v1/servers")]


def _homes(on: BindingRoutes) -> Route:
    return Route(
        "GET",
        "/bind/v1/users",
        on.list_homes,
        "Where a user is, for who does not know whether they are anywhere",
        scope="read",
        query=HomesQuery,
        reply=HomeList,
    )


def _of_users(on: BindingRoutes, user: str) -> list[Route]:
    return [
        Route(
            "GET",
            user,
            on.get_home,
            "Which server holds a user, since when and why",
            scope="read",
            query=TypeQuery,
            reply=Home,
            errors=(UnknownBinding,),
        ),
        Route(
            "GET",
            f"{user}/history",
            on.get_home_history,
            "How a user came to where they are, newest first",
            scope="read",
            query=TypeQuery,
            reply=HomeHistory,
        ),
        Route(
            "GET",
            f"{user}/moves",
            on.list_moves,
            "What became of the attempts to move a user to another server, newest first",
            scope="read",
            query=TypeQuery,
            reply=MoveList,
        ),
        Route(
            "DELETE",
            user,
            on.release_home,
            "Take a user away from the server that holds them; what it has not saved may be lost",
            scope="admin",
            act=Act("binding.release", "user/{userId}", on.home_before),
            query=TypeQuery,
            errors=(UnknownBinding, Unavailable),
            status=204,
        ),
    ]


def _of_servers(on: BindingRoutes, server: str) -> list[Route]:
    return [
        Route(
            "GET",
            server,
            on.list_holders,
            "The servers that hold users: who takes new ones, and how many each has",
            scope="read",
            query=TypeQuery,
            reply=HolderList,
        ),
        Route(
            "GET",
            f"{server}/{{serverId}}/users",
            on.list_held_users,
            "The users that a server holds, page by page",
            scope="read",
            query=PageQuery,
            reply=HeldUsers,
            errors=(UnknownHolder,),
        ),
    ]


class BindingRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._bindings = gateway.platform.bindings

    async def home_before(self, request: Request) -> object:
        return recording.of_home(await self.get_home(request))

    async def get_home(self, request: Request) -> Home:
        return await views.home_of(self._bindings, request.query.type, request.path["userId"])

    async def list_homes(self, request: Request) -> HomeList:
        query: HomesQuery = request.query
        try:
            return HomeList([await views.home_of(self._bindings, query.type, query.user_id)])
        except UnknownBinding:
            return HomeList([])

    async def get_home_history(self, request: Request) -> HomeHistory:
        return await views.history_of(self._bindings, request.query.type, request.path["userId"])

    async def list_moves(self, request: Request) -> MoveList:
        return await views.moves_of(self._bindings, request.query.type, request.path["userId"])

    async def release_home(self, request: Request) -> None:
        await views.release_home(self._bindings, request.query.type, request.path["userId"])

    async def list_holders(self, request: Request) -> HolderList:
        return await views.holders(self._bindings, request.query.type)

    async def list_held_users(self, request: Request) -> HeldUsers:
        query: PageQuery = request.query
        return await views.users_of(
            self._bindings, query.type, request.path["serverId"], query.cursor, query.limit
        )
