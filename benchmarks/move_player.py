"""The class of the users that bench_move.py moves."""

from __future__ import annotations

from roost.sdk.entity import Entity, Message, Now

PADDING = b"x" * 400


class Player(Entity):
    """Counts. It has always changed when it is asked whether it can move: nothing is spared by being clean.

    So a move writes twice, before the user's turn and in it, as one of somebody who plays on does.
    """

    def __init__(self) -> None:
        self.count = 0

    async def load(self, state: bytes | None) -> None:
        self.count = int((state or b"0 ").partition(b" ")[0])

    def save(self) -> bytes:
        return b"%d " % self.count + PADDING

    async def handle(self, message: Message) -> object:
        if message.body == "count":
            self.count += 1
        return [self.count, self.home.server_id]

    def can_move(self) -> Now:
        self.changed()
        return Now()
