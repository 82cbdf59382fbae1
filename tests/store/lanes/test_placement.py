"""placement.lua: where symbols are that are not where their hash puts them, version by version."""

from __future__ import annotations

import random

import pytest

from roost.lanes.scripts import Changed, Conflict, PlacementScripts, Placing, Unchanged
from roost.store import scopes
from roost.store.feed import parse_entry
from roost.store.keys.placement import placement_keys
from roost.store.store import Store
from roost.testing import RunningServer
from tests.store.examples import SEEDS, for_each

T0 = 1_700_000_000_000_000


class Table:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._script = PlacementScripts(store.library, store.keys).placement
        self._key = placement_keys(store.keys)["placement"]

    async def change(
        self,
        action: str,
        symbol: str = "A",
        to: str = "",
        *,
        start: str = "",
        move: str = "",
        expected: str = "",
    ) -> Placing:
        return await self._script(
            action=action, symbol=symbol, to=to, move=move, expected=expected, now=T0, **{"from": start}
        )

    async def kept(self) -> dict[str, str]:
        flat = await self.store.call("HGETALL", self._key, key=self._key)
        return {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def feed(self) -> list[dict[str, str]]:
        key = self.store.keys.feed(scopes.lanes())
        return [
            dict(parse_entry(raw).fields) for raw in await self.store.call("XRANGE", key, "-", "+", key=key)
        ]


@pytest.fixture
def table(any_store: Store) -> Table:
    return Table(any_store)


async def test_a_pin_is_a_version_and_an_entry_of_the_feed(table: Table) -> None:
    assert await table.change("pin", to="3:17") == Changed(1)
    assert await table.change("pin", "B", "4:0") == Changed(2)
    assert await table.kept() == {"@version": "2", "A": "3:17", "B": "4:0"}
    first = (await table.feed())[0]
    assert first == first | {
        "event": "pin", "symbol": "A", "from": "", "to": "3:17", "move": "", "version": "1"
    }  # fmt: skip


async def test_what_is_so_already_is_no_version(table: Table) -> None:
    assert await table.change("unpin") == Unchanged(0)
    await table.change("pin", to="3:17")
    assert await table.change("pin", to="3:17", expected="0") == Unchanged(1), "its own call, again"
    assert await table.change("unpin") == Changed(2)
    assert await table.change("unpin", expected="1") == Unchanged(2)
    assert len(await table.feed()) == 2


async def test_who_has_not_seen_the_last_version_is_told(table: Table) -> None:
    await table.change("pin", to="3:17")
    assert await table.change("pin", to="4:1", expected="0") == Conflict(1)
    assert await table.change("pin", to="4:1", expected="1") == Changed(2)


async def test_a_move_begins_where_the_symbol_is_and_is_finished_once(table: Table) -> None:
    assert await table.change("begin", to="5:2", start="3:17", move="m1") == Changed(1), "by its hash"
    assert (await table.kept())["A"] == "3:17>5:2:m1"
    assert await table.change("begin", to="5:2", start="3:17", move="m1") == Unchanged(1)
    assert await table.change("begin", to="6:2", start="3:17", move="m2") == Conflict(1)
    assert await table.change("pin", to="6:2") == Conflict(1)
    assert await table.change("unpin") == Conflict(1)
    assert await table.change("finish", to="5:2", move="m2") == Conflict(1)
    assert await table.change("finish", to="6:2", move="m1") == Conflict(1)
    assert await table.change("finish", to="5:2", move="m1") == Changed(2)
    assert await table.change("finish", to="5:2", move="m1") == Unchanged(2)
    assert (await table.kept())["A"] == "5:2"
    assert [(e["event"], e["from"], e["to"], e["move"]) for e in await table.feed()] == [
        ("begin", "3:17", "5:2", "m1"),
        ("finish", "3:17", "5:2", "m1"),
    ]


async def test_a_late_finish_does_not_end_the_next_move(table: Table) -> None:
    await table.change("begin", to="5:2", start="3:17", move="m1")
    await table.change("finish", to="5:2", move="m1")
    await table.change("begin", to="3:17", start="5:2", move="m2")
    assert await table.change("finish", to="5:2", move="m1") == Conflict(3)
    assert (await table.kept())["A"] == "5:2>3:17:m2"


async def test_a_move_from_elsewhere_is_a_conflict(table: Table) -> None:
    await table.change("pin", to="4:1")
    assert await table.change("begin", to="5:2", start="3:17", move="m1") == Conflict(1)


async def test_a_move_that_is_given_up_ends_where_it_began(table: Table) -> None:
    await table.change("begin", to="5:2", start="3:17", move="m1")
    assert await table.change("finish", to="3:17", move="m1") == Changed(2)
    assert (await table.kept())["A"] == "3:17"


async def test_the_selector_is_set_once(table: Table) -> None:
    assert await table.change("select", "", "mixed") == Changed(1)
    assert await table.change("select", "", "mixed") == Unchanged(1)
    assert await table.change("select", "", "ring_v1") == Conflict(1)
    assert (await table.kept())["@selector"] == "mixed"


async def check_walk(store: Store, rng: random.Random) -> None:
    """Operators with old versions and repeated calls: versions are dense, and the feed retells the table."""
    table = Table(store)
    version = 0
    for number in range(60):
        action = rng.choice(["pin", "unpin", "begin", "finish"])
        place, start = (f"{rng.randint(0, 2)}:{rng.randint(0, 1)}" for _ in range(2))
        expected = rng.choice(["", str(version), str(max(0, version - 1))])
        move = f"m{rng.randint(max(0, number - 4), number)}"
        answer = await table.change(
            action, rng.choice("AB"), place, start=start, move=move, expected=expected
        )
        if isinstance(answer, Changed):
            assert answer.version == version + 1
            assert expected in ("", str(version))
            version += 1
        assert answer.version == version
    retold: dict[str, str] = {}
    for entry in await table.feed():
        symbol, event = entry["symbol"], entry["event"]
        retold.pop(symbol, None)
        if event == "begin":
            retold[symbol] = f"{entry['from']}>{entry['to']}:{entry['move']}"
        elif event != "unpin":
            retold[symbol] = entry["to"]
    assert await table.kept() == retold | {"@version": str(version)}


def test_the_feed_retells_the_table(server: RunningServer) -> None:
    for_each(server, SEEDS, check_walk, examples=40)
