"""What a drill saw, and what it proves. Pure: events in, verdict out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_KEPT = 20
TOLD = 3
"""Of what broke a guarantee."""


@dataclass(frozen=True, slots=True)
class Verdict:
    guarantee: str
    held: bool
    said: str


def judged(guarantee: str, faults: Sequence[str], well: str) -> Verdict:
    """It held if there are no faults; the first few are told."""
    return Verdict(guarantee, not faults, "; ".join(faults[:TOLD]) if faults else well)


@dataclass(slots=True)
class Book:
    """Written by the players, read at the end."""

    users: int
    counts: Counter[str] = field(default_factory=Counter)
    entry_to_ticket_s: list[float] = field(default_factory=list)
    ticket_to_consumed_s: list[float] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)
    """Guarantee → what broke it, the first few."""
    inside: dict[str, str] = field(default_factory=dict)
    """User → server that they are on, by their own word."""
    used: set[str] = field(default_factory=set)
    """Tickets that let somebody in."""
    capacities: dict[str, int] = field(default_factory=dict)
    """URL of a server → the most people that it ever said it takes."""
    most_inside: int = 0

    def broken(self, guarantee: str, what: str) -> None:
        self.counts[f"broken {guarantee}"] += 1
        kept = self.faults.setdefault(guarantee, [])
        if len(kept) < MAX_KEPT:
            kept.append(what)

    def let_in(self, user: str, ticket: str, server: str) -> None:
        if user in self.inside:
            self.broken("G11", f"{user} is inside {self.inside[user]} and {server}")
        if ticket in self.used:
            self.broken("G11", f"a ticket of {user} let somebody in twice")
        self.used.add(ticket)
        self.inside[user] = server
        here = sum(1 for other in self.inside.values() if other == server)
        if here > self.capacities.get(server, here):
            self.broken("G10", f"{here} people on {server}, which takes {self.capacities[server]}")
        self.most_inside = max(self.most_inside, len(self.inside))
        self.counts["let in"] += 1

    def out(self, user: str) -> None:
        self.inside.pop(user, None)

    def saw_server(self, url: str, capacity: int) -> None:
        self.capacities[url] = max(capacity, self.capacities.get(url, 0))

    def verdicts(self, overadmit: int) -> list[Verdict]:
        lost = self.users - self.counts["finished"]
        g10 = [*self.faults.get("G10", ())]
        if overadmit:
            g10.append(f"the store counted {overadmit} tickets too many")
        g12 = [*self.faults.get("G12", ())]
        if lost:
            g12.append(f"{lost} of {self.users} people never got in and out")
        said = {
            "G10": (g10, f"at most {self.most_inside} inside at once, none too many"),
            "G11": (self.faults.get("G11", []), f"{len(self.used)} tickets, each used once"),
            "G12": (
                g12,
                f"{self.counts['blips']} blips and {self.counts['no-shows']} no-shows cost no place",
            ),
        }
        return [judged(name, faults, well) for name, (faults, well) in said.items()]


def percentile(values: list[float], share: float) -> float:
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
