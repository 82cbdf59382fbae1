"""When the store makes an alert: a node that is away, and one that is back or is none any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from roost.alerts.notifier import Notifier
from roost.alerts.payloads import Alert
from roost.alerts.triggers import STORE_AWAY_S, Triggers
from roost.testing import FakeClock


@dataclass
class Link:
    name: str
    connected: bool = True
    why_down: str = "refused"


class Store:
    """Its nodes, what they make alerts of, and a clock."""

    def __init__(self, *nodes: Link) -> None:
        self.nodes = list(nodes)
        self.told: list[tuple[str, str]] = []
        self.clock = FakeClock()
        self._triggers = Triggers(cast(Notifier, self), self._links, clock=self.clock)

    def _links(self) -> Iterable[Link]:
        return self.nodes

    def tell(self, alert: Alert) -> None:
        self.told.append((alert.kind, alert.subject))

    async def look_for(self, seconds: float) -> None:
        await self._triggers.look()
        await self.clock.advance(seconds)
        await self._triggers.look()


async def test_a_node_that_is_away_for_a_while_is_told_once_and_once_that_it_is_back() -> None:
    store = Store(Link("a", connected=False), Link("b"))
    await store.look_for(STORE_AWAY_S - 1)
    assert store.told == []
    await store.look_for(60.0)
    assert store.told == [("store-away", "a")]
    store.nodes[0].connected = True
    await store.look_for(1.0)
    assert store.told == [("store-away", "a"), ("store-back", "a")]


async def test_a_node_that_is_none_any_more_is_not_away() -> None:
    """A replica took its place, and nobody will connect to it again."""
    store = Store(Link("a", connected=False), Link("b"))
    await store.look_for(STORE_AWAY_S)
    store.nodes[0] = Link("c")
    await store.look_for(60.0)
    assert store.told == [("store-away", "a"), ("store-back", "a")]


async def test_a_node_that_comes_back_into_the_map_is_away_anew() -> None:
    store = Store(Link("a", connected=False), Link("b"))
    await store.look_for(STORE_AWAY_S - 1)
    away = store.nodes.pop(0)
    await store.look_for(60.0)
    store.nodes.append(away)
    await store.look_for(STORE_AWAY_S - 1)
    assert store.told == []


async def test_a_store_without_a_map_resolves_nothing() -> None:
    store = Store(Link("a", connected=False))
    await store.look_for(STORE_AWAY_S)
    store.nodes.clear()
    await store.look_for(60.0)
    assert store.told == [("store-away", "a")]
