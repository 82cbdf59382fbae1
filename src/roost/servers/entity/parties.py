"""Who is of which party, as the users of this server say."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

from roost.binding.protocol import Willing
from roost.servers.entity.departing import willingness
from roost.servers.entity.session import Session

EVERY_S = 0.25
"""To ask all of a full server takes ten milliseconds of its loop, and dozens of parties move in a second."""


def party_of(session: Session | None) -> str:
    """Which party the user names now; empty: none, or they cannot move."""
    said = willingness(session) if session is not None and session.is_open else None
    return said.party if isinstance(said, Willing) else ""


class Parties:
    """As all said when they were asked last.

    What has changed since is no harm: each says it again in their turn, and a party of which one does not
    agree is tried later. Who joined since goes by themselves, as does who joins a party on its way.
    """

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        self._sessions = sessions
        self._members: Mapping[str, list[str]] = {}
        self._asked_at = float("-inf")

    def members(self, party: str) -> list[str]:
        """Those of them who are still here."""
        now = time.monotonic()
        if now - self._asked_at >= EVERY_S:
            self._asked_at, self._members = now, self._ask()
        found = ((user, self._sessions.get(user)) for user in self._members.get(party, ()))
        return [user for user, session in found if session is not None and session.is_open]

    def _ask(self) -> Mapping[str, list[str]]:
        members = defaultdict[str, list[str]](list)
        for user, session in self._sessions.items():
            if party := party_of(session):
                members[party].append(user)
        return members
