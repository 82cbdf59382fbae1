"""Entities of the fault tests: a user's book keeps every number that it was told, in the order of telling."""

from __future__ import annotations

from typing import ClassVar

import msgspec

import roost

WINDOW_MS = 500


class Book(roost.Entity):
    """Loses at most its window."""

    durability: ClassVar[roost.WriteBack | roost.Journal] = roost.WriteBack(ms=WINDOW_MS)

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def load(self, state: bytes | None) -> None:
        self.numbers = msgspec.msgpack.decode(state, type=list[int]) if state else []

    def save(self) -> bytes:
        return msgspec.msgpack.encode(self.numbers)

    async def handle(self, message: roost.Message) -> object:
        if "version" in message.body:
            return self.home.version
        number = message.body.get("n")
        if number is None:
            return self.numbers
        self.numbers.append(number)
        return self.home.server_id


class JournaledBook(Book):
    """Loses nothing that it acknowledged."""

    durability = roost.Journal(ms=WINDOW_MS)
