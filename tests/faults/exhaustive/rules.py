"""The rules that may be taken away, one at a time."""

from __future__ import annotations

from typing import NamedTuple


class Rules(NamedTuple):
    """Each says what holds while it is true."""

    db_fence: bool = True
    """A flush needs the row's epoch."""
    repair: bool = True
    """A login that finds another living owner in the row gives the map back to it."""
    reassert: bool = True
    """Owners say again whom they hold after a failover."""
    epoch_on_abort: bool = True
    """A mark that ends without a commit gives a new epoch."""
    dedupe: bool = True
    """What was executed is not executed again."""
    r1: bool = True
    """After an attempt to freeze the source never serves under `e` again."""
    r2: bool = True
    """Settling claims where the row is still ours."""
    r3: bool = True
    """After a lapse: a new epoch, then serve."""
    r4: bool = True
    """A flush needs a higher revision, and the target checks it."""
    r5: bool = True
    """A claim names the epoch that it judged."""
    r6: bool = True
    """No accept without a lease; no good state is dropped for a map that is behind."""
    r7: bool = True
    """The gate names the highest epoch that it has seen."""
    r8: bool = True
    """A refused login campaigns above the row; a release clears the row's owner."""
    r9: bool = True
    """Executed is only the next one."""
    r10: bool = True
    """Seats are counted in `grant` and nowhere else."""

    look_first: bool = True
    """A login looks at the row before it takes over from somebody."""

    def without(self, name: str) -> Rules:
        return self._replace(**{name: False})


ALL = Rules()
