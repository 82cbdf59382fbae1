"""Acts of operators: what a route is as one, and how it comes into the record; once for all routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from roost.core.errors import RoostError, StoreError, TooManyRequests
from roost.core.grants import Grant
from roost.core.networks import Network
from roost.core.ratelimit import Limiter
from roost.web.auth import token_in
from roost.web.peer import client_ip
from roost.web.plain import Asked

if TYPE_CHECKING:
    from roost.web.route import Handler, Request

log = logging.getLogger("roost.web")

CLI = "roost-cli/"
"""What the user agent of the command line begins with."""
BEFORE_S = 1.0
"""How long an act waits to know how things are before it."""
REFUSED_BURST, REFUSED_PER_S = 60, 1 / 60
"""Refused acts of one token that are recorded: none may wash out with attempts what others did."""
Via = Literal["http", "console", "cli"]


class Refusals(Limiter):
    """By the id of the token; one for all routes of a listener."""

    def __init__(self) -> None:
        super().__init__(REFUSED_PER_S, REFUSED_BURST)


@dataclass(frozen=True, slots=True)
class Act:
    """What a route does as an act. Nothing of a request is written down but what is named here."""

    name: str
    """`drain.start`: noun and verb."""
    target: str
    """What it is done to, with the parameters of the path: `instance/{id}`."""
    before: Callable[[Request], Awaitable[Any]] | None = None
    """How things are before it is done."""
    after: Callable[[Any], Any] | None = None
    """What of the answer says how they are now."""
    made: Callable[[Any], str] | None = None
    """The target, where only the answer tells it."""
    counts: Callable[[Asked, Any], bool] | None = None
    """Whether a request is an act at all, by its query and its body (None: not read)."""


@dataclass(frozen=True, slots=True)
class Done:
    """One act, and by whom."""

    action: str
    target: str
    grant: Grant
    address: str
    outcome: Literal["done", "refused"]
    code: str
    request_id: str
    via: Via
    before: Any = None
    after: Any = None


class Recorder(Protocol):
    """Keeps a record of acts."""

    async def record(self, done: Done, *, wait: bool) -> None:
        """Never raises, never takes long; `wait`: whoever acted should find it at once."""


class NoRecorder:
    """Of a server that operators do not act on."""

    async def record(self, done: Done, *, wait: bool) -> None:
        pass


class Acts:
    """The acts of one route."""

    def __init__(self, act: Act, recorder: Recorder, proxies: Sequence[Network], refusals: Refusals) -> None:
        self._act = act
        self._recorder = recorder
        self._proxies = proxies
        self._refusals = refusals

    def recorded(self, handler: Handler) -> Handler:
        """The handler, and a record of what it did."""
        act = self._act

        async def handle(request: Request) -> Any:
            if act.counts is not None and not act.counts(request.http, request.body):
                return await handler(request)
            before = await self._before(request)
            answer = await handler(request)
            await self._done(request, before, answer)
            return answer

        return handle

    async def refused(
        self, http: Asked, request: Request | None, grant: Grant, request_id: str, why: RoostError
    ) -> None:
        """Somebody with a token of ours was refused. A stranger's attempt is none of an operator."""
        act = self._act
        if not grant.token_id or (
            act.counts is not None and not act.counts(http, request.body if request is not None else None)
        ):
            return
        try:
            self._refusals.check(grant.token_id)
        except TooManyRequests:
            return  # it is in the metrics of the route
        done = self._made(http, grant, request_id, _filled(act.target, http.match_info), "refused", why.code)
        await self._recorder.record(done, wait=not isinstance(why, StoreError))

    async def _before(self, request: Request) -> Any:
        """None where it cannot be told: the act itself says why, or does not need it."""
        if self._act.before is None:
            return None
        try:
            async with asyncio.timeout(BEFORE_S):
                return await self._act.before(request)
        except Exception as error:
            log.debug("nothing is known before an act", extra={"reason": str(error)})
            return None

    async def _done(self, request: Request, before: Any, answer: Any) -> None:
        act, target, after = self._act, _filled(self._act.target, request.path), None
        try:
            target = act.made(answer) if act.made is not None else target
            after = act.after(answer) if act.after is not None else None
        except Exception:
            log.exception("an act is recorded in part", extra={"request_id": request.request_id})
        done = self._made(request.http, request.grant, request.request_id, target, "done", "", before, after)
        await self._recorder.record(done, wait=True)

    def _made(
        self,
        http: Asked,
        grant: Grant,
        request_id: str,
        target: str,
        outcome: Literal["done", "refused"],
        code: str,
        before: Any = None,
        after: Any = None,
    ) -> Done:
        address, via = client_ip(http, self._proxies), via_of(http)
        return Done(self._act.name, target, grant, address, outcome, code, request_id, via, before, after)


def via_of(http: Asked) -> Via:
    """By its own word: for people who look, nothing depends on it."""
    if not token_in(http.headers):
        return "console"
    return "cli" if http.headers.get("User-Agent", "").startswith(CLI) else "http"


def _filled(target: str, path: Mapping[str, str]) -> str:
    for name, value in path.items():
        target = target.replace("{" + name + "}", value)
    return target
