"""Peers by address."""

from __future__ import annotations

from functools import partial

import pytest

from roost.core.errors import NotSent
from roost.testing import eventually
from roost.wire.client import Peer
from roost.wire.pool import Pool


async def test_an_address_has_one_peer_and_the_longest_unused_goes() -> None:
    pool = Pool(partial(Peer, secret=None, role="manager"), most=2)
    first, second = pool.at("127.0.0.1", 1), pool.at("127.0.0.1", 2)
    assert pool.at("127.0.0.1", 1) is first

    pool.at("127.0.0.1", 3)

    assert len(pool) == 2
    assert pool.at("127.0.0.1", 1) is first
    await eventually(lambda: len(pool) == 2)
    assert pool.at("127.0.0.1", 2) is not second
    await pool.close()
    assert len(pool) == 0


async def test_what_was_closed_sends_nothing() -> None:
    pool = Pool(partial(Peer, secret=None, role="manager"))
    peer = pool.at("127.0.0.1", 1)
    await pool.close()
    with pytest.raises(NotSent):
        await peer.call(1, 4, b"", budget_ms=100)
