"""Writing down what was done, without ever holding up or failing the act itself.

An act waits a moment for its entry, so that whoever acted finds it at once. What the store does not take
then waits in memory, bounded, and is written when it can be; every act is in the log of the process as well.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable

from roost.audit.model import Deed, packed
from roost.audit.scripts import AuditScripts
from roost.core.loops import END, Loops

log = logging.getLogger("roost.audit")

WAIT_S = 0.5
MAX_SPOOLED = 1000
WRITE_TIMEOUT_S = 2.0


class _Spooled:
    __slots__ = ("at", "deed", "written")

    def __init__(self, deed: Deed, at: float) -> None:
        self.deed = deed
        self.at = at
        self.written = asyncio.Event()


class AuditWriter:
    """The acts of one process on their way to the store, in order."""

    def __init__(
        self,
        scripts: AuditScripts,
        keep: int,
        loops: Loops,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._append = scripts.append
        self._keep = keep
        self._loop = loops.loop("audit")
        self._clock = clock
        self._spool: deque[_Spooled] = deque()
        self._task: asyncio.Task[None] | None = None
        self.counts: Counter[str] = Counter({"written": 0, "lost": 0})
        """By what became of them; lost: there were too many while the store was away."""

    @property
    def waiting(self) -> int:
        return len(self._spool)

    async def record(self, deed: Deed, *, wait: bool = True) -> None:
        """Never raises. Without `wait` it is only handed over: the store is known to be away."""
        _log(deed)
        if len(self._spool) >= MAX_SPOOLED:
            self._spool.popleft()
            self.counts["lost"] += 1
            log.warning("an act is not in the audit log: too many wait for the store")
        spooled = _Spooled(deed, self._clock())
        self._spool.append(spooled)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._loop.keep_running(self._write))
        if wait and self._loop.failing_since is None:  # else it may take long
            try:
                async with asyncio.timeout(WAIT_S):
                    await spooled.written.wait()
            except TimeoutError:
                pass

    async def _write(self) -> object:
        """One entry, or the end of the loop. An outcome that is not known is written again: better twice."""
        if not self._spool:
            return END
        first = self._spool[0]
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            age_ms = int((self._clock() - first.at) * 1000)
            await self._append(keep=self._keep, age_ms=age_ms, fields=packed(first.deed))
        if self._spool and self._spool[0] is first:
            self._spool.popleft()
        first.written.set()
        self.counts["written"] += 1
        return None

    async def close(self) -> None:
        """What is not written by now is lost, and said to be."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._spool:
            self.counts["lost"] += len(self._spool)
            log.error("acts are not in the audit log", extra={"count": len(self._spool)})


def _log(deed: Deed) -> None:
    log.info(
        "act",
        extra={
            "action": deed.action,
            "target": deed.target,
            "token": deed.name,
            "tokenId": deed.token_id,
            "from": deed.address,
            "outcome": deed.outcome,
            "code": deed.code,
            "request_id": deed.request_id,
            "via": deed.via,
        },
    )
