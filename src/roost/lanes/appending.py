"""Entries of several shards on their way to the store, in one call for each turn of the loop.

A turn of an order server executes commands of many shards, few of each; a call for each shard would cost more
than the commands. On a cluster each shard has a slot, and so a call, of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from roost.core.errors import StoreError, StoreRefused, StoreUnavailable
from roost.store.keys import Key
from roost.store.scripts import Script
from roost.store.store import Store


@dataclass(frozen=True, slots=True)
class Answered:
    words: list[str]


@dataclass(frozen=True, slots=True)
class Appended:
    """It stands in the log."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The log ends elsewhere than its owner knows: `<epoch>-<seq>:<last seq>`; empty: there is none."""

    tail: str


Done = Callable[[Appended | Behind | StoreError], None]

APPENDED = Appended()

_PLUS = b"+"


class Entry(NamedTuple):
    """One entry of one shard."""

    log: Key
    tail: Key
    previous: str
    mark: str
    id: str
    commands: int
    batch: bytes
    done: Done


class Appending:
    """Of one process. One call is under way; whatever is added meanwhile travels together in the next.

    Between two calls the answers of the first leave: traders act on them while the second is put together.

    NB: letting calls wait a millisecond or more for others made each carry more, and saved no time of the
    processor.
    """

    def __init__(self, store: Store) -> None:
        self._script: Script[Answered] = store.library.script("lanes", "append", Answered)
        self._together = store.topology.shape != "cluster"
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Entry] = []
        self._next: list[Callable[[], None]] = []
        self._is_under_way = False
        self._is_due = False

    def add(self, entry: Entry) -> None:
        """Send it with what else comes in this turn of the loop, or after the call that is under way."""
        if not self._is_under_way and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._send)
        self._waiting.append(entry)

    def afterwards(self, send: Callable[[], None]) -> None:
        """Have `send`, which adds an entry, called when the answers that are given now have left."""
        self._next.append(send)
        self._go_on()

    def _go_on(self) -> None:
        if not self._is_due:
            self._is_due = True
            after_writes(self._loop, self._send)

    def _send(self) -> None:
        if self._is_under_way:  # its answer goes on
            self._is_due = False
            return
        senders, self._next = self._next, []
        for send in senders:
            send()
        self._is_due = False
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._together:
            self._is_under_way = True
            self._call(waiting)
        else:
            for entry in waiting:
                self._call([entry])

    def _call(self, entries: list[Entry]) -> None:
        parameters: list[Any] = [2 * len(entries)]
        values: list[Any] = []
        for log, tail, previous, mark, entry_id, count, batch, _ in entries:
            parameters += (log, tail)
            values += (previous, mark, entry_id, count, batch)
        answer = self._script.submit((*parameters, *values), entries[0].log)
        answer.add_done_callback(lambda future: self._answered(future, entries))

    def _answered(self, future: asyncio.Future[Any], entries: list[Entry]) -> None:
        self._is_under_way = False
        try:
            words = future.result()[1]
        except StoreError as error:
            for entry in entries:
                entry.done(error)
        except asyncio.CancelledError:
            for entry in entries:
                entry.done(StoreUnavailable("the call was cancelled"))
        else:
            for entry, word in zip(entries, words, strict=True):
                entry.done(APPENDED if word == _PLUS else _answer(word.decode()))
        if self._waiting or self._next:
            self._go_on()


def after_writes(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Call `act` when what is answered in this turn of the loop has been written, which the next one does."""
    loop.call_soon(loop.call_soon, act)


def _answer(word: str) -> Behind | StoreError:
    return Behind(word[1:]) if word.startswith("-") else StoreRefused(word[1:])
