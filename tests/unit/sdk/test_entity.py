from __future__ import annotations

from typing import Any

import pytest

import roost
from roost.core.errors import InvalidInput
from roost.sdk.entity import Entity, check_entity_class


def made(**fields: Any) -> type[Entity]:
    return type("Player", (Entity,), fields)


def test_a_class_says_what_an_acknowledgement_is_worth() -> None:
    assert check_entity_class(made()).durability.word == "write-back:1000"
    assert made(durability=roost.WriteBack(ms=50)).durability.word == "write-back:50"
    assert made(durability=roost.Journal()).durability.word == "journal"
    assert made(durability=roost.WriteThrough()).durability.word == "write-through"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"durability": roost.WriteBack}, "an object of it"),
        ({"durability": "journal"}, "durability must be"),
        ({"durability": roost.WriteBack(ms=0)}, "ms must be"),
        ({"durability": roost.WriteBack(ms="1000")}, "ms must be"),  # type: ignore[arg-type]
        ({"durability": roost.Journal(ms=10**9)}, "ms must be"),
        ({"schema_version": 1, "min_reader": 2}, "min_reader"),
        ({"schema_version": "1"}, "schema_version"),
    ],
)
def test_declarations_that_do_not_fit_are_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_entity_class(made(**fields))


def test_what_is_no_entity_class_is_refused() -> None:
    for wrong in (object, Entity(), "Player", None):
        with pytest.raises(InvalidInput, match=r"no subclass of roost\.Entity"):
            check_entity_class(wrong)


async def test_an_entity_can_be_tested_without_a_server() -> None:
    entity = made()()
    await entity.load(None)
    await entity.on_login("new")
    await entity.on_logout("left")
    assert entity.save() == b""
    assert entity.can_move() == roost.Now()
    assert (entity.user, entity.context, entity.push("x")) == ("", {}, False)
    with pytest.raises(NotImplementedError):
        await entity.handle(roost.Message("hello", 1))
