"""Bindings as operators and clients see them."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.api.binding import (
    HeldUsers,
    Holder,
    HolderList,
    Home,
    HomeChange,
    HomeHistory,
    HomeState,
    UnknownBinding,
    UnknownHolder,
)
from roost.api.drain import MoveList, MoveView
from roost.binding.model import BindingChange, State
from roost.binding.service import Bindings
from roost.core.errors import InvalidInput
from roost.core.ids import check_id
from roost.core.owner import Owner

PAGE_LIMIT = 1000
HISTORY_LIMIT = 100
STATES: dict[State, HomeState] = {"A": "held", "M": "moving", "R": "released"}


async def home_of(bindings: Bindings, type_: str, user: str) -> Home:
    """Who holds a user; `UnknownBinding` if nobody ever did, or it was long ago."""
    record = await bindings.read(type_, user)
    if record is None:
        raise UnknownBinding(f"no server of type {type_} holds user {user[:40]!r}")
    owner = record.owner or Owner("", "")
    state = STATES[record.state]
    return Home(user, type_, state, *owner, record.epoch, iso(record.since), record.why)


async def history_of(bindings: Bindings, type_: str, user: str) -> HomeHistory:
    """The last changes of a user, newest first."""
    return HomeHistory([_line(change) for change in await bindings.history(type_, user, HISTORY_LIMIT)])


async def moves_of(bindings: Bindings, type_: str, user: str) -> MoveList:
    """What became of the attempts to move a user, newest first."""
    notes = await bindings.moves(type_, user)
    return MoveList(
        [MoveView(iso(int(n.at * 1e6)), n.job, n.source, n.target, n.outcome, n.why, n.phases) for n in notes]
    )


async def release_home(bindings: Bindings, type_: str, user: str) -> None:
    """An operator takes a user away from whoever holds them; `UnknownBinding` if nobody does."""
    if await bindings.unbind(type_, user) is None:
        raise UnknownBinding(f"no server of type {type_} holds user {user[:40]!r}")


async def holders(bindings: Bindings, type_: str) -> HolderList:
    rows = await bindings.servers(type_)
    return HolderList(
        [
            Holder(r.server_id, r.life, r.accepting, r.open, r.alive, r.users, r.capacity, r.version)
            for r in rows
        ],
        {row.server_id: row.accepting for row in rows},
        {row.server_id: row.users for row in rows},
    )


async def users_of(bindings: Bindings, type_: str, server_id: str, cursor: str, limit: int) -> HeldUsers:
    """A page of a server's users, partition by partition; the cursor is `partition:user`."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit is {limit}, must be 1 to {PAGE_LIMIT}")
    owner = await _owner(bindings, type_, server_id)
    number, after = _cursor(cursor, len(bindings.partitions))
    users: list[str] = []
    for partition in range(number, len(bindings.partitions)):
        found = await bindings.binders(type_, owner, after, limit - len(users), partition=partition)
        users += found
        if len(users) == limit:
            return HeldUsers(users, f"{partition}:{users[-1]}")
        after = ""
    return HeldUsers(users, "")


async def _owner(bindings: Bindings, type_: str, server_id: str) -> Owner:
    for row in await bindings.servers(type_):
        if row.server_id == server_id:
            return Owner(row.server_id, row.life)
    raise UnknownHolder(f"no server {server_id[:40]!r} of type {type_} holds users")


def _cursor(text: str, partitions: int) -> tuple[int, str]:
    if not text:
        return 0, ""
    number, _, after = text.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < 4 and int(number) < partitions):
        raise InvalidInput("cursor must be the one of the page before")
    return int(number), check_id(after, "cursor")


def _line(change: BindingChange) -> HomeChange:
    owner, source = change.owner or Owner("", ""), change.source
    at = iso(change.mark.at)
    return HomeChange(at, change.why, *owner, change.epoch, source.server_id if source else "")


def iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
