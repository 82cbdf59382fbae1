"""A counter for each user, and a player who counts. `python run.py` runs both; README.md says how by hand."""

import asyncio
import sys

import roost


class Counter(roost.Entity):
    durability = roost.Journal()  # nothing that was acknowledged is lost, also not by kill -9

    def __init__(self) -> None:
        self.count = 0

    async def load(self, state: bytes | None) -> None:
        self.count = int(state or b"0")  # None: a new user

    def save(self) -> bytes:
        return str(self.count).encode()

    async def handle(self, message: roost.Message) -> object:  # one at a time for each user, in order
        self.count += message.body
        return self.count


async def play(url: str) -> None:
    async with roost.play(url, "dev:ann") as ann:
        for _ in range(3):
            print("ann counts", await ann.request(1), flush=True)


if __name__ == "__main__":
    asyncio.run(play(sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:8410"))
