"""Where users live, as this gate knows it: kept until the feed, or a bounce, says otherwise."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MOST = 200_000
"""Routes that are kept; then the one that was not asked for the longest goes."""


class Route(NamedTuple):
    """A user's home: the server, its life, and the epoch under which it holds them."""

    server_id: str
    life: str
    epoch: int

    def is_with(self, other: Route) -> bool:
        """Whether it is the same process, under whatever epoch."""
        return self.server_id == other.server_id and self.life == other.life


class Routes:
    """By (type, user). An epoch that is lower than what is known changes nothing."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Route] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, type_: str, user: str) -> Route | None:
        found = self._kept.get((type_, user))
        if found is not None:
            self._kept.move_to_end((type_, user))
        return found

    def keep(self, type_: str, user: str, route: Route) -> None:
        known = self._kept.get((type_, user))
        if known is not None and known.epoch > route.epoch:
            return
        self._kept[type_, user] = route
        self._kept.move_to_end((type_, user))
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def changed(self, type_: str, user: str, route: Route) -> None:
        """The feed tells of a change; a route that nobody asked for is not kept for it."""
        known = self._kept.get((type_, user))
        if known is None or known.epoch > route.epoch:
            return
        if route.server_id:
            self._kept[type_, user] = route
        else:
            del self._kept[type_, user]

    def forget(self, type_: str, user: str, route: Route | None = None) -> None:
        """Drop it; with a `route` only if it is still that one."""
        if route is None or self._kept.get((type_, user)) == route:
            self._kept.pop((type_, user), None)

    def clear(self) -> None:
        self._kept.clear()
