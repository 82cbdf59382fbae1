"""The client for scripts and threads: the same client, on a loop in a thread of its own. No second copy.

with roost.connect_sync("http://127.0.0.1:8400") as client:
    print(client.discover("game", "kr-1"))

Callbacks are called one after the other in a thread of their own, where they may call the client.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar

from roost.api.binding import ENTITY, Home
from roost.api.discovery import BeatReply, Change, Instance, InstanceDetail, Registered
from roost.api.queue import How
from roost.core.errors import InvalidInput
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.sdk.door import Door
from roost.sdk.guests import Guest
from roost.sdk.heart import Directive, Registration

log = logging.getLogger("roost.sdk")

Result = TypeVar("Result")
Callback = Callable[[Any], None]


class SyncClient:
    """Each method waits for the async one of the same name. Any number of threads may call, inside `with`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._state: Literal["not open yet", "open", "closed"] = "not open yet"
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._callbacks: concurrent.futures.ThreadPoolExecutor | None = None
        self._calls: set[concurrent.futures.Future[Any]] = set()
        """What threads wait for."""

    def __enter__(self) -> Self:
        if self._state != "not open yet":
            raise InvalidInput(f"this client is {self._state}: make another one")
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="roost-client", daemon=True)
        self._callbacks = concurrent.futures.ThreadPoolExecutor(1, "roost-callbacks")
        self._thread.start()
        self._state = "open"
        try:
            self._wait(self._client.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._pid:
            return  # a child that leaves the block which its parent entered: nothing here is its own
        self._check()
        assert self._loop is not None
        self._state = "closed"
        for call in list(self._calls):  # one that waits for an hour would hold its thread for ever
            call.cancel()
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        finally:
            self._end()

    def register(self, **fields: Any) -> Registered:
        return self._wait(self._client.register(**fields))

    def home_of(self, user: str, type: str = ENTITY) -> Home:  # noqa: A002
        return self._wait(self._client.home_of(user, type))

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

    def get(self, any_id: str, type: str = "*") -> InstanceDetail:  # noqa: A002
        return self._wait(self._client.get(any_id, type))

    def remove(self, instance_id: str, type: str = "", group: str = "") -> None:  # noqa: A002
        self._wait(self._client.remove(instance_id, type, group))

    def start_auto_heartbeat(
        self, instance_id: str, on_directive: Callable[[Directive], None] | None = None
    ) -> Registration:
        told = self._in_thread(on_directive) if on_directive is not None else None
        return self._call(lambda: self._client.start_auto_heartbeat(instance_id, told))

    def stop_auto_heartbeat(self) -> None:
        self._wait(self._client.stop_auto_heartbeat())

    @contextlib.contextmanager
    def registered(self, **fields: Any) -> Iterator[Registration]:
        if fields.get("on_directive") is not None:
            fields["on_directive"] = self._in_thread(fields["on_directive"])
        with self._inside(self._client.registered(**fields)) as registration:
            yield registration

    @contextlib.contextmanager
    def door(self, registration: Registration, **options: Any) -> Iterator[SyncDoor]:
        """The door of a registered server; the options are those of `Client.door`."""
        with self._inside(self._client.door(registration, **options)) as door:
            yield SyncDoor(door, self._wait)

    def watch(self, type: str = "*", group: str = "*", *, labels: Sequence[str] = ()) -> Iterator[Change]:  # noqa: A002
        """Every change, a snapshot first; ends when the client is closed."""
        changes = self._client.watch(type, group, labels=labels)
        try:
            while not self._is_closed:
                try:
                    change = self._wait(_next(changes))
                except InvalidInput:
                    if self._is_closed:
                        return
                    raise
                yield change
        finally:
            if not self._is_closed:  # else its task was cancelled, which ended it
                self._wait(changes.aclose())

    def on_server_added(
        self,
        callback: Callable[[Instance], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        told = self._in_thread(callback)
        stop = self._call(lambda: self._client.on_server_added(told, type, group))
        return lambda: self._call(stop)

    def on_server_removed(
        self,
        callback: Callable[[str], None],
        type: str = "*",  # noqa: A002
        group: str = "*",
    ) -> Callable[[], None]:
        told = self._in_thread(callback)
        stop = self._call(lambda: self._client.on_server_removed(told, type, group))
        return lambda: self._call(stop)

    # -- between the threads

    @contextlib.contextmanager
    def _inside(self, context: contextlib.AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        entered = self._wait(context.__aenter__())
        try:
            yield entered
        finally:
            self._wait(context.__aexit__(None, None, None))

    def _in_thread(self, callback: Callback) -> Callback:
        """The callback, run by the thread for callbacks; one that raises is logged."""
        self._check()
        callbacks = self._callbacks
        assert callbacks is not None

        def guarded(told: Any) -> None:
            try:
                callback(told)
            except Exception:
                log.exception("a callback failed")

        def tell(told: Any) -> None:
            with contextlib.suppress(RuntimeError):  # closed meanwhile: nobody wants to know any more
                callbacks.submit(guarded, told)

        return tell

    def _call(self, function: Callable[[], Result]) -> Result:
        """Call a plain function of the async client, on its loop."""

        async def call() -> Result:
            return function()

        return self._wait(call())

    def _wait(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        try:
            return self._submit(coroutine).result()
        except concurrent.futures.CancelledError:
            self._check()  # closing it cancels what others wait for
            raise

    def _submit(self, coroutine: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        try:
            self._check()
            assert self._loop is not None
            call = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # it was closed meanwhile
            coroutine.close()
            self._check()
            raise
        except BaseException:
            coroutine.close()
            raise
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        if self._is_closed:  # closing did not see this one
            call.cancel()
        return call

    @property
    def _is_closed(self) -> bool:
        return self._state == "closed"

    def _check(self) -> None:
        if self._state != "open":
            raise InvalidInput(f"this client is {self._state}", hint="use it inside `with … as client:`")
        if os.getpid() != self._pid:
            raise InvalidInput(
                "this client belongs to the process before the fork", hint="open one in each process"
            )
        if threading.current_thread() is self._thread:
            raise InvalidInput("this is the client's own thread", hint="wait for it in another one")

    async def _close(self) -> None:
        await asyncio.sleep(0)  # what was cancelled ends before what it uses
        await self._client.close()

    def _end(self) -> None:
        self._state = "closed"
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()
        if self._callbacks is not None:
            self._callbacks.shutdown(wait=False, cancel_futures=True)


class SyncDoor:
    """`Door` for threads; `door` is the async one, whose numbers may be read."""

    def __init__(self, door: Door, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.door = door
        self._wait = wait

    @property
    def guests(self) -> dict[str, Guest]:
        return self.door.guests

    @property
    def drain(self) -> bool:
        return self.door.drain

    @drain.setter
    def drain(self, drain: bool) -> None:
        self.door.drain = drain

    def consume(self, ticket: str, connection: str = "") -> Guest:
        guest: Guest = self._wait(self.door.consume(ticket, connection))
        return guest

    def leave(self, guest: Guest, how: How = "clean") -> None:
        self._wait(self.door.leave(guest, how))

    def report(self) -> None:
        self._wait(self.door.report())


async def _next(changes: Any) -> Change:
    change: Change = await anext(changes)
    return change


def connect_sync(url: str = "", **options: Any) -> SyncClient:
    """`roost.connect` for code without an event loop; the options are the same."""
    return SyncClient(connect(url, **options))
