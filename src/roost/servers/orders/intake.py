"""What came to an order server, and the answers to what was not taken: each counted once (G14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from roost.lanes.outcomes import Rejected
from roost.lanes.shard import Shard
from roost.lanes.tally import Tally
from roost.lanes.work import refused
from roost.wire.answer import Answer, refusal
from roost.wire.codes import Code


class Intake:
    """`tallies`: of the shards; a refusal that concerns one of them is counted there."""

    def __init__(self, tallies: Mapping[int, Tally]) -> None:
        self.received = 0
        """Commands that came, from traders, operators and other shards."""
        self.forwarded = 0
        """Those that were sent on to the owner of their shard."""
        self.unplaced: Counter[str] = Counter()
        """By reason those that were refused before a shard of this server was named."""
        self._tallies = tallies

    def totals(self) -> Counter[str]:
        """Commands without a receipt, by reason."""
        found = Counter(self.unplaced)
        for tally in self._tallies.values():
            found += tally.refused
        return found

    def bad(self, why: str) -> Answer:
        self.unplaced["BAD_REQUEST"] += 1
        return refusal(Code.BAD_REQUEST, why, reason="BAD_REQUEST")

    def failed(self, why: str) -> Answer:
        self.unplaced["FAILED"] += 1
        return refusal(Code.FAILED, why)

    def refused(self, reason: str, said: str = "") -> Answer:
        self.unplaced[reason] += 1
        return refused(reason, said=said)

    def refused_by(self, shard: Shard, reason: str) -> Answer:
        shard.tally.refused[reason] += 1
        return refused(reason)

    def rejected(self, taken: Rejected, shard: Shard) -> Answer:
        reason = taken.reason.name
        shard.tally.refused[reason] += 1
        return refused(reason, retry_after_ms=taken.retry_after_ms, depth=taken.depth, waitMs=taken.wait_ms)

    def elsewhere(self, answer: Answer | None) -> Answer | None:
        """To a command for another server: None, it was sent on."""
        if answer is None:
            self.forwarded += 1
        else:
            self.unplaced["NOT_OWNER"] += 1
        return answer
