"""SIGHUP has a role read the store's password again: from the file of ROOST_STORE_FILE, or the TOML file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from roost.app import Platform
from roost.core.errors import RoostError
from roost.foreground import hearing_hangups, unless
from roost.settings import NAMES, Loaded, value_of

log = logging.getLogger("roost.rotation")


class HasPlatform(Protocol):
    """A server that is up; without a platform it is one behind a gateway, which has no password."""

    @property
    def platform(self) -> Platform | None: ...


Server = TypeVar("Server", bound=HasPlatform)


class Hangups:
    """What a role does on SIGHUP; one that comes while it still starts counts when it is up."""

    def __init__(self) -> None:
        self._platform: Platform | None = None
        self._missed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self) -> None:
        self._missed = self._platform is None
        if self._platform is not None:
            task = asyncio.get_running_loop().create_task(_renew(self._platform))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def attend(self, platform: Platform) -> None:
        """From now on this platform's password is renewed."""
        self._platform = platform
        if self._missed:
            self.hear()


@contextlib.contextmanager
def hangups() -> Iterator[Hangups]:
    """Inside the block SIGHUP does not end the process."""
    heard = Hangups()
    with hearing_hangups(heard.hear):
        yield heard


@contextlib.asynccontextmanager
async def renewing(
    stop: asyncio.Event, opening: contextlib.AbstractAsyncContextManager[Server]
) -> AsyncIterator[Server | None]:
    """What is opened, or None if it is stopped before; inside the block SIGHUP renews its password."""
    with hangups() as heard:
        async with unless(stop, opening) as server:
            if server is not None and server.platform is not None:
                heard.attend(server.platform)
            yield server


async def _renew(platform: Platform) -> None:
    former = platform.settings
    # A game server that goes straight to the store may have its address from ROOST_URL.
    source = "url" if former.store and former.url.rstrip("/") == former.store else "store"
    others = {name: value_of(former, name) for name in NAMES if name not in ("store", source)}
    try:
        fresh = Loaded.load(others).settings
        url = replace(fresh, store=getattr(fresh, source)).store_url
        await platform.take_up(url)
    except RoostError as error:
        log.error("store password not renewed", extra={"reason": error.message})
    else:
        log.warning("store password renewed", extra={"store": str(url)})
