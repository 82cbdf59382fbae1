"""What the platform keeps of a user who trades: commands without an answer, and which fills were taken.

It stands in the row before the state of the class, so both are written together: a fill counts as taken if
and only if its effect is in the row. The row of a user who never traded holds the state of the class alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from roost.core.errors import Unavailable
from roost.lanes.commands import Amend, Cancel, Method, New, decode_command, encode

MAX_OPEN = 256
"""Commands of a user that wait for their answers; shards remember four times as many."""
MARK: Final = b"\xc1roost-ledger\x01"
"""Rows with a ledger begin with it; so does none without one."""

Ordered = New | Cancel | Amend

_METHODS: Final[dict[type, Method]] = {New: Method.NEW, Cancel: Method.CANCEL, Amend: Method.AMEND}
_decode = msgspec.msgpack.Decoder(tuple[int, list[tuple[int, bytes]], dict[int, int], bytes]).decode


class Ledger:
    """`open`: commands by their number, the oldest first. `cursor`: by shard the last fill that was taken."""

    __slots__ = ("cursor", "next_number", "open")

    def __init__(self) -> None:
        self.next_number = 1
        self.open: dict[int, Ordered] = {}
        self.cursor: dict[int, int] = {}

    def add(self, make: Callable[[int], Ordered]) -> int:
        """A command under the next number."""
        if len(self.open) >= MAX_OPEN:
            raise Unavailable(f"{MAX_OPEN} commands of this user wait for their answers")
        number = self.next_number
        self.open[number] = make(number)
        self.next_number += 1
        return number

    def settle(self, number: int) -> None:
        self.open.pop(number, None)

    @property
    def floor(self) -> int:
        """All below it have their answers."""
        return next(iter(self.open), self.next_number)

    def wrap(self, state: bytes) -> bytes:
        commands = [(int(method_of(command)), encode(command)) for command in self.open.values()]
        return MARK + encode((self.next_number, commands, self.cursor, state))


def method_of(command: Ordered) -> Method:
    return _METHODS[type(command)]


def wrap(ledger: Ledger | None, state: bytes) -> bytes:
    """What the row holds."""
    if ledger is None and state.startswith(MARK):  # a class whose own states look like ours
        ledger = Ledger()
    return state if ledger is None else ledger.wrap(state)


def unwrap(kept: bytes | None) -> tuple[Ledger | None, bytes | None]:
    """The ledger, if there is one, and the state of the class; raises where the ledger is unreadable."""
    if kept is None or not kept.startswith(MARK):
        return None, kept
    ledger = Ledger()
    ledger.next_number, commands, ledger.cursor, state = _decode(kept[len(MARK) :])
    for method, payload in commands:
        command = decode_command(method, payload)
        assert isinstance(command, Ordered), f"method {method} is none of a trader"
        ledger.open[command.client_seq] = command
    return ledger, state
