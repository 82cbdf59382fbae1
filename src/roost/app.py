"""The composition root: who is built from what, and who hears of what.

A `Platform` is one running Roost inside a process. Nothing is global: two of them run side by side.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from roost.settings import Settings
from roost.store.store import Store


@dataclass(slots=True)
class Platform:
    """What the edges (gateway, servers, CLI) are built from."""

    settings: Settings
    store: Store
    roles: tuple[str, ...] = ()
    """Which roles run in this process, for `roost status`."""
    started_at: float = field(default_factory=time.time)


@asynccontextmanager
async def open_platform(
    settings: Settings, *, roles: tuple[str, ...] = (), attach: bool = False, wait_s: float | None = None
) -> AsyncIterator[Platform]:
    """A platform on the store that the settings name; everything is closed, the store last, on the way out.

    `attach` and `wait_s` are those of `Store.open`.
    """
    store = await Store.open(
        settings.store_url,
        options=settings.link.options(),
        namespace=settings.namespace,
        client_name=f"roost-{'-'.join(roles) or 'tool'}",
        folder=settings.store_folder,
        attach=attach,
        binary=settings.embedded.binary,
        wait_s=wait_s,
    )
    try:
        yield Platform(settings, store, roles)
    finally:
        await store.close()
