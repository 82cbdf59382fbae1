"""The client for scripts and threads: the same client, on a loop in a thread of its own. No second copy.

with roost.connect_sync("http://127.0.0.1:8400") as client:
    print(client.discover("game", "kr-1"))
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Self, TypeVar

from roost.api.discovery import BeatReply, Change, Instance, InstanceDetail, Registered
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.heart import Registration

Result = TypeVar("Result")


class SyncClient:
    """Each method waits for the async one of the same name. Any number of threads may call."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="roost-client", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait(self._client.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait(self._client.close())
        finally:
            self._end()

    def register(self, **fields: Any) -> Registered:
        return self._wait(self._client.register(**fields))

    def heartbeat(self, instance_id: str, **patch: Any) -> BeatReply:
        return self._wait(self._client.heartbeat(instance_id, **patch))

    def discover(
        self,
        type: str = "*",  # noqa: A002 — the documented name
        group: str = "*",
        *,
        verify: bool = False,
        labels: Sequence[str] = (),
    ) -> list[Instance]:
        return self._wait(self._client.discover(type, group, verify=verify, labels=labels))

    def get(self, instance_id: str) -> InstanceDetail:
        return self._wait(self._client.get(instance_id))

    def remove(self, instance_id: str, type: str = "", group: str = "") -> None:  # noqa: A002
        self._wait(self._client.remove(instance_id, type, group))

    def start_auto_heartbeat(self, instance_id: str) -> Registration:
        async def start() -> Registration:
            return self._client.start_auto_heartbeat(instance_id)

        return self._wait(start())

    def stop_auto_heartbeat(self) -> None:
        self._wait(self._client.stop_auto_heartbeat())

    @contextlib.contextmanager
    def registered(self, **fields: Any) -> Iterator[Registration]:
        context = self._client.registered(**fields)
        registration = self._wait(context.__aenter__())
        try:
            yield registration
        finally:
            self._wait(context.__aexit__(None, None, None))

    def watch(self, type: str = "*", group: str = "*", *, labels: Sequence[str] = ()) -> Iterator[Change]:  # noqa: A002
        changes = self._client.watch(type, group, labels=labels)
        try:
            while True:
                yield self._wait(_next(changes))
        finally:
            self._wait(changes.aclose())

    def _wait(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()


async def _next(changes: Any) -> Change:
    change: Change = await anext(changes)
    return change


def connect_sync(url: str = "", **options: Any) -> SyncClient:
    """`roost.connect` for code without an event loop; the options are the same."""
    return SyncClient(connect(url, **options))
