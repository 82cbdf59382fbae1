"""The API as a document, of a gateway that nobody started: for generators of clients.

`roost openapi` prints it. It is what `/openapi.json` of the same version serves, but for the demo.
"""

from __future__ import annotations

import asyncio
from typing import Any

from roost.app import Platform
from roost.gateway.openapi import document
from roost.gateway.server import all_routes
from roost.settings import Settings
from roost.store.keys import Keys
from roost.store.link import LinkOptions
from roost.store.store import Store, make_topology
from roost.store.url import parse_store_url

NOWHERE = "unix:///nowhere/roost.sock"
"""A platform needs a store; this one is never asked."""


def offline_document() -> dict[str, Any]:
    """The whole API as OpenAPI 3.1. Reads no settings, writes no file and waits for nobody."""
    return asyncio.run(_document())


async def _document() -> dict[str, Any]:
    options = LinkOptions()
    store = Store(make_topology(parse_store_url(NOWHERE), options, "roost-openapi"), options, Keys())
    try:
        routes = all_routes(Platform(Settings(api_token="none"), store))  # noqa: S106 — so that none is made
        return document(routes)
    finally:
        await store.close()
