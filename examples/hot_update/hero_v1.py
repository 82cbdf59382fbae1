"""Version 1.0: a hero has gold, and that is all."""

import roost


class Hero(roost.Entity):
    durability = roost.Journal()
    schema_version = 1  # of the bytes that save makes

    def __init__(self) -> None:
        self.gold = 0

    async def load(self, state: bytes | None) -> None:
        self.gold = int(state or b"0")  # None: a new hero

    def save(self) -> bytes:
        return str(self.gold).encode()

    async def handle(self, message: roost.Message) -> object:
        self.gold += 1
        return {"version": self.home.version, "gold": self.gold}
