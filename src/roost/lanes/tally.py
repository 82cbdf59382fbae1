"""What became of the commands of a shard, counted while its server runs, whoever owned it meanwhile."""

from __future__ import annotations

from collections import Counter


class Tally:
    """received = answered + refused + forwarded + under way, over all shards of a server."""

    __slots__ = ("answered", "failed", "healed", "refused", "violations")

    def __init__(self) -> None:
        self.answered = 0
        """Commands that were carried out, or refused with a receipt, and answered from the log."""
        self.refused: Counter[str] = Counter()
        """By reason: commands that were placed here and got no receipt."""
        self.failed = 0
        """Commands at which the machine failed; they are answered, too."""
        self.violations = 0
        """Commands of a lane that were executed in another order than they arrived in: G13 says 0."""
        self.healed = 0
        """How often entries that a primary had lost were appended again."""
