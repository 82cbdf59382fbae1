"""Every port on a platform of this process, or on a connection of our own to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from roost.binding.service import Bindings
from roost.core.loops import Loops
from roost.discovery.probes import Prober
from roost.discovery.service import Discovery
from roost.sdk.direct.admission import DirectAdmission
from roost.sdk.direct.homes import DirectHomes
from roost.sdk.direct.registry import DirectRegistry
from roost.sdk.direct.sweeper import Sweeper
from roost.settings import Loaded
from roost.store.keys import Keys
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.waitingroom.worlds import Worlds

if TYPE_CHECKING:
    from roost.app import Platform


class PlatformTransport:
    def __init__(self, platform: Platform) -> None:
        self.registry = DirectRegistry(platform.discovery, platform.prober)
        self.admission = DirectAdmission(lambda: platform.worlds)
        self.homes = DirectHomes(lambda: platform.bindings)

    async def close(self) -> None:
        """The platform belongs to its opener, who closes it."""


class StoreTransport:
    """With `loops` it also sweeps, as long as no gateway does."""

    def __init__(
        self, store: Store, loops: Loops | None, close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`close`: in place of the store's own."""
        discovery, prober = Discovery(store), Prober(allow_local=True)
        self.registry = DirectRegistry(discovery, prober)
        # With the settings of this machine: a direct client needs the signing keys too.
        self.admission = DirectAdmission(cache(lambda: _worlds(store, discovery)))
        self.homes = DirectHomes(cache(lambda: _bindings(store, discovery)))
        self._close = close or store.close
        self._sweeping: asyncio.Task[None] | None = None
        if loops is not None:
            sweeper = Sweeper(store, discovery, prober)
            self._sweeping = asyncio.create_task(sweeper.run(loops), name="roost sweeper")

    @classmethod
    async def open(
        cls, url: str, keys: Keys, *, folder: Path | None = None, loops: Loops | None = None
    ) -> Self:
        """`folder` is where `embedded:` without one keeps its data."""
        where = parse_store_url(url)
        store = await Store.open(where, keys=keys, client_name="roost-sdk", folder=folder, attach=True)
        return cls(store, loops)

    @classmethod
    async def beside(cls, platform: Platform) -> Self:
        """On a link of its own to the platform's store, for the loop that runs now."""
        stack = AsyncExitStack()
        store = await stack.enter_async_context(platform.link_beside("roost-sdk"))
        return cls(store, None, stack.aclose)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._close()


def _worlds(store: Store, discovery: Discovery) -> Worlds:
    from roost.app import key_ring

    settings = Loaded.load().settings
    return Worlds(store, settings.queue, key_ring(settings), discovery)


def _bindings(store: Store, discovery: Discovery) -> Bindings:
    return Bindings(store, Loaded.load().settings.binding, discovery)
