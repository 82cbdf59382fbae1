"""The settings of the waiting rooms: `ROOST_QUEUE__…`, the section `[queue]` of the file."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.lease import MAX_STEP_MS
from roost.core.setting import check_fields, checked, setting
from roost.waitingroom.rules import BATCH_LIMIT, Policy, parse_classes, parse_worlds


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Every process of one Roost needs the same values: each sends its own to the store with every call."""

    worlds: str = setting(
        "main",
        "Worlds with a waiting room, and the service type of their servers: main,arena=pvp. Each has its own "
        "line, its own game servers and its own leader among the managers, which lets people in where "
        "servers of that type (`game`, where none is named) take users; the first of them is the one that "
        "`server:status` tells of. A name has 1 to 32 letters, digits, - or _ and becomes the hash tag of "
        "the world's keys, so a renamed world starts empty.",
    )
    tick_ms: int = setting(
        1000,
        "Time between two ticks, each of which lets people in. In milliseconds, give or take 10 %; with "
        "`batch` it bounds how fast a world fills: batch × 1000 / tick_ms tickets a second. A shorter one "
        "fills free places sooner and costs the store one more script call per world and tick; nobody is "
        "over-admitted by it, because the script itself counts what is free. 2000 at most: one tick lets no "
        "more time pass in the world than that.",
        least=50,
        most=MAX_STEP_MS,
    )
    batch: int = setting(
        100,
        "Most tickets in one tick, 100 at most. It is also the largest party, where that is below 8: a party "
        "gets its tickets in one tick or not at all. A larger one empties the line faster and holds the "
        "store longer at a time; it never lets in more than there is room for.",
        most=BATCH_LIMIT,
    )
    ticket_seconds: int = setting(
        60,
        "How long a ticket can be used; after that its holder is next again. The place is kept free "
        "meanwhile, so long tickets leave places empty behind people who went away, and short ones fail "
        "people with a slow launcher. It should hold the longest poll (30 s) and the time to connect.",
    )
    grace_seconds: int = setting(
        120,
        "How long a place inside is held for one whose connection dropped; 0: not at all. Held places count "
        "as taken: a long time is kind to people on trains and keeps others waiting.",
        least=0,
    )
    late_seconds: int = setting(
        8,
        "How much later than told a call may come before others go first. Each answer says when to ask "
        "again; who is later than that by this much is away: the place is kept, tickets go to those behind. "
        "It must cover the delays of the network and the half second for which a gateway collects who was "
        "there.",
    )
    gone_seconds: int = setting(
        300,
        "How late a call may come before the place is lost. Counted from when the call was due. A longer one "
        "forgives longer outages, and keeps more places of people who will not come back.",
    )
    forfeit_no_shows: int = setting(
        0,
        "Tickets that somebody may let expire before the place is lost; 0: any number. A hand-off that "
        "failed through no fault of theirs does not count.",
        least=0,
    )
    max_waiting: int = setting(
        2_000_000,
        "Longest line of a world; people who come then are asked to come later. All classes together, "
        "without those who are away. It bounds what a crowd can take of the store's memory.",
    )
    classes: str = setting(
        "vip=1,base=3",
        "Classes and their shares of the tickets while people of each wait; `staff=first` goes before all. "
        "A share is weight / sum of the weights: with vip=1,base=3 every fourth ticket is a vip's, and where "
        "no vip waits all are of the base class. base must have a weight, 1 to 1000: its share is "
        "guaranteed. The class is what the login service signed.",
    )
    rebuild_seconds: int = setting(
        120,
        "After a wiped store: how long receipts bring people back to their old order. For a quarter of it, "
        "from the first receipt on, nobody is admitted, so that those who stood in front have the time to "
        "ask again; it should be four times the longest poll (30 s) or more. 600 at most: who left or was "
        "kicked is known for ten minutes, and a receipt must not outlast that.",
        most=600,
    )
    receipt_seconds: int = setting(
        3600,
        "After a wiped store: how long before the new world's birth the store must have confirmed a place, "
        "for its receipt to bring it back. It should cover the longest outage that ends in a wipe; somebody "
        "who was kicked within that time before a wipe gets the place back.",
    )
    user_per_second: int = setting(
        5,
        "Calls of one person in a second. In the long run, by whatever gateway they come; more are refused "
        "with 429 and the time to wait. People far back in a long line are counted by each gateway on its "
        "own.",
    )
    user_burst: int = setting(
        10, "Calls of one person at once. After a quiet time of user_burst / user_per_second seconds."
    )
    ip_per_second: int = setting(
        50,
        "Calls from one address (IPv6: one /64) in a second, per gateway. Twice as many at once. Many people "
        "share one address behind a carrier's NAT: this protects the gateway from a flood, user_per_second "
        "is what is fair. A caller with a token of the scope gameserver is not counted.",
    )

    def faults(self) -> list[str]:
        """Everything that does not fit, one line each, without the name of the section."""
        faults = check_fields(self)
        checked(faults, "worlds", parse_worlds, self.worlds)
        checked(faults, "classes", parse_classes, self.classes)
        return faults

    def policy(self) -> Policy:
        return Policy(
            tick_ms=self.tick_ms,
            batch=self.batch,
            ticket_ms=self.ticket_seconds * 1000,
            late_ms=self.late_seconds * 1000,
            gone_ms=self.gone_seconds * 1000,
            grace_ms=self.grace_seconds * 1000,
            forfeit=self.forfeit_no_shows,
            most_waiting=self.max_waiting,
            rebuild_ms=self.rebuild_seconds * 1000,
            receipt_ms=self.receipt_seconds * 1000,
            period_ms=1000 // self.user_per_second,
            burst=self.user_burst,
            classes=parse_classes(self.classes),
        )
