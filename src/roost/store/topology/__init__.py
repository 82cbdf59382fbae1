"""Which node a call goes to: one server, a Sentinel-watched primary, or the owner of a cluster slot."""

from __future__ import annotations

from typing import Protocol

from roost.store.call import Call
from roost.store.connection import Access, Connection
from roost.store.link import Link, retry_later
from roost.store.url import Address, Shape

RETRY_S = 0.05
"""Pause before a call is sent again that the node could not take just now."""

TRANSIENT = frozenset({"LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN", "CLUSTERDOWN"})
"""First words of errors that mean: not carried out, ask again shortly."""


class Topology(Protocol):
    shape: Shape
    access: Access

    def submit(self, call: Call) -> None:
        """Send the call to the node that owns its key."""

    async def ready(self, timeout_s: float | None) -> None:
        """Return once calls can be sent; raise `StoreUnavailable` with the reason otherwise."""

    def links(self) -> list[Link]:
        """One per primary."""

    def address_for(self, key: bytes) -> Address | None:
        """Where the primary of this key listens; None while that is not known."""

    def connection_for(self, key: bytes) -> Connection | None:
        """The open connection to the primary of this key; None while there is none."""

    def doubt(self) -> None:
        """A node refused what it should own: find out soon whose it is."""

    async def close(self) -> None: ...


def single_primary_policy(link: Link, call: Call, word: str, message: str) -> bool:
    """What to do with an error reply where one primary serves everything.

    READONLY means that the primary was demoted under us: dialling again resolves its name again.
    """
    if word == "READONLY":
        link.redial("the node is a replica now")
    elif word not in TRANSIENT:
        return False
    retry_later(call, RETRY_S, link.resubmit, message)
    return True
