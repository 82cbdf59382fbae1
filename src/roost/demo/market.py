"""What the demo trades: symbols whose shards nobody has used, and only while nobody else serves orders."""

from __future__ import annotations

from roost.app import Platform
from roost.demo.names import OTHERS_ORDERS, SYMBOL
from roost.demo.purge import untouched_shards
from roost.lanes.ids import SHARDS
from roost.lanes.selector import SELECTORS

SYMBOLS = 4
WARES = (
    "APPLE",
    "BRASS",
    "CEDAR",
    "DENIM",
    "EMBER",
    "FLAX",
    "GRAIN",
    "HONEY",
    "IRON",
    "JADE",
    "KELP",
    "LINEN",
)


async def choose_symbols(platform: Platform, selector: str) -> dict[str, int]:
    """Symbol → shard; none where every shard is somebody's."""
    if await is_served_by_others(platform):
        return {}
    free = set(await untouched_shards(platform.store, range(SHARDS)))
    places = {f"{SYMBOL}{ware}": SELECTORS[selector].spot(f"{SYMBOL}{ware}").shard for ware in WARES}
    return dict([(symbol, shard) for symbol, shard in places.items() if shard in free][:SYMBOLS])


async def is_served_by_others(platform: Platform) -> bool:
    """Whether an order server that is not the demo's is registered."""
    return any(service.startswith(f"{OTHERS_ORDERS}:") for service in await platform.discovery.services())
