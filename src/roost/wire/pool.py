"""Peers by address, for servers that ask many others now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from roost.wire.client import Peer

MOST = 256
"""Beyond it the one that was not used for longest is closed."""


class Pool:
    """`dial` makes a peer; it connects when it is used."""

    def __init__(self, dial: Callable[[str, int], Peer], most: int = MOST) -> None:
        self._dial = dial
        self._most = most
        self._peers: dict[tuple[str, int], Peer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._peers)

    def at(self, host: str, port: int) -> Peer:
        """The way to this address."""
        peer = self._peers.pop((host, port), None) or self._dial(host, port)
        self._peers[host, port] = peer
        if len(self._peers) > self._most:
            self._forget(next(iter(self._peers)))
        return peer

    def _forget(self, address: tuple[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self._peers.pop(address).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        peers, self._peers = list(self._peers.values()), {}
        await asyncio.gather(*(peer.close() for peer in peers), *self._closing, return_exceptions=True)
