"""The placement of symbols in the store: read whole, followed by its feed, changed by operators."""

from __future__ import annotations

from collections.abc import Callable

from roost.core.events import Gap
from roost.core.loops import Loops
from roost.lanes.placement import Table, decode
from roost.lanes.scripts import Changed, Conflict, PlacementScripts, Placing, Unchanged
from roost.lanes.selector import Spot
from roost.store.keys.placement import placement_keys
from roost.store.scopes import lanes
from roost.store.store import Store

__all__ = ["Changed", "Conflict", "Placements", "Unchanged"]


class Placements:
    """`table` is the newest that this process has heard of; `selector` is set by the first who looks."""

    def __init__(self, store: Store, selector: str, loops: Loops | None = None) -> None:
        self.table = Table(selector=selector)
        self.on_change: list[Callable[[Table], None]] = []
        self._store = store
        self._selector = selector
        self._key = placement_keys(store.keys)["placement"]
        self._change = PlacementScripts(store.library, store.keys).placement
        self._loops = loops or store.loops

    async def read(self) -> Table:
        """`look`, by one who serves or changes it: a store without a table learns which selector is used."""
        table = await self.look()
        if not table.version:
            await self._do("select", to=self._selector)
        return table

    async def look(self) -> Table:
        """The table as the store has it now."""
        found = await self._store.call("HGETALL", self._key, key=self._key, idempotent=True, bulk=True)
        fields = {name.decode(): text.decode() for name, text in zip(found[::2], found[1::2], strict=True)}
        table = decode(fields) if fields else Table(selector=self._selector)
        if table != self.table:
            self.table = table
            for told in self.on_change:
                told(table)
        return table

    async def run(self) -> None:
        """Follow the changes for ever."""
        await self._loops.keep_running("placement", self._follow, pause_s=0.1, essential=True)

    async def pin(self, symbol: str, spot: Spot, expected: int | None = None) -> Placing:
        """Only for a symbol without a book: one that trades is moved."""
        return await self._do("pin", symbol, to=_text(spot), expected=expected)

    async def unpin(self, symbol: str, expected: int | None = None) -> Placing:
        return await self._do("unpin", symbol, expected=expected)

    async def begin(
        self, symbol: str, source: Spot, target: Spot, move: str, expected: int | None = None
    ) -> Placing:
        """The symbol leaves its shard with its book, at its next quiet point."""
        return await self._do(
            "begin", symbol, source=_text(source), to=_text(target), move=move, expected=expected
        )

    async def finish(self, symbol: str, at: Spot, move: str) -> Placing:
        """The move is over, and the symbol is there: where it went, or where it was."""
        return await self._do("finish", symbol, to=_text(at), move=move)

    async def _do(
        self,
        action: str,
        symbol: str = "",
        *,
        source: str = "",
        to: str = "",
        move: str = "",
        expected: int | None = None,
    ) -> Placing:
        return await self._change(
            action=action,
            symbol=symbol,
            **{"from": source},
            to=to,
            move=move,
            expected="" if expected is None else str(expected),
        )

    async def _follow(self) -> None:
        feed = self._store.feed(lanes())
        mark = await feed.head()
        await self.read()
        async for entry in feed.follow(mark):
            if isinstance(entry, Gap):
                return
            await self.read()


def _text(spot: Spot) -> str:
    return f"{spot.shard}:{spot.lane}"
