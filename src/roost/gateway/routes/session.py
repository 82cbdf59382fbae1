"""Logging in to the console: a token for a cookie that no script can read.

In profile dev a browser on this machine is logged in by itself. So a page of others must not be enough: the
browser says which page asks, and the name in the address must be this machine's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import cast

from roost.api.demo import DEMO
from roost.api.session import LoginInput, Session
from roost.api.tokens import Scope
from roost.core.errors import Forbidden, NotAuthenticated
from roost.core.networks import is_loopback
from roost.gateway.context import Gateway
from roost.tokens.service import LoggedIn
from roost.tokens.sessions import SESSION_S
from roost.version import __version__
from roost.web.auth import COOKIE, check_same_origin, is_own_origin
from roost.web.peer import is_trusted
from roost.web.plain import Asked
from roost.web.route import Header, Request, Route, WithHeaders

PATH = "/auth/v1/session"
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?", re.IGNORECASE)
_OWN_FETCHES = frozenset({"", "none", "same-origin"})
_SET_COOKIE = Header("Set-Cookie", "The session, for a browser.")


def routes(gateway: Gateway) -> list[Route]:
    on = SessionRoutes(gateway)
    return [
        Route(
            "POST",
            PATH,
            on.create_session,
            "Log in with a token: the answer sets a cookie that counts wherever a token does",
            body=LoginInput,
            reply=Session,
            errors=(NotAuthenticated, Forbidden),
            reply_headers=(_SET_COOKIE,),
        ),
        Route(
            "GET",
            PATH,
            on.get_session,
            "Who is logged in; in profile dev a browser on this machine is, by itself",
            reply=Session,
            errors=(NotAuthenticated,),
            reply_headers=(_SET_COOKIE,),
        ),
        Route(
            "DELETE",
            PATH,
            on.remove_session,
            "Log out: the cookie is taken away, and no copy of it counts any more",
            status=204,
            errors=(Forbidden,),
            reply_headers=(_SET_COOKIE,),
        ),
    ]


class SessionRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._tokens = gateway.tokens
        self._settings = gateway.platform.settings
        self._proxies = gateway.proxies
        self._table = gateway.table

    async def create_session(self, request: Request) -> WithHeaders:
        check_same_origin(request.http)  # nobody is logged in as somebody else by a foreign page
        given: LoginInput = request.body
        return self._begun(request.http, await self._tokens.log_in(given.token.strip()))

    async def get_session(self, request: Request) -> WithHeaders:
        http = request.http
        try:
            found = await self._tokens.session(http.cookies.get(COOKIE, ""))
        except NotAuthenticated:
            if not self._is_at_home(http):
                raise
            return self._begun(http, await self._tokens.log_in_as_root())
        return WithHeaders(self._view(found), {"Cache-Control": "no-store"})

    async def remove_session(self, request: Request) -> WithHeaders:
        check_same_origin(request.http)
        await self._tokens.log_out(request.http.cookies.get(COOKIE, ""))
        return WithHeaders(None, {"Set-Cookie": self._cookie(request.http, "", 0)})

    def _begun(self, http: Asked, found: LoggedIn) -> WithHeaders:
        cookie = self._cookie(http, found.session.cookie, SESSION_S)
        return WithHeaders(self._view(found), {"Set-Cookie": cookie, "Cache-Control": "no-store"})

    def _view(self, found: LoggedIn) -> Session:
        session, grant, settings = found.session, found.grant, self._settings
        return Session(
            name=grant.name,
            token_id=grant.token_id,
            scopes=cast(list[Scope], sorted(grant.scopes)),
            csrf=session.csrf,
            profile=settings.profile,
            version=__version__,
            namespace=settings.namespace,
            demo=any(route.path == DEMO for route in self._table),
            expires_at=datetime.fromtimestamp(session.expires_at, UTC).isoformat(),
        )

    def _cookie(self, http: Asked, value: str, lasts_s: int) -> str:
        secure = "; Secure" if self._came_by_https(http) else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"

    def _came_by_https(self, http: Asked) -> bool:
        """By the browser's own word, or by that of a proxy in front of us: TLS ends there."""
        if http.headers.get("Origin", "").lower().startswith("https://"):
            return True
        forwarded = http.headers.get("X-Forwarded-Proto", "").lower()
        return forwarded == "https" and is_trusted(http.remote or "", self._proxies)

    def _is_at_home(self, http: Asked) -> bool:
        """Whether it is a page of ours, or an address that a person typed, on the machine of a developer.

        A foreign page names itself (`Sec-Fetch-Site`, `Origin`); a name of its own that it points at this
        machine stands in `Host`; what comes through a proxy is not from here.
        """
        headers = http.headers
        host, origin = headers.get("Host", ""), headers.get("Origin")
        return (
            self._settings.is_dev()
            and is_loopback(http.remote or "")
            and "X-Forwarded-For" not in headers
            and "Forwarded" not in headers
            and _names_this_machine(host)
            and headers.get("Sec-Fetch-Site", "").lower() in _OWN_FETCHES
            and (origin is None or is_own_origin(origin, host))
        )


def _names_this_machine(host: str) -> bool:
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower().strip("[]")
    return name in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", name) is not None
