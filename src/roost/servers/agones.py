"""A game server under Agones: tells the sidecar when it is ready, alive, and has people inside.

Agones takes away servers that are Ready, never those that are Allocated. So a server with people inside says
that it is allocated, and an empty one that it is ready: a fleet that shrinks throws nobody out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout

from roost.core.errors import StoreUnavailable, Unavailable

log = logging.getLogger("roost.agones")

STEP_S = 2.0
"""Between two signs of life; Agones' own default allows for 5 s."""
TIMEOUT = ClientTimeout(total=3)


class Agones:
    """The SDK's REST face at `url`. `people` counts those inside or about to be."""

    def __init__(self, url: str, session: ClientSession, people: Callable[[], int]) -> None:
        self._url = url.rstrip("/")
        self._session = session
        self._people = people
        self._told = ""

    async def step(self) -> None:
        """A sign of life, and the state if it is another one than was told."""
        await self._post("/health")
        state = "/allocate" if self._people() else "/ready"
        if state != self._told:
            await self._post(state)
            self._told = state
            log.info("told Agones", extra={"state": state})

    async def _post(self, path: str) -> None:
        try:
            async with self._session.post(self._url + path, json={}, timeout=TIMEOUT) as answer:
                if answer.status >= 400:
                    raise Unavailable(f"Agones answers {answer.status} to {path}")
        except (ClientError, TimeoutError, OSError) as error:
            raise StoreUnavailable(f"the Agones sidecar does not answer: {error}") from error


async def address_of(url: str, session: ClientSession, port_name: str = "ws") -> tuple[str, int]:
    """Where players reach this server: the node's address, and the port that Agones chose there."""
    try:
        async with session.get(f"{url.rstrip('/')}/gameserver", timeout=TIMEOUT) as answer:
            found: dict[str, Any] = msgspec.json.decode(await answer.read())
    except (ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
        raise StoreUnavailable(f"the Agones sidecar does not answer: {error}") from error
    status = found.get("status", {})
    port = next((one["port"] for one in status.get("ports") or () if one.get("name") == port_name), 0)
    if not status.get("address") or not port:
        raise StoreUnavailable("Agones has given this server no address yet")
    return str(status["address"]), int(port)
