from __future__ import annotations

import pytest

from roost.core.errors import InvalidInput
from roost.sdk.entity import Message
from roost.servers.entity.reference import MOST_ITEMS, Reference


async def say(entity: Reference, body: object, sequence: int = 1) -> object:
    return await entity.handle(Message(body, sequence))


async def test_it_counts_holds_things_echoes_and_says_its_version() -> None:
    entity = Reference()
    assert await say(entity, "count") == 1
    assert await say(entity, {"op": "count", "by": 5}) == 6
    assert await say(entity, {"op": "give", "item": "sword", "n": 2}) == 2
    assert await say(entity, {"op": "take", "item": "sword"}) == 1
    assert await say(entity, {"op": "say", "text": "hello"}) == "hello"
    assert await say(entity, "version") == {"version": "", "serverId": ""}
    assert await say(entity, "get") == {"count": 6, "items": {"sword": 1}}


async def test_its_state_survives_a_save() -> None:
    entity, again = Reference(), Reference()
    await say(entity, {"op": "give", "item": "sword", "n": 2})
    await again.load(entity.save())
    assert await say(again, "get") == {"count": 0, "items": {"sword": 2}}


@pytest.mark.parametrize(
    "body",
    [
        "dance",
        None,
        7,
        {"op": "count", "by": "many"},
        {"op": "count", "by": 2**60},
        {"op": "take", "item": "sword"},
        {"op": "give", "item": "", "n": 1},
        {"op": "give", "item": "sword", "n": -1},
    ],
)
async def test_what_makes_no_sense_changes_nothing(body: object) -> None:
    entity = Reference()
    with pytest.raises(InvalidInput):
        await say(entity, body)
    assert await say(entity, "get") == {"count": 0, "items": {}}


async def test_the_inventory_is_bounded() -> None:
    entity = Reference()
    for n in range(MOST_ITEMS):
        await say(entity, {"op": "give", "item": f"i{n}"})
    with pytest.raises(InvalidInput):
        await say(entity, {"op": "give", "item": "one more"})
