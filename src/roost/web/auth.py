"""Who asks: the token in a request, and the guard that decides what it may do."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from roost.api.tokens import ALL_SCOPES, Scope
from roost.core.errors import NotAuthenticated
from roost.core.grants import Grant

EVERYTHING = Grant(ALL_SCOPES)


class Guard(Protocol):
    """Decides whether a request may use a route."""

    async def check(self, presented: str, scope: Scope) -> Grant:
        """What this token allows, if it has this scope; else `NotAuthenticated` or `Forbidden`."""


@dataclass(frozen=True, slots=True)
class OneToken:
    """The guard of a server without tokens of its own: it lets in the token that it was started with."""

    token: str = field(repr=False)

    async def check(self, presented: str, scope: Scope) -> Grant:
        shown = presented.encode(errors="surrogatepass")  # a header need not be UTF-8
        if not self.token or not hmac.compare_digest(shown, self.token.encode()):
            raise NotAuthenticated
        return EVERYTHING


def token_in(headers: Mapping[str, str]) -> str:
    if token := headers.get("X-API-Token", ""):
        return token
    kind, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
