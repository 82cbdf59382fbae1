"""API tokens over HTTP."""

from __future__ import annotations

from roost.api.tokens import NewToken, TokenInput, TokenList
from roost.core.errors import NotFound
from roost.gateway import recording
from roost.gateway.context import Gateway
from roost.web.acts import Act
from roost.web.route import Request, Route


class TokenRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._tokens = gateway.tokens

    async def create_token(self, request: Request) -> NewToken:
        return await self._tokens.create(request.body)

    async def list_tokens(self, request: Request) -> TokenList:
        return TokenList(await self._tokens.list())

    async def token_before(self, request: Request) -> object:
        wanted = request.path["id"]
        return next((recording.of_token(t) for t in await self._tokens.list() if t.id == wanted), None)

    async def revoke_token(self, request: Request) -> None:
        await self._tokens.revoke(request.path["id"])


def routes(gateway: Gateway) -> list[Route]:
    on = TokenRoutes(gateway)
    return [
        Route(
            "POST",
            "/auth/v1/tokens",
            on.create_token,
            "Make a token; its secret is shown this once",
            scope="admin",
            act=Act("token.create", "token", after=recording.of_token, made=recording.made_token),
            body=TokenInput,
            reply=NewToken,
            status=201,
        ),
        Route(
            "GET",
            "/auth/v1/tokens",
            on.list_tokens,
            "Every token, without secrets",
            scope="admin",
            reply=TokenList,
        ),
        Route(
            "DELETE",
            "/auth/v1/tokens/{id}",
            on.revoke_token,
            "Revoke a token; refused everywhere within two seconds",
            scope="admin",
            act=Act("token.revoke", "token/{id}", on.token_before),
            status=204,
            errors=(NotFound,),
        ),
    ]
