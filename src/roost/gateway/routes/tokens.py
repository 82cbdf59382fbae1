"""API tokens over HTTP."""

from __future__ import annotations

from roost.api.tokens import NewToken, TokenInput, TokenList
from roost.gateway.auth import Tokens
from roost.gateway.errors import NotFound
from roost.gateway.route import Request, Route


def token_routes(tokens: Tokens) -> list[Route]:
    async def create_token(request: Request) -> NewToken:
        return await tokens.create(request.body)

    async def list_tokens(request: Request) -> TokenList:
        return TokenList(await tokens.list())

    async def revoke_token(request: Request) -> None:
        await tokens.revoke(request.path["id"])

    return [
        Route(
            "POST",
            "/auth/v1/tokens",
            create_token,
            "Make a token; its secret is shown this once",
            scope="admin",
            body=TokenInput,
            reply=NewToken,
            status=201,
        ),
        Route(
            "GET",
            "/auth/v1/tokens",
            list_tokens,
            "Every token, without secrets",
            scope="admin",
            reply=TokenList,
        ),
        Route(
            "DELETE",
            "/auth/v1/tokens/{id}",
            revoke_token,
            "Revoke a token; refused everywhere within two seconds",
            scope="admin",
            status=204,
            errors=(NotFound,),
        ),
    ]
