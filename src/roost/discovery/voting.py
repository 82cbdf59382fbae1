"""What a health checker tells the others: changes, and to whom each instance is assigned.

A checker speaks of the instances that are its own to judge, once it has judged them: who is unhealthy, and
who is healthy though suspect. Of everybody else its silence says enough, so a healthy fleet costs no votes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from roost.discovery.assignment import assigned_checkers

MAX_VOTES = 200
"""In one call, which holds the store for a few milliseconds at most."""
CALLS_PER_TURN = 50

Finding = Literal["unhealthy", "healthy", "none"]


class Vote(NamedTuple):
    instance_id: str
    life: str
    finding: Finding


class Checkers(NamedTuple):
    """What a call of `vote` tells the caller."""

    live: tuple[str, ...]
    """The checkers that count, sorted."""
    joined: bool
    """Whether the caller did not count before: what it said then may be lost."""


class Ballot(Protocol):
    """Where several checkers agree: discovery."""

    async def vote(self, checker: str, votes: Sequence[Vote], *, leave: bool = ...) -> Checkers:
        """Take at most `MAX_VOTES` changes."""


class Voting:
    """One checker's part in the vote."""

    def __init__(self, ballot: Ballot) -> None:
        self.checker_id = secrets.token_hex(6)
        self.live: tuple[str, ...] = ()
        """The checkers that count; empty until the first call was answered."""
        self._ballot = ballot
        self._told: dict[str, Vote] = {}
        """By instance id: what the others have heard."""
        self._untold: dict[str, Vote] = {}
        self._has_changed = False
        """The live checkers are others than when `send` last returned."""

    @property
    def untold(self) -> list[Vote]:
        return list(self._untold.values())

    def is_assigned(self, instance_id: str) -> bool:
        """Whether the instance is ours to judge; while nobody is known everything is."""
        return not self.live or self.checker_id in assigned_checkers(self.live, instance_id)

    def say(self, instance_id: str, life: str, finding: Finding) -> None:
        told = self._told.get(instance_id)
        if told is None and finding == "none":
            self._untold.pop(instance_id, None)
            return
        vote = Vote(instance_id, life, finding)
        if vote == told:
            self._untold.pop(instance_id, None)
        else:
            self._untold[instance_id] = vote

    def withdraw(self, instance_id: str) -> None:
        """It is gone, or not ours any more."""
        self._untold.pop(instance_id, None)
        if told := self._told.get(instance_id):
            self._untold[instance_id] = told._replace(finding="none")

    def repeat(self) -> None:
        """Tell everything again: the others are others now, or the store may have lost it."""
        self._untold = self._told | self._untold

    async def send(self) -> bool:
        """Tell the others what is new, and that we live; True once after the live checkers changed."""
        for _ in range(CALLS_PER_TURN):
            votes = list(islice(self._untold.values(), MAX_VOTES))
            heard = await self._ballot.vote(self.checker_id, votes)
            self._note(votes)
            if heard.joined or heard.live != self.live:
                self._has_changed |= heard.live != self.live
                self.live = heard.live
                self.repeat()
            if not self._untold:
                break
        changed, self._has_changed = self._has_changed, False
        return changed

    def _note(self, votes: Sequence[Vote]) -> None:
        for vote in votes:
            if vote.finding == "none":
                self._told.pop(vote.instance_id, None)
            else:
                self._told[vote.instance_id] = vote
            if self._untold.get(vote.instance_id) == vote:  # else it changed while the call was under way
                del self._untold[vote.instance_id]

    async def leave(self) -> None:
        await self._ballot.vote(self.checker_id, (), leave=True)
