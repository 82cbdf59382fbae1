"""Every error that Roost raises, in families by what the caller can do.

    RoostError
    ├── Mistake                 change the call; repeating it as it is cannot help
    │   ├── InvalidId
    │   ├── InvalidInput
    │   ├── InvalidSettings
    │   ├── TokenRefused
    │   ├── NotAuthenticated
    │   ├── Forbidden
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
    ├── StoreError
    │   ├── StoreUnavailable    nothing was done, or doing it again is harmless: try later
    │   │   └── StoreOverloaded
    │   ├── OutcomeUnknown      it may have been done: look before you repeat
    │   └── StoreRefused        the server answered with an error: nothing was done
    │       ├── StoreAccessDenied
    │       └── StoreFull
    └── StartFailed             a process cannot start here; the message says what to change
        ├── DataFolderInUse
        ├── PortTaken
        └── FormatMismatch

Refusals that belong to a rule ("somebody else holds it") are values, not errors.
"""

from __future__ import annotations


class RoostError(Exception):
    """Something went wrong in Roost.

    A class's docstring opens with its default message; `hint` says what to do next.
    """

    hint: str = ""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])
        if hint:
            self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])


class Mistake(RoostError):
    """The call cannot be carried out as it is."""


class InvalidId(Mistake):
    """The id is not usable in a key."""


class InvalidInput(Mistake):
    """The input does not fit."""


class InvalidSettings(Mistake):
    """The settings do not fit together.

    `faults` holds one line for each thing to change, all of them at once.
    """

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"{len(faults)} setting{'s' if len(faults) != 1 else ''} to change:{lines}")


class TokenRefused(Mistake):
    """The token is not valid here."""


class NotAuthenticated(Mistake):
    """A valid API token is needed.

    No token came with the request, or one that nobody issued.
    """

    hint = "send it as X-API-Token or as Authorization: Bearer; `roost up` says where its token file is"


class Forbidden(Mistake):
    """The token does not carry the scope that this needs."""


class QueueRefused(Mistake):
    """The waiting room refuses this."""

    retry_after_s: float = 0.0
    """When to come again; 0: it is not a matter of time."""


class UnknownWorld(QueueRefused):
    """There is no such world."""

    hint = "ROOST_QUEUE__WORLDS names the worlds"


class TooManyRequests(QueueRefused):
    """Too many requests."""

    hint = "wait as long as Retry-After says; nextPollMs in every answer says when to ask again"

    def __init__(self, message: str = "", *, hint: str = "", retry_after_s: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class WorldClosed(QueueRefused):
    """The world takes nobody new."""

    hint = "try again later"
    retry_after_s = 30.0


class TicketRefused(QueueRefused):
    """The ticket is not good here."""

    hint = "ask for the status of the place; a new ticket may be there"


class TicketUsed(TicketRefused):
    """The ticket was used before."""


class ServerFull(QueueRefused):
    """This server takes nobody more."""

    hint = "the ticket stays good: try another server"


class ServerNotReported(QueueRefused):
    """The waiting room does not know this life of the server."""

    hint = "register it, and report its capacity before the first consume"


class PolicyConflict(QueueRefused):
    """Somebody else changed the world meanwhile."""

    hint = "look at it again, then repeat"


class InstanceRefused(Mistake):
    """Discovery refuses this instance."""


class UnknownInstance(InstanceRefused):
    """Nobody knows this instance."""

    hint = "register it (again); `roost instances list` shows who is there"


class RemovedInstance(InstanceRefused):
    """This instance was removed on purpose."""

    hint = "it does not come back by itself; register it anew if it should"


class FencedInstance(InstanceRefused):
    """A later life of this instance is registered."""

    hint = "stop this one: another process took its id"


class ServerIdTaken(InstanceRefused):
    """Another live instance of this type bears this server id."""

    hint = "wait until its lease is over, stop it, or choose another serverId"


class StoreError(RoostError):
    """The store did not do it."""


class StoreUnavailable(StoreError):
    """The store is away.

    The request was certainly not sent, or it is one that may be repeated.
    """

    hint = "nothing was changed; try again shortly (`roost doctor` looks at the store)"


class StoreOverloaded(StoreUnavailable):
    """Too many calls are waiting for the store."""

    hint = "nothing was changed; slow down, or raise ROOST_LINK__MAX_WAITING"


class OutcomeUnknown(StoreError):
    """The request was sent and its reply was lost: it may or may not have been carried out."""

    hint = "read the current state before you repeat it"


class StoreRefused(StoreError):
    """The store answered with an error."""


class StoreAccessDenied(StoreRefused):
    """The store refuses this user or password."""

    hint = "check user, password and ACL rules in the store URL"


class StoreFull(StoreRefused):
    """The store is out of memory and refuses writes."""

    hint = "raise maxmemory of the store; the eviction policy must stay noeviction"


class StartFailed(RoostError):
    """Roost cannot start here."""


class DataFolderInUse(StartFailed):
    """Another process owns this data folder."""


class PortTaken(StartFailed):
    """The port is in use."""


class FormatMismatch(StartFailed):
    """The store holds data of another format."""
