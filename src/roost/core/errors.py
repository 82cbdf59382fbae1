"""Every error that Roost raises, in families by what the caller can do.

    RoostError
    ├── Mistake                 change the call; repeating it as it is cannot help
    │   ├── InvalidId
    │   ├── InvalidInput
    │   ├── MalformedJson
    │   ├── InvalidSettings
    │   ├── Unauthorized        show another proof
    │   │   ├── TokenRefused
    │   │   └── NotAuthenticated
    │   ├── Forbidden
    │   ├── NotFound            look for it elsewhere
    │   ├── Conflict            look at what is there now, then decide
    │   ├── Gone                it was there and does not come back by itself
    │   ├── MethodNotAllowed
    │   ├── BodyTooLarge
    │   ├── RequestTimeout      send it faster
    │   ├── UpgradeRequired
    │   ├── QueueRefused        what a waiting room says
    │   │   ├── UnknownWorld        there is no such world
    │   │   ├── TooManyRequests     come again after `retry_after_s`
    │   │   ├── WorldClosed         nobody new is taken: come again later
    │   │   ├── TicketRefused       expired, forged or another's: enter again
    │   │   │   └── TicketUsed      it let somebody in already
    │   │   ├── ServerFull          the ticket stays good: try another server
    │   │   ├── ServerNotReported   report first, then consume
    │   │   └── PolicyConflict      somebody else changed it: look, then repeat
    │   └── InstanceRefused     what discovery says to an instance; each says what the instance may do
    │       ├── UnknownInstance     register again
    │       ├── RemovedInstance     do not come back by yourself
    │       ├── FencedInstance      a later life took over: stop
    │       └── ServerIdTaken       wait until the other is gone, or take another id
    ├── Unavailable             not now: come again after `retry_after_s`
    │   └── NotSent                 another server was not asked: certainly nothing was done
    ├── StoreError
    │   ├── StoreUnavailable    nothing was done, or doing it again is harmless: try later
    │   │   └── StoreOverloaded
    │   ├── OutcomeUnknown      it may have been done: look before you repeat
    │   ├── Internal            the other side failed and does not say why
    │   └── StoreRefused        the server answered with an error: nothing was done
    │       ├── StoreAccessDenied
    │       └── StoreFull
    └── StartFailed             a process cannot start here; the message says what to change
        ├── DataFolderInUse
        ├── PortTaken
        └── FormatMismatch

`code` is the stable word for programs: HTTP bodies, metrics and logs carry it, and `class_of` finds the class
again on the other side. Refusals that belong to a rule ("somebody else holds it") are values, not errors.
"""

from __future__ import annotations

from typing import ClassVar

_BY_CODE: dict[str, type[RoostError]] = {}


class RoostError(Exception):
    """Something went wrong in Roost.

    A class's docstring opens with its default message; `hint` says what to do next.
    """

    code: ClassVar[str] = ""
    """Empty: it never reaches a client by its own name, but by the nearest class above that has one."""
    hint: str = ""
    retry_after_s: float = 0.0
    """When to come again; 0: it is not a matter of time, or nobody knows."""

    def __init_subclass__(cls) -> None:
        if code := cls.__dict__.get("code"):
            if code in _BY_CODE:
                raise TypeError(f"{cls.__name__} and {_BY_CODE[code].__name__} have the same code {code}")
            _BY_CODE[code] = cls

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])
        if hint:
            self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])


def class_of(code: str) -> type[RoostError]:
    """The class that a code stands for; `RoostError` for one that is not known here."""
    return _BY_CODE.get(code, RoostError)


def with_codes() -> list[type[RoostError]]:
    return list(_BY_CODE.values())


class Mistake(RoostError):
    """The call cannot be carried out as it is."""


class InvalidId(Mistake):
    """The id is not usable in a key."""

    code = "INVALID_ID"


class InvalidInput(Mistake):
    """The input does not fit."""

    code = "INVALID_INPUT"


class MalformedJson(Mistake):
    """The body is not JSON."""

    code = "MALFORMED_JSON"
    hint = "send a JSON object in UTF-8"


class InvalidSettings(Mistake):
    """The settings do not fit together.

    `faults` holds one line for each thing to change, all of them at once.
    """

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"{len(faults)} setting{'s' if len(faults) != 1 else ''} to change:{lines}")


class Unauthorized(Mistake):
    """What was shown does not prove enough."""


class TokenRefused(Unauthorized):
    """The token is not valid here."""

    code = "TOKEN_REFUSED"


class NotAuthenticated(Unauthorized):
    """A valid API token is needed.

    No token came with the request, or one that nobody issued.
    """

    code = "UNAUTHENTICATED"
    hint = "send it as X-API-Token or as Authorization: Bearer; `roost up` says where its token file is"


class Forbidden(Mistake):
    """The token does not carry the scope that this needs."""

    code = "FORBIDDEN"


class NotFound(Mistake):
    """There is nothing at this address."""

    code = "NOT_FOUND"


class Conflict(Mistake):
    """It does not fit what is there now."""


class Gone(Mistake):
    """It was there and is not any more."""


class MethodNotAllowed(Mistake):
    """This address does not take that method."""

    code = "METHOD_NOT_ALLOWED"
    allowed: tuple[str, ...] = ()


class BodyTooLarge(Mistake):
    """The request body is too large."""

    code = "BODY_TOO_LARGE"


class RequestTimeout(Mistake):
    """The request did not arrive whole in time."""

    code = "REQUEST_TIMEOUT"
    hint = "send the whole body at once"


class UpgradeRequired(Mistake):
    """This address speaks WebSocket."""

    code = "UPGRADE_REQUIRED"
    hint = "connect with a WebSocket client; the ticket was not used"


class Unavailable(RoostError):
    """It cannot be done just now."""

    code = "UNAVAILABLE"
    hint = "try again shortly"


class NotSent(Unavailable):
    """The request did not reach the other server, or was refused there before anything was done."""

    code = "NOT_SENT"
    hint = "nothing was changed; try again shortly"


class QueueRefused(Mistake):
    """The waiting room refuses this."""


class UnknownWorld(QueueRefused, NotFound):
    """There is no such world."""

    code = "UNKNOWN_WORLD"
    hint = "ROOST_QUEUE__WORLDS names the worlds"


class TooManyRequests(QueueRefused):
    """Too many requests."""

    code = "TOO_MANY_REQUESTS"
    hint = "wait as long as Retry-After says; nextPollMs in every answer says when to ask again"

    def __init__(self, message: str = "", *, hint: str = "", retry_after_s: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class WorldClosed(QueueRefused):
    """The world takes nobody new."""

    code = "WORLD_CLOSED"
    hint = "try again later"
    retry_after_s = 30.0


class TicketRefused(QueueRefused, Unauthorized):
    """The ticket is not good here."""

    code = "TICKET_REFUSED"
    hint = "ask for the status of the place; a new ticket may be there"


class TicketUsed(TicketRefused):
    """The ticket was used before."""

    code = "TICKET_USED"


class ServerFull(QueueRefused, Conflict):
    """This server takes nobody more."""

    code = "SERVER_FULL"
    hint = "the ticket stays good: try another server"


class ServerNotReported(QueueRefused, Conflict):
    """The waiting room does not know this life of the server."""

    code = "SERVER_NOT_REPORTED"
    hint = "register it, and report its capacity before the first consume"


class PolicyConflict(QueueRefused, Conflict):
    """Somebody else changed the world meanwhile."""

    code = "POLICY_CONFLICT"
    hint = "look at it again, then repeat"


class InstanceRefused(Mistake):
    """Discovery refuses this instance."""


class UnknownInstance(InstanceRefused, NotFound):
    """Nobody knows this instance."""

    code = "UNKNOWN"
    hint = "register it (again); `roost instances list` shows who is there"


class RemovedInstance(InstanceRefused, Gone):
    """This instance was removed on purpose."""

    code = "REMOVED"
    hint = "it does not come back by itself; register it again if it should"


class FencedInstance(InstanceRefused, Conflict):
    """A later life of this instance is registered."""

    code = "FENCED"
    hint = "stop this one: another process took its id"


class ServerIdTaken(InstanceRefused, Conflict):
    """Another live instance of this type has this server id."""

    code = "SERVER_ID_TAKEN"
    hint = "wait until its lease is over, stop it, or choose another serverId"


class StoreError(RoostError):
    """The store did not do it."""


class StoreUnavailable(StoreError):
    """The store is away.

    The request was certainly not sent, or it is one that may be repeated.
    """

    code = "STORE_AWAY"
    hint = "nothing was changed; try again shortly (`roost doctor` looks at the store)"


class StoreOverloaded(StoreUnavailable):
    """Too many calls are waiting for the store."""

    code = "STORE_OVERLOADED"
    hint = "nothing was changed; slow down, or raise ROOST_LINK__MAX_WAITING"


class OutcomeUnknown(StoreError):
    """The request was sent and its reply was lost: it may or may not have been carried out."""

    code = "OUTCOME_UNKNOWN"
    hint = "read the current state before you repeat it"


class Internal(StoreError):
    """The other side failed."""

    code = "INTERNAL"


class StoreRefused(StoreError):
    """The store answered with an error."""

    code = "STORE_REFUSED"


class StoreAccessDenied(StoreRefused):
    """The store refuses this user or password."""

    code = "STORE_ACCESS_DENIED"
    hint = "check user, password and ACL rules in the store URL"


class StoreFull(StoreRefused):
    """The store is out of memory and refuses writes."""

    code = "STORE_FULL"
    hint = "raise maxmemory of the store; the eviction policy must stay noeviction"


class StartFailed(RoostError):
    """Roost cannot start here."""


class DataFolderInUse(StartFailed):
    """Another process owns this data folder."""


class PortTaken(StartFailed):
    """The port is in use."""


class FormatMismatch(StartFailed):
    """The store holds data of another format."""


NOT_NOW = (StoreUnavailable, Unavailable, TooManyRequests, RequestTimeout)
"""Nothing was done, and the same call may be taken a moment later."""
CURABLE = (StoreError, *NOT_NOW)
"""The call was not refused: what it asks for may be done already, or the same call may be taken later."""
