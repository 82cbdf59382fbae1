"""A cluster: every call goes to the primary that owns the slot of its key.

The slot map is learnt from most of the nodes, corrected by MOVED, and learnt again on any sign of trouble.
Where they differ, a node that sees the cluster whole is believed before one that does not, then the newer
epoch, then the greater number: an old primary that was cut off from the others cannot keep us. Calls that
wait for a node which no longer owns their slot are taken along to the new owner.
"""

from __future__ import annotations

import asyncio
import logging
import random
from binascii import crc_hqx
from collections import Counter
from dataclasses import dataclass
from typing import Any

from roost.core.backoff import jittered
from roost.core.errors import StoreError, StoreRefused, StoreUnavailable
from roost.core.loops import Loops
from roost.store.call import Call
from roost.store.connection import Access, Connection, ask, dial, reason_of
from roost.store.link import Link, LinkOptions, retry_later
from roost.store.topology import RETRY_S, TRANSIENT
from roost.store.url import Address, Shape, parse_address

log = logging.getLogger("roost.store.cluster")

SLOTS = 16384
REFRESH_INTERVAL_S = 15.0
REFRESH_PAUSE_S = 0.1
MOST_ASKED = 9
"""Nodes that are asked for their view; of a larger cluster a random choice."""


EXPLAINED = {
    "TRYAGAIN": " — a slot is being moved key by key, and a script needs keys from both sides: move slots "
    "atomically (docs/operations.md, Cluster)"
}
"""What the operator should know about an error that did not pass by itself."""


def slot_of(key: bytes) -> int:
    """The slot of a key, or of the part between the first `{` and the next `}` where there is one."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) % SLOTS


class Cluster:
    shape: Shape = "cluster"

    def __init__(
        self, seeds: tuple[Address, ...], access: Access, options: LinkOptions, loops: Loops | None = None
    ) -> None:
        self.access = access
        self._loops = loops or Loops()
        self._seeds = seeds
        self._options = options
        self._owners: list[Address | None] = [None] * SLOTS
        self._links: dict[Address, Link] = {}
        self._nodes: tuple[Address, ...] = ()
        """Everybody in the last map."""
        self._why_unknown = "not asked yet"
        self._refused: StoreRefused | None = None
        self._refresh_now = asyncio.Event()
        self._refreshed = asyncio.Event()
        self._keeper = asyncio.create_task(self._loops.keep_running("cluster map", self._keep_map))

    # -- calls

    def submit(self, call: Call) -> None:
        if call.future.done():
            return
        owner = self._owner_of(call)
        if owner is None:
            self._refresh_now.set()
            retry_later(
                call, RETRY_S, self.submit, f"CLUSTERDOWN no node owns this slot ({self._why_unknown})"
            )
        else:
            self._link(owner).submit(call)

    def _owner_of(self, call: Call) -> Address | None:
        if call.key is not None:
            return self._owners[slot_of(call.key)]
        up = (address for address, link in self._links.items() if link.connected)
        return next(up, next(iter(self._links), None))

    def _policy(self, link: Link, call: Call, word: str, message: str) -> bool:
        if word == "MOVED":
            _, slot, target = message.split(" ")
            owner = _address(target, link.name)
            self._owners[int(slot)] = owner
            self._refresh_now.set()
            self._link(owner).resubmit(call)
        elif word == "ASK":
            call.asking = True
            self._link(_address(message.split(" ")[2], link.name)).resubmit(call)
        elif word in TRANSIENT or word == "READONLY":
            self._refresh_now.set()
            retry_later(call, RETRY_S, self.submit, message + EXPLAINED.get(word, ""))
        else:
            return False
        return True

    # -- nodes

    async def ready(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s or self._options.connect_timeout_s):
                while None in self._owners:
                    self._refreshed.clear()
                    self._refresh_now.set()
                    await self._refreshed.wait()
                    if self._refused is not None:
                        raise self._refused
        except TimeoutError:
            raise StoreUnavailable(f"the cluster is not complete: {self._why_unknown}") from None
        await asyncio.gather(*(link.ready(timeout_s) for link in self.links()))

    def links(self) -> list[Link]:
        return [self._link(address) for address in dict.fromkeys(self._owners) if address is not None]

    def address_for(self, key: bytes) -> Address | None:
        return self._owners[slot_of(key)]

    def connection_for(self, key: bytes) -> Connection | None:
        owner = self._owners[slot_of(key)]
        return self._link(owner).connection if owner is not None else None

    def doubt(self) -> None:
        self._refresh_now.set()

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self._links.values()))

    def _link(self, address: Address) -> Link:
        link = self._links.get(address)
        if link is None:
            link = Link(
                str(address),
                lambda: self._connect(address),
                self._options,
                self._policy,
                self.doubt,
                loops=self._loops,
            )
            self._links[address] = link
        return link

    async def _connect(self, address: Address) -> Connection:
        return await dial(address, self.access, self._options.connect_timeout_s)

    # -- the map

    async def _keep_map(self) -> None:
        """Learn the map, then wait until somebody doubts it or it is old."""
        try:
            await self._refresh()
        except Exception as error:
            self._refused = error if isinstance(error, StoreRefused) else None
            self._why_unknown = reason_of(error)
            raise
        finally:
            self._refreshed.set()
        self._loops.loop("cluster map").good()
        await asyncio.sleep(jittered(REFRESH_PAUSE_S, 0.3))
        try:
            async with asyncio.timeout(jittered(REFRESH_INTERVAL_S)):
                await self._refresh_now.wait()
        except TimeoutError:
            pass
        self._refresh_now.clear()

    async def _refresh(self) -> None:
        owners = await self._learn()
        self._why_unknown = "some slots have no primary"
        # A node that owns nothing may still be the target of a slot on the move: not while it has work.
        gone = {
            a for a, link in self._links.items() if a not in owners and not (link.connected and link.inflight)
        }
        self._owners = owners
        for address in gone:
            log.info("node left the cluster map", extra={"node": str(address)})
            for call in await self._links.pop(address).retire():
                self.submit(call)
        for address, link in list(self._links.items()):
            for call in self._strays(address, link):
                self.submit(call)

    def _strays(self, address: Address, link: Link) -> list[Call]:
        """What waits for a node that stays but is away, and by now belongs to another."""
        if link.connected:
            return []
        return link.withdraw(lambda call: self._owner_of(call) != address)

    async def _learn(self) -> list[Address | None]:
        """The map that most can be said for, once most of the nodes have answered."""
        asked = self._nodes_to_ask()
        views, problem = await _first_half(
            [asyncio.ensure_future(self._view_of(address)) for address in asked]
        )
        if not views:
            raise problem or StoreUnavailable("no node is known")
        votes = Counter(tuple(view.owners) for view in views)
        best = max(views, key=lambda view: (view.is_whole, view.epoch, votes[tuple(view.owners)]))
        self._nodes = best.nodes
        return best.owners

    def _nodes_to_ask(self) -> list[Address]:
        """Seeds and everybody in the last map, replicas too: one of them may be a primary by now."""
        known = list(dict.fromkeys([*self._seeds, *self._nodes, *self._links]))
        return known if len(known) <= MOST_ASKED else random.sample(known, MOST_ASKED)

    async def _view_of(self, address: Address) -> _View:
        timeout_s = self._options.connect_timeout_s
        connection = await dial(address, self.access, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                slots = await ask(connection, "CLUSTER", "SLOTS", timeout_s=timeout_s)
                try:
                    info = await ask(connection, "CLUSTER", "INFO", timeout_s=timeout_s)
                except StoreRefused:  # a user without CLUSTER INFO: then the number decides
                    info = b""
        except TimeoutError:
            raise StoreUnavailable(f"{address} did not answer") from None
        finally:
            connection.abort()
        return _view_in(slots, info, address)


@dataclass(frozen=True, slots=True)
class _View:
    """The cluster as one node sees it."""

    owners: list[Address | None]
    nodes: tuple[Address, ...]
    epoch: int
    is_whole: bool
    """Whether it reaches most of the primaries, so that it may speak for the cluster."""


async def _first_half(asking: list[asyncio.Future[_View]]) -> tuple[list[_View], StoreError | None]:
    """The views of more than half, or of all that answer; and what kept one of the others from answering."""
    views: list[_View] = []
    problem: StoreError | None = None
    pending = set(asking)
    try:
        while pending and 2 * len(views) <= len(asking):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                error = one.exception()
                if error is None:
                    views.append(one.result())
                elif isinstance(error, StoreError):
                    problem = error
                else:
                    raise error
    finally:
        for one in pending:
            one.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    return views, problem


def _view_in(slots: list[Any], info: bytes, asked: Address) -> _View:
    facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    nodes = {_node(node, asked): None for _, _, *row in slots for node in row}
    return _View(
        _owners_of(slots, asked),
        tuple(nodes),
        int(facts.get("cluster_current_epoch", 0)),
        facts.get("cluster_state", "ok") == "ok",
    )


def _owners_of(reply: list[Any], asked: Address) -> list[Address | None]:
    owners: list[Address | None] = [None] * SLOTS
    for first, last, primary, *_ in reply:
        owners[first : last + 1] = [_node(primary, asked)] * (last - first + 1)
    return owners


def _node(node: list[Any], asked: Address) -> Address:
    host = (node[0] or b"").decode()
    return Address(asked.host if host in ("", "?") else host, int(node[1]))


def _address(text: str, asked: str) -> Address:
    """The node in a redirect; an empty host means the one that was asked."""
    host, _, port = text.rpartition(":")
    if not host:
        host = parse_address(asked.removesuffix(" bulk"), 6379).host
    return Address(host.strip("[]"), int(port))
