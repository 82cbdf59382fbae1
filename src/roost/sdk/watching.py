"""A watch that outlives outages, and callbacks made of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from roost.api.discovery import Change, Instance, InstanceList
from roost.core.errors import CURABLE, NOT_NOW, RoostError
from roost.core.events import Mark
from roost.core.loops import END, Loop
from roost.sdk.finding import id_of
from roost.sdk.memory import CONFIRM_AFTER_S, ListGuard
from roost.sdk.ports import Registry

REOPEN_S = 0.5
"""After a stream that was ended in order, by a gateway that stops."""


class Watch:
    """One watch. Waiting for a change is a supervised turn: whatever it raises, the watch goes on.

    Only what repeating cannot cure is raised to the caller: a refusal that is not one of the moment.
    """

    def __init__(
        self,
        registry: Callable[[], Awaitable[Registry]],
        wanted: tuple[str, str, Sequence[str]],
        loop: Loop,
    ) -> None:
        self._registry = registry
        self._wanted = wanted
        """Type, group and labels."""
        self._loop = loop
        self._guard = ListGuard()
        self._stream: AsyncGenerator[Change, None] | None = None
        self._after: Mark | None = None
        """The last change that the caller has; None asks for a snapshot."""
        self._result: Change | RoostError | None = None

    async def changes(self) -> AsyncGenerator[Change, None]:
        """A snapshot first, then every change; another snapshot when continuity cannot be proved."""
        try:
            while True:
                await self._loop.keep_running(self._take_one, REOPEN_S)
                if not isinstance(self._result, Change):
                    assert self._result is not None
                    raise self._result
                yield self._result
        finally:
            await self._hang_up()

    async def _take_one(self) -> object:
        """Wait for a change; END when the caller must hear of something."""
        try:
            change = await self._read()
        except Exception as error:
            if isinstance(error, RoostError) and not isinstance(error, CURABLE):
                self._result = error
                return END
            if not isinstance(error, NOT_NOW):
                self._after = None  # asking for the same again might fail the same way
            raise
        if change is None:
            return None
        self._loop.good()
        if change.event == "snapshot" and not self._is_believed(change):
            await self._hang_up()
            self._after = None
            await asyncio.sleep(CONFIRM_AFTER_S)  # a second snapshot will confirm it or not
            return None
        self._after = Mark(change.revision, int(change.revision_at))
        self._result = change
        return END

    async def _read(self) -> Change | None:
        """The next change of the stream; None when the stream ended."""
        stream, self._stream = self._stream, None
        if stream is None:
            stream = (await self._registry()).watch(*self._wanted, self._after)
        change = await anext(stream, None)
        if change is not None:
            self._stream = stream
        return change

    async def _hang_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    def _is_believed(self, change: Change) -> bool:
        listed = InstanceList(change.instances or [], change.revision, change.revision_at)
        return self._guard.believe(listed, time.monotonic()) is listed


def tell(
    change: Change,
    known: dict[str, tuple[str, str]],
    added: Callable[[Instance], None],
    removed: Callable[[str], None],
) -> None:
    """Turn changes into calls: once per life of an instance, also across snapshots.

    `known` (instance id → its life and what callers call it) is noted before each call, so that a callback
    that raises is not called again for the same.
    """
    listed = change.instances if change.event == "snapshot" else [change.instance]
    if change.event == "snapshot":
        present = {instance.instance_id for instance in change.instances or ()}
        for gone in known.keys() - present:
            removed(known.pop(gone)[1])
    elif change.event == "removed":
        if change.instance_id in known:
            removed(known.pop(change.instance_id)[1])
        return
    for instance in listed or ():
        if instance is not None and known.get(instance.instance_id, ("", ""))[0] != instance.life:
            known[instance.instance_id] = (instance.life, id_of(instance))
            added(instance)
