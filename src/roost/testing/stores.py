"""A store that is open for the length of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from roost.store.keys import Keys
from roost.store.link import LinkOptions
from roost.store.store import Store
from roost.store.url import parse_store_url


@asynccontextmanager
async def open_store(
    url: str,
    *,
    options: LinkOptions | None = None,
    keys: Keys | None = None,
    client_name: str = "roost",
    wait_s: float | None = None,
) -> AsyncIterator[Store]:
    """The store behind a URL, closed on the way out. The options are those of `Store.open`."""
    store = await Store.open(
        parse_store_url(url), options=options, keys=keys, client_name=client_name, wait_s=wait_s
    )
    try:
        yield store
    finally:
        await store.close()
