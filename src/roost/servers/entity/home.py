"""What an entity can do with the server that holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from roost.sdk.entity import Orders, TimerCall
from roost.servers.entity.session import Session
from roost.servers.entity.timers import RunningTimer

ENTITY_SERVICE = 1
PUSH = 1
KICKED = 2

_encode = msgspec.msgpack.Encoder().encode


class SessionHome:
    """The `Home` of one session; `changed`, `ring` and `desk` are the host's."""

    def __init__(
        self,
        session: Session,
        service: tuple[str, str, str],
        *,
        changed: Callable[[Session], None],
        ring: Callable[[Session, RunningTimer, TimerCall], None],
        desk: Callable[[Session], Orders],
    ) -> None:
        """`service`: type, server id, version."""
        self._session = session
        self._changed = changed
        self._ring = ring
        self._desk = desk
        self.user = session.user
        self.type, self.server_id, self.version = service

    @property
    def context(self) -> dict[str, Any]:
        return self._session.context

    @property
    def orders(self) -> Orders:
        return self._desk(self._session)

    def push(self, body: object) -> bool:
        session = self._session
        if not session.is_open or session.peer is None or session.is_replaying:
            return False
        payload = _encode((self.type, self.user, session.pushes + 1, body))
        if not session.peer.push(ENTITY_SERVICE, PUSH, payload, epoch=session.epoch):
            return False
        session.pushes += 1
        return True

    def changed(self) -> None:
        if self._session.is_open:
            self._changed(self._session)

    def after(self, seconds: float, call: TimerCall, *, repeats: bool) -> RunningTimer:
        session = self._session
        return session.timers.add(seconds, lambda timer: self._ring(session, timer, call), repeats=repeats)


def kick(session: Session, type_: str, client: str, peer: Any, reason: str) -> None:
    """Tell the gate of a former session that it is over."""
    peer.push(ENTITY_SERVICE, KICKED, _encode((type_, session.user, reason, client)), epoch=session.epoch)
