"""What a gate counts of its clients' messages while a drain runs: pure, one `Book` for each job.

A message that was taken while somebody counts carries a `Trace`, to which its fate is told; without a job
none has one, and that is all that is tested on the way. Counts are kept by user and epoch, because order is
judged across homes: what a later epoch executes must come after what an earlier one has answered.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b

from roost.binding.drain.certificate import OUTCOME_UNKNOWN, GateReport

log = logging.getLogger("roost.gate")

MOST_USERS = 50_000
"""Users that one book follows; about half a kilobyte each."""
MOST_EPOCHS = 16
"""Homes of one user that are kept apart; then the two oldest become one."""
MOST_UNKNOWN = 64
"""Numbers of one user whose outcome may still become known."""
MOST_LOGGED = 100
"""Faults of one book that are logged one by one."""
MOVING_S = 10.0
"""How long after a change of home an end of the session is put down to it."""

BY_CLIENT = frozenset({"closed", "dropped", "idle", "slow", "failed", "replaced"})
"""Ends of a session that its client chose or caused; `replaced`: it came again, to this gate."""
LEFT = "LEFT"
"""What became of a message whose client went before its outcome: it can ask again by the number."""


class AtEpoch:
    """One user's messages under one epoch."""

    __slots__ = ("answered", "refused", "sent", "taken", "top")

    def __init__(self) -> None:
        self.taken = self.sent = self.answered = self.refused = 0
        self.top = 0
        """The highest number of the present session that was executed and answered."""


class Tally:
    """One user."""

    __slots__ = ("epochs", "moved_at", "unknown")

    def __init__(self) -> None:
        self.epochs: dict[int, AtEpoch] = {}
        self.moved_at: float | None = None
        """Monotonic seconds when their home was last looked for, or found."""
        self.unknown: set[int] = set()
        """Numbers of which nobody knows the outcome, as many as are kept."""

    def at(self, epoch: int) -> AtEpoch:
        found = self.epochs.get(epoch)
        if found is None:
            found = self.epochs[epoch] = AtEpoch()
            if len(self.epochs) > MOST_EPOCHS:
                self._fold()
        return found

    def is_behind(self, sequence: int, epoch: int) -> bool:
        """Whether an earlier home answered a later message already."""
        return any(past < epoch and counts.top > sequence for past, counts in self.epochs.items())

    def _fold(self) -> None:
        """The oldest into the one after it, which can only hide a fault between these two."""
        oldest, after = sorted(self.epochs)[:2]
        gone, kept = self.epochs.pop(oldest), self.epochs[after]
        for name in ("taken", "sent", "answered", "refused"):
            setattr(kept, name, getattr(kept, name) + getattr(gone, name))
        kept.top = max(kept.top, gone.top)


class Book:
    """Everything that one gate counts for one job."""

    def __init__(
        self, job: str, type_: str, clock: Callable[[], float], *, most_users: int = MOST_USERS
    ) -> None:
        self.job = job
        self.type = type_
        self.users: dict[str, Tally] = {}
        self.taken = self.sent = self.resent = self.answered = self.unknown = self.open = 0
        self.doubled = self.reordered = self.disconnected = self.uncounted = 0
        self.refused: Counter[str] = Counter()
        self.longest_s = 0.0
        self._clock = clock
        self._most_users = most_users
        self._logged = 0

    def follow(self, user: str) -> bool:
        """Whether the session that begins, or is there, is counted; earlier ones may have had its numbers."""
        tally = self.users.get(user)
        if tally is None:
            if len(self.users) >= self._most_users:
                self.uncounted += 1
                return False
            self.users[user] = Tally()
        else:
            for counts in tally.epochs.values():
                counts.top = 0
        return True

    # -- a message's way

    def took(self, user: str, epoch: int) -> None:
        self.taken += 1
        self.open += 1
        self.users[user].at(epoch).taken += 1

    def was_sent(self, user: str, epoch: int, *, again: bool) -> None:
        self.sent += 1
        self.resent += again
        self.users[user].at(epoch).sent += 1

    def was_answered(self, user: str, sequence: int, epoch: int, waited_s: float, *, executed: bool) -> None:
        tally = self.users[user]
        self._settle(waited_s)
        self.answered += 1
        counts = tally.at(epoch)
        counts.answered += 1
        if not executed:
            return
        if tally.is_behind(sequence, epoch):
            self.reordered += 1
            self._tell("reordered", user, sequence, epoch)
        counts.top = max(counts.top, sequence)
        self.is_known(user, sequence)

    def was_refused(self, user: str, sequence: int, epoch: int, code: str, waited_s: float) -> None:
        self._settle(waited_s)
        self.users[user].at(epoch).refused += 1
        if code != OUTCOME_UNKNOWN:
            self.refused[code] += 1
            return
        self.unknown += 1
        self._tell("unknown", user, sequence, epoch)
        if len(self.users[user].unknown) < MOST_UNKNOWN:
            self.users[user].unknown.add(sequence)

    def is_known(self, user: str, sequence: int) -> None:
        """An answer to this number came: if its outcome was unknown, it is not any more."""
        unknown = self.users[user].unknown
        if sequence in unknown:
            unknown.discard(sequence)
            self.unknown -= 1
            self.answered += 1

    def was_doubled(self, user: str, sequence: int, epoch: int) -> None:
        self.doubled += 1
        self._tell("doubled", user, sequence, epoch)

    # -- a session's way

    def moves(self, user: str) -> None:
        """The user's home is looked for, or was found."""
        self.users[user].moved_at = self._clock()

    def ended(self, user: str, reason: str, epoch: int, *, is_moving: bool) -> None:
        """A session of theirs is over."""
        at = self.users[user].moved_at
        near = is_moving or (at is not None and self._clock() - at < MOVING_S)
        if near and reason not in BY_CLIENT:
            self.disconnected += 1
            self._tell(f"disconnected ({reason})", user, 0, epoch)

    # -- what it comes to

    def report(self, gate: str, at: float, *, is_final: bool, seen: str = "") -> GateReport:
        return GateReport(
            gate=gate,
            users=len(self.users),
            taken=self.taken,
            forwarded=self.sent,
            answered=self.answered,
            refused=dict(self.refused),
            unknown=self.unknown,
            open=self.open,
            resent=self.resent,
            doubled=self.doubled,
            reordered=self.reordered,
            disconnected=self.disconnected,
            longest_pause_ms=round(self.longest_s * 1000),
            uncounted=self.uncounted,
            is_final=is_final,
            seen=seen,
            at=at,
        )

    def _settle(self, waited_s: float) -> None:
        self.open -= 1
        self.longest_s = max(self.longest_s, waited_s)

    def _tell(self, fault: str, user: str, sequence: int, epoch: int) -> None:
        self._logged += 1
        if self._logged <= MOST_LOGGED:
            told = {"job": self.job, "fault": fault, "userId": user, "seq": sequence, "epoch": epoch}
            log.warning("counted against the drain", extra=told)


class Trace:
    """Tells the books what becomes of one message."""

    __slots__ = ("_digest", "_sendings", "_under", "_user", "books")

    def __init__(self, user: str) -> None:
        self.books: tuple[Book, ...] = ()
        self._user = user
        self._sendings = 0
        self._digest = b""
        """Of the reply that was delivered, while another may come."""
        self._under = 0
        """The epoch of that reply."""

    def add(self, book: Book, epoch: int) -> None:
        """A book that counts it already, as one whose drain is rolled back at its end, does so once."""
        if book in self.books:
            return
        self.books += (book,)
        book.took(self._user, epoch)

    def sent(self, epoch: int) -> None:
        for book in self.books:
            book.was_sent(self._user, epoch, again=self._sendings > 0)
        self._sendings += 1

    def answered(
        self, sequence: int, epoch: int, waited_s: float, said: bytes | None, *, is_last: bool
    ) -> None:
        """`said`: what the handler returned; None: it was not executed. `is_last`: no attempt is out."""
        for book in self.books:
            book.was_answered(self._user, sequence, epoch, waited_s, executed=said is not None)
        if said is not None and not is_last:
            self._digest, self._under = digest_of(said), epoch

    def answered_again(self, sequence: int, epoch: int, said: bytes) -> None:
        """One more reply, though the client was told an outcome. A lower epoch than that of the reply is an
        owner of the past: what it did is in no row, or the present owner would have known its answer."""
        for book in self.books:
            if self._digest and epoch >= self._under and digest_of(said) != self._digest:
                book.was_doubled(self._user, sequence, epoch)
            book.is_known(self._user, sequence)

    def refused(self, sequence: int, epoch: int, code: str, waited_s: float) -> None:
        for book in self.books:
            book.was_refused(self._user, sequence, epoch, code, waited_s)


def digest_of(said: bytes) -> bytes:
    return blake2b(said, digest_size=16).digest()


class Books:
    """The books that are open, by type; asked when a session begins."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Book, ...]] = {}

    def of(self, type_: str, user: str) -> tuple[Book, ...]:
        """Those that count this user's new session."""
        return tuple(book for book in self._open.get(type_, ()) if book.follow(user))

    def add(self, book: Book) -> None:
        self._open[book.type] = (*self._open.get(book.type, ()), book)

    def remove(self, book: Book) -> None:
        self._open[book.type] = tuple(one for one in self._open.get(book.type, ()) if one is not book)
