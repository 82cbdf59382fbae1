"""Cancels and amends of orders that no shard here knows: index and database are asked, which takes long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from roost.core.errors import RoostError
from roost.lanes.commands import Amend, Cancel
from roost.lanes.dispatch import Dispatch
from roost.lanes.explain import explain
from roost.servers.orders.intake import Intake
from roost.wire.answer import Answer
from roost.wire.connection import Call

log = logging.getLogger("roost.orders")


class LookingUp:
    """`found` goes on with a command and the symbol of its order."""

    def __init__(
        self,
        dispatch: Dispatch,
        intake: Intake,
        clock_ms: Callable[[], int],
        found: Callable[[Call, Cancel | Amend, str], Answer | None],
    ) -> None:
        self._dispatch = dispatch
        self._intake = intake
        self._clock_ms = clock_ms
        self._found = found
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Commands that wait for it."""
        return len(self._tasks)

    def look_up(self, call: Call, command: Cancel | Amend) -> None:
        """Whatever happens, the caller is answered."""
        task = asyncio.get_running_loop().create_task(self._answer(call, command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, call: Call, command: Cancel | Amend) -> None:
        answer = await self._looked_up(call, command)
        # Counted elsewhere from here on.
        self._tasks.discard(cast(asyncio.Task[None], asyncio.current_task()))
        if answer is not None:
            call.reply(answer)

    async def _looked_up(self, call: Call, command: Cancel | Amend) -> Answer | None:
        """None: its order was found, and it is under way."""
        try:
            symbol = await self._dispatch.symbol_of(command.order_id)
            if symbol:
                return self._found(call, command, symbol)
            said = explain(command.order_id, self._clock_ms())
            return self._intake.refused("UNKNOWN_ORDER", f"nobody knows order {command.order_id}: {said}")
        except RoostError as error:
            return self._intake.refused("QUEUE_FULL", f"the order cannot be looked up: {error.message}")
        except Exception:
            log.exception("an order could not be looked up")
            return self._intake.failed("the order could not be looked up")
