"""The spans of an entity server: what it does for users whose entry was sampled."""

from __future__ import annotations

from roost.core.tracing import Span, current_trace
from roost.servers.entity.turns import Turn


class TracedTurn:
    """A turn with its span around it. What it logs and calls carries the context, which ends with it."""

    def __init__(self, turn: Turn, span: Span) -> None:
        self._turn = turn
        self._span = span

    async def run(self) -> None:
        current_trace.set(self._span.context)
        try:
            await self._turn.run()
        finally:
            self._span.end(outcome="done")

    def bounce(self) -> None:
        self._span.end(outcome="bounced")
        self._turn.bounce()
