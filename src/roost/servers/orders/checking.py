"""The digest of each shard's state in its log, halfway between two snapshots: a replay compares itself.

A snapshot holds a digest of its own, which says that its bytes were read as they were written. That a replay
of the log comes to the state that was live only the log itself can say.
"""

from __future__ import annotations

from collections.abc import Mapping

from roost.servers.orders.keeping import Kept


class Checking:
    """Of the shards in `kept`."""

    def __init__(self, kept: Mapping[int, Kept], snapshot_commands: int) -> None:
        self._kept = kept
        self._commands = snapshot_commands // 2

    async def step(self) -> None:
        """One shard at most: making a digest encodes what changed, which holds up everybody else."""
        due = next((kept.shard for kept in self._kept.values() if self._is_due(kept)), None)
        if due is not None:
            due.check()
            due.commits.send()

    def _is_due(self, kept: Kept) -> bool:
        shard = kept.shard
        return shard.serves and shard.checked <= kept.seq and shard.seq - kept.seq >= self._commands
