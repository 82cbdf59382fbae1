"""One shard with a clock in the test's hand."""

from __future__ import annotations

from typing import Any

from roost.core.lease import MAX_STEP_MS
from roost.lanes.scripts import Held, Leading, NotLeading, Resigned, Shard, ShardScripts
from roost.store.keys.lanes import shard_keys
from roost.store.scopes import shard as shard_scope
from roost.store.store import Store

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
TTL_MS = 10_000


class ShardTown:
    """Owners that ask at `now` (µs), which only the test moves."""

    def __init__(self, store: Store, number: int = 3) -> None:
        self.store = store
        self.number = number
        self.now = T0
        scope = shard_scope(number)
        self.scripts = ShardScripts(store.library, store.keys, scope)
        self.keys = shard_keys(store.keys, scope)

    async def campaign(
        self, holder: str, epoch: int | str = "", *, mark: int = 0, status: str = "{}", ttl_ms: int = TTL_MS
    ) -> Leading | Held:
        return await self.scripts.campaign(
            holder=holder,
            epoch=str(epoch),
            ttl_ms=ttl_ms,
            max_step_ms=MAX_STEP_MS,
            address=f"{holder}:9000",
            server=f"server-{holder}",
            status=status,
            high_water_ms=mark,
            now=self.now,
        )

    async def lead(self, holder: str, epoch: int | str = "", *, mark: int = 0) -> Leading:
        answer = await self.campaign(holder, epoch, mark=mark)
        assert isinstance(answer, Leading)
        return answer

    async def resign(self, holder: str, epoch: int, *, mark: int = 0) -> Resigned | NotLeading:
        return await self.scripts.resign(holder=holder, epoch=str(epoch), high_water_ms=mark)

    async def look(self) -> Shard:
        return await self.scripts.shards(max_step_ms=MAX_STEP_MS, now=self.now)

    async def pass_seconds(self, seconds: int, looker: str = "looker") -> None:
        """Somebody looks once a second: lease time passes."""
        for _ in range(seconds):
            self.now += SECOND
            await self.campaign(looker)

    async def append(self, epoch: int, seq: int, payload: bytes = b"commands") -> bytes:
        key = self.keys["log"]
        entry: bytes = await self.store.call("XADD", key, f"{epoch}-{seq}", "b", payload, key=key)
        return entry

    async def raw(self, command: str, name: str, *args: str | bytes | int) -> Any:
        """One command on a key of the shard."""
        return await self.store.call(command, self.keys[name], *args, key=self.keys[name])
