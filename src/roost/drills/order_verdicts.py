"""G13 to G16, judged by the books of traders and the log of the shards. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from roost.drills.ledger import Verdict, judged
from roost.drills.trader_book import Sent, TraderBook
from roost.lanes.commands import Method, Outcome


@dataclass(slots=True)
class Logged:
    """What the store holds in the end."""

    commands: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    """(shard, seq) → (account, client's number) of every command of the logs."""
    cut: dict[int, int] = field(default_factory=dict)
    """Shard → the last command that the snapshot has and the log no longer."""


def verdicts(books: Sequence[TraderBook], logged: Logged) -> list[Verdict]:
    return [in_order(books), nothing_open(books), ids_rise(books), nothing_lost(books, logged)]


def in_order(books: Sequence[TraderBook]) -> Verdict:
    """G13. A command that was sent twice may have been taken either time: only its receipts' lane counts."""
    faults: list[str] = []
    compared = cancels = 0
    for book in books:
        last: Outcome | None = None
        for one in _first_try(book):
            if last is not None and one.shard == last.shard:
                compared += 1
                if one.seq <= last.seq:
                    faults.append(
                        f"{book.account}: command {one.seq} ran before {last.seq} of shard {one.shard}"
                    )
            last = one
        orders = book.orders()
        for cancel in book.commands:
            order = orders.get(cancel.cancels)
            if order is None or cancel.outcome is None or order.outcome is None:
                continue
            cancels += 1
            if cancel.outcome.shard == order.outcome.shard and cancel.outcome.seq <= order.outcome.seq:
                faults.append(f"{book.account}: the cancel of {cancel.cancels} ran before its order")
    return judged(
        "G13", faults, f"{compared} commands in the order of sending, {cancels} cancels after their orders"
    )


def nothing_open(books: Sequence[TraderBook]) -> Verdict:
    """G14."""
    sent = [one for book in books for one in book.commands]
    accepted = sum(one.is_accepted for one in sent)
    left = [one for one in sent if one.is_open]
    rejected = len(sent) - accepted - len(left)
    faults = [f"command {one.number} for {one.symbol} never got an answer" for one in left]
    if not sent:
        faults.append("nothing was sent")
    return judged("G14", faults, f"{len(sent)} sent = {accepted} accepted + {rejected} rejected")


def ids_rise(books: Sequence[TraderBook]) -> Verdict:
    """G15."""
    made = [one.outcome for book in books for one in book.orders().values() if one.outcome is not None]
    times = Counter(outcome.order_id for outcome in made)
    faults = [
        f"order id {order_id} was given {count} times" for order_id, count in times.items() if count > 1
    ]
    lanes: dict[tuple[int, int], list[Outcome]] = defaultdict(list)
    for outcome in made:
        lanes[outcome.shard, outcome.lane].append(outcome)
    for (shard, lane), outcomes in lanes.items():
        outcomes.sort(key=lambda outcome: outcome.seq)
        faults += [
            f"lane {shard}:{lane}: id {later.order_id} after {earlier.order_id}"
            for earlier, later in pairwise(outcomes)
            if later.order_id <= earlier.order_id
        ]
    return judged("G15", faults, f"{len(made)} order ids, all different, rising in {len(lanes)} lanes")


def nothing_lost(books: Sequence[TraderBook], logged: Logged) -> Verdict:
    """G16: what was accepted is in the log where its receipt says, and is answered the same again."""
    faults: list[str] = []
    found = cut = 0
    for book in books:
        for one in book.commands:
            if one.outcome is None or not one.is_accepted:
                continue
            shard, seq = one.outcome.shard, one.outcome.seq
            if logged.commands.get((shard, seq)) == (book.account, one.number):
                found += 1
            elif seq <= logged.cut.get(shard, 0):
                cut += 1
            else:
                faults.append(f"{book.account}: command {one.number} is not at {shard}/{seq} of the log")
        faults += book.again
    again = sum(book.asked_again for book in books)
    kept = f"{found} accepted commands are in the log, {cut} in snapshots"
    return judged("G16", faults, f"{kept}; {again} were answered the same again")


def _first_try(book: TraderBook) -> Iterator[Outcome]:
    for one in book.commands:
        if one.tries == 1 and one.outcome is not None:
            yield one.outcome


def counts(books: Sequence[TraderBook]) -> dict[str, int]:
    """What happened, for people."""
    sent: list[Sent] = [one for book in books for one in book.commands]
    delays: Counter[str] = Counter()
    for book in books:
        delays += book.delays
    return {
        "sent": len(sent),
        "accepted": sum(one.is_accepted for one in sent),
        "cancels": sum(one.method == Method.CANCEL for one in sent),
        "sent again": sum(one.tries > 1 for one in sent),
        **{f"answer {word}": count for word, count in sorted(delays.items())},
    }
