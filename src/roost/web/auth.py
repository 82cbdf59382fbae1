"""Who asks: the token or the session cookie in a request, and the guard that decides what it may do."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from roost.api.tokens import ALL_SCOPES
from roost.core.errors import Forbidden, NotAuthenticated
from roost.core.grants import Grant
from roost.web.plain import Asked

EVERYTHING = Grant(ALL_SCOPES)
READING = Grant(frozenset({"read"}))
COOKIE = "roost_session"
"""Set by logging in, read wherever a token would be."""
CSRF_HEADER = "X-CSRF-Token"
CHANGES_NOTHING = frozenset({"GET", "HEAD"})


class LoggedIn(Protocol):
    """What a session cookie stands for."""

    @property
    def grant(self) -> Grant: ...

    @property
    def csrf(self) -> str:
        """What only a page of ours can know: it stands in a header of each request that changes something."""


class Guard(Protocol):
    """Decides who a request is from."""

    async def identify(self, presented: str) -> Grant:
        """What this token allows; `NotAuthenticated` if it is nobody's."""

    async def session(self, cookie: str) -> LoggedIn:
        """What this session cookie allows; `NotAuthenticated` if it is forged, over, or its token revoked."""


@dataclass(frozen=True, slots=True)
class OneToken:
    """The guard of a server without tokens of its own: it lets in those that it was started with."""

    token: str = field(repr=False)
    read_token: str = field(default="", repr=False)
    """Of whoever may only look."""

    async def identify(self, presented: str) -> Grant:
        shown = presented.encode(errors="surrogatepass")  # a header need not be UTF-8
        if self.token and hmac.compare_digest(shown, self.token.encode()):
            return EVERYTHING
        if self.read_token and hmac.compare_digest(shown, self.read_token.encode()):
            return READING
        raise NotAuthenticated

    async def session(self, cookie: str) -> LoggedIn:
        raise NotAuthenticated


def token_in(headers: Mapping[str, str]) -> str:
    if token := headers.get("X-API-Token", ""):
        return token
    kind, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def asks_again(guard: Guard, http: Asked) -> Callable[[], Awaitable[object]]:
    """Whether whoever began a stream may still read it: by the token, or else the cookie, of its request."""
    token, cookie = token_in(http.headers), http.cookies.get(COOKIE, "")

    async def check() -> Grant:
        return await guard.identify(token) if token else (await guard.session(cookie)).grant

    return check


async def by_cookie(guard: Guard, http: Asked, cookie: str) -> Grant:
    """Who is logged in. A browser adds the cookie to whatever any page asks for, so what changes something
    must prove that a page of ours asks."""
    session = await guard.session(cookie)
    if http.method not in CHANGES_NOTHING:
        check_same_origin(http)
        shown = http.headers.get(CSRF_HEADER, "").encode(errors="surrogatepass")
        if not hmac.compare_digest(shown, session.csrf.encode()):
            raise Forbidden(
                f"a request by session cookie needs the header {CSRF_HEADER}",
                hint="GET /auth/v1/session tells its value as `csrf`",
            )
    return session.grant


def check_same_origin(http: Asked) -> None:
    """`Forbidden` where a browser says that a page of somebody else asks."""
    origin = http.headers.get("Origin")
    if origin is not None and not is_own_origin(origin, http.headers.get("Host", "")):
        raise Forbidden(
            "this request comes from a page of another origin", hint="use the console of this gateway"
        )


def is_own_origin(origin: str, host: str) -> bool:
    """By name and port alone: a proxy that ends TLS hides the scheme."""
    scheme, _, rest = origin.lower().partition("://")
    return scheme in ("http", "https") and bool(rest) and rest == host.lower()
