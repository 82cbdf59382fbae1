"""Questions of several users that come in one turn of the loop are one call of the store.

Nobody waits for anybody who is not there yet: what was asked in this turn leaves at its end. Each has an
answer of its own, and gives up on its own. A call that is not answered is answered to none of its users; one
that the store refuses is asked again for each of them alone, so that the bad record of one fails nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from roost.core.errors import OutcomeUnknown, StoreRefused

MOST = 32
"""Users in a call: the store serves nobody else meanwhile."""

Common = TypeVar("Common", bound=Hashable)
One = TypeVar("One")
Answer = TypeVar("Answer")


class Gathered(Generic[Common, One, Answer]):
    """`send` makes a call for those who have `common` in common; `read` tells its reply one by one.

    The call must be one that may be repeated.
    """

    def __init__(
        self,
        send: Callable[[Common, Sequence[One]], asyncio.Future[Any]],
        read: Callable[[Any], Sequence[Answer]],
    ) -> None:
        self._send = send
        self._read = read
        self._waiting: dict[Common, list[tuple[One, asyncio.Future[Answer]]]] = {}

    def ask(self, common: Common, one: One) -> asyncio.Future[Answer]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._go)
        self._waiting.setdefault(common, []).append((one, answer))
        return answer

    def _go(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for common, asked in waiting.items():
            for first in range(0, len(asked), MOST):
                self._call(common, asked[first : first + MOST])

    def _call(self, common: Common, asked: list[tuple[One, asyncio.Future[Answer]]]) -> None:
        try:
            reply = self._send(common, [one for one, _ in asked])
        except Exception as error:
            _fail(asked, error)
        else:
            reply.add_done_callback(partial(self._tell, common, asked))

    def _tell(
        self, common: Common, asked: list[tuple[One, asyncio.Future[Answer]]], reply: asyncio.Future[Any]
    ) -> None:
        if reply.cancelled():
            return _fail(asked, OutcomeUnknown("the call was given up"))
        error = reply.exception()
        if isinstance(error, StoreRefused) and len(asked) > 1:
            for one in asked:
                self._call(common, [one])
            return None
        try:
            if error is not None:
                raise error
            for (_, answer), told in zip(asked, self._read(reply.result()), strict=True):
                if not answer.done():
                    answer.set_result(told)
        except Exception as fault:
            _fail(asked, fault)
        return None


def _fail(asked: Sequence[tuple[Any, asyncio.Future[Any]]], error: Exception) -> None:
    for _, answer in asked:
        if not answer.done():
            answer.set_exception(error)
