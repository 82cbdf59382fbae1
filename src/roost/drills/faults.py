"""What goes wrong during a soak, one thing for each evening.

The first of each kind is never killed: one that is followed from the first evening to the last shows whether
it grows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from roost.drills.town import DATABASE, Town

Fault = Callable[[Town], Awaitable[None]]


async def _nothing(town: Town) -> None:
    pass


FAULTS: Mapping[str, Fault] = {
    "none": _nothing,
    "gateway-killed": lambda town: town.kill("gateway-2"),
    "gateway-frozen": lambda town: town.freeze("gateway-2", 4.0),
    "manager-frozen": lambda town: town.freeze("manager-1", 12.0),
    "manager-killed": lambda town: town.kill("manager-2"),
    "game-killed": lambda town: town.kill("game-2"),
    "game-frozen": lambda town: town.freeze("game-2", 8.0),
    "game-restarted": lambda town: town.restart("game-2"),
    "store-frozen": lambda town: town.freeze(DATABASE, 8.0),
    "store-killed": lambda town: town.kill(DATABASE),
}
"""A leader that is frozen for longer than its lease loses it; the kill that follows hits the next leader."""
