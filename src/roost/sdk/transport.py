"""What a client needs of the other side. Each way there is one implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from roost.api.discovery import (
    Beat,
    BeatReply,
    Change,
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


class Transport(Protocol):
    """The verbs of discovery and of a door. Each raises the same errors in the same cases."""

    async def register(self, given: RegisterInput) -> Registered: ...

    async def heartbeat(self, instance_id: str, beat: Beat) -> BeatReply: ...

    async def discover(self, type_: str, group: str, labels: Sequence[str], verify: bool) -> InstanceList: ...

    async def get(self, instance_id: str) -> InstanceDetail: ...

    async def remove(self, instance_id: str, type_: str, group: str, life: str) -> None: ...

    def watch(self, type_: str, group: str, labels: Sequence[str]) -> AsyncIterator[Change]:
        """Changes without end; may raise when it is cut off, and is then started anew."""

    async def consume(self, given: ConsumeInput) -> ConsumeReply: ...

    async def release(self, world: str, server_id: str, given: ReleaseInput) -> ReleaseReply: ...

    async def report(self, world: str, server_id: str, given: ReportInput) -> ReportReply: ...

    async def close(self) -> None: ...
