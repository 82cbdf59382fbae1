"""Version 2.0: the purse is JSON and has silver in it. What version 1.0 saved is read as well."""

import json

import roost


class Hero(roost.Entity):
    durability = roost.Journal()
    schema_version = 2
    min_reader = 2  # version 1.0 cannot read what save makes: after the first save there is no way back

    def __init__(self) -> None:
        self.gold = 0
        self.silver = 0

    async def load(self, state: bytes | None) -> None:
        if state is None:
            return
        if self.loaded_schema == 1:  # the hero comes from version 1.0, perhaps in the middle of a game
            self.gold, self.silver = int(state), 100
        else:
            purse = json.loads(state)
            self.gold, self.silver = purse["gold"], purse["silver"]

    def save(self) -> bytes:
        return json.dumps({"gold": self.gold, "silver": self.silver}).encode()

    async def handle(self, message: roost.Message) -> object:
        self.gold += 1
        return {"version": self.home.version, "gold": self.gold, "silver": self.silver}
