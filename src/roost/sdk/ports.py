"""What a client needs of the other side, one small protocol for each capability: the ports of the SDK.

A transport is one way to Roost and has every port. A capability that is added brings a protocol here, its
two implementations (`http/<name>.py`, `direct/<name>.py`), and one line in each transport.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

from roost.api.binding import Home
from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
    EndCause,
    InstanceDetail,
    InstanceList,
    Registered,
    RegisterInput,
)
from roost.api.queue import (
    ConsumeInput,
    ConsumeReply,
    ReleaseInput,
    ReleaseReply,
    ReportInput,
    ReportReply,
)
from roost.core.events import Mark


class Registry(Protocol):
    """Discovery: who is there. Each verb raises the same errors in the same cases on every transport."""

    async def register(self, given: RegisterInput) -> Registered: ...

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply: ...

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList: ...

    async def get(self, instance_id: str) -> InstanceDetail: ...

    async def remove(
        self, instance_id: str, type_: str, group: str, life: str, cause: EndCause = "terminated"
    ) -> None: ...

    def watch(
        self, type_: str, group: str, labels: Sequence[str], after: Mark | None
    ) -> AsyncGenerator[Change, None]:
        """Changes after the mark of one that was seen, or a snapshot first.

        It ends or raises when it is cut off; a caller that wants to go on calls again.
        """


class Admission(Protocol):
    """The waiting room as a game server sees it. Every verb may be repeated with the same input."""

    async def consume(self, given: ConsumeInput) -> ConsumeReply: ...

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply: ...

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply: ...


class Homes(Protocol):
    """Bindings: which server holds a user."""

    async def home_of(self, type_: str, user: str) -> Home: ...


class Transport(Protocol):
    """One way to Roost, open until it is closed. Used on the event loop that opened it."""

    @property
    def registry(self) -> Registry: ...

    @property
    def admission(self) -> Admission: ...

    @property
    def homes(self) -> Homes: ...

    async def close(self) -> None: ...


OpenTransport = Callable[[], Awaitable[Transport]]
