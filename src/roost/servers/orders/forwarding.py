"""Commands for shards of another order server: sent on once, or answered with who owns them."""

from __future__ import annotations

from collections.abc import Callable

from roost.core.errors import NotSent
from roost.lanes.commands import SERVICE
from roost.lanes.work import refused
from roost.wire.answer import Answer, refusal
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.pool import Pool
from roost.wire.server import Call

FORWARDED = 1
"""In the epoch of a frame: an order server has sent it on, and it goes no further."""

BUDGET_MS = 5000


class Forwarding:
    """`owners` says the wire address of a shard's owner, as far as this server has heard."""

    def __init__(self, peers: Pool, owners: Callable[[int], str]) -> None:
        self._peers = peers
        self._owners = owners
        self.sent = 0

    def take(self, call: Call, payload: bytes, shard: int) -> Answer | None:
        """Send it to the owner; None: the answer comes later. One connection to each keeps the order."""
        owner = self._owners(shard)
        if call.epoch == FORWARDED or not owner:
            return refused("NOT_OWNER", shard=shard, owner=owner)
        self.sent += 1
        host, _, port = owner.rpartition(":")

        def done(answer: Answer | Exception) -> None:
            call.reply(answer if isinstance(answer, Answer) else _failed(answer, shard))

        peer: Peer = self._peers.at(host, int(port))
        peer.send(
            SERVICE,
            call.method,
            payload,
            done=done,
            epoch=FORWARDED,
            budget_ms=call.budget_ms or BUDGET_MS,
            traceparent=call.traceparent,
        )
        return None


def _failed(error: Exception, shard: int) -> Answer:
    if isinstance(error, NotSent):
        return refused("NOT_OWNER", said=f"the owner of shard {shard} does not answer: {error.message}")
    return refusal(Code.DEADLINE, f"the owner of shard {shard} was asked and did not answer")
