"""The roles of acceptance tests under their users, on stores that note what they refuse.

`STORE_USERS_SEEN` names the file in which users are noted that a store has seen; without it, roles run on the
embedded store, under a user who may do everything. `test_acl_suites.py` runs the suites of the roles with it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest

from roost.settings import Settings
from roost.store.acl.roles import ROLES
from roost.testing import Gateway, RunningServer, open_gateway, run_valkey
from tests.acceptance.store_users import denials, permit_roles, url_of, write_users

SWITCH = "STORE_USERS_SEEN"
EMBEDDED = "embedded:"


def role_of(args: tuple[str, ...]) -> str:
    """The role that a command runs; empty for one that asks a gateway, and for `up`, which runs several."""
    if args[:1] == ("orders",):
        return "orders" if args[1:2] == ("serve",) else ""
    return args[0] if args and args[0] in ROLES else ""


class RoleUsers:
    """The stores of one home: its own, in place of the embedded one, and those that its tests name."""

    def __init__(self, own: RunningServer, seen: Path) -> None:
        self.own = own
        self.settings: dict[str, str] = {}
        """Those of `up`; a game server that goes straight to the store needs the same."""
        self._servers = {own.port: own}
        self._seen = seen

    def settings_for(self, args: tuple[str, ...]) -> dict[str, str]:
        """The environment of a command whose test says nothing of a store."""
        role = role_of(args)
        if role == "gameserver":  # with a gateway between it would need no user
            return self.settings | {"ROOST_URL": EMBEDDED}
        if role:
            return {"ROOST_STORE": EMBEDDED}
        if args[:1] == ("drill",):
            pytest.skip("a drill has a store of its own, with one user")
        return {"ROOST_STORE": self.own.url} if args[:1] == ("up",) else {}

    def url(self, role: str, word: str) -> str:
        """The URL of a store as the role's user has it; any other word as it is."""
        if not role:
            return word
        if word == EMBEDDED:
            return url_of(role, self.own.url)
        parts = urlsplit(word) if word.startswith("redis://127.0.0.1:") else None
        if parts is None or parts.port is None or not self._has_users(parts.port):
            return word
        return url_of(role, word)

    def _has_users(self, port: int) -> bool:
        """Tell a server of them that a test has started; false where nobody answers."""
        if port not in self._servers:
            server = RunningServer(Path(), [], port)
            with suppress(OSError):
                permit_roles([server])
                self._servers[port] = server
        return port in self._servers

    def note_users(self) -> None:
        """As the servers list who is connected."""
        words = [
            word for server in self._servers.values() for word in _asked(server, "CLIENT", "LIST").split()
        ]
        with self._seen.open("a", encoding="utf-8") as file:
            file.writelines(f"{word[5:].decode()}\n" for word in words if word.startswith(b"user="))

    def refusals(self) -> list[str]:
        """Since it was asked last. NB: a server that a test has killed has taken its own with it."""
        found = []
        for server in self._servers.values():
            with suppress(OSError):
                found += [_told(entry) for entry in denials([server])]
                server.command_reply("ACL", "LOG", "RESET")
        return found


def _asked(server: RunningServer, *command: str) -> bytes:
    with suppress(OSError):
        return bytes(server.command_reply(*command))
    return b""


def _told(entry: list[Any]) -> str:
    fields = dict(zip(entry[::2], entry[1::2], strict=True))
    names = (b"username", b"reason", b"object", b"context")
    return " ".join(fields[name].decode(errors="replace") for name in names)


_open: list[RoleUsers] = []


@contextmanager
def role_users(folder: Path) -> Iterator[RoleUsers | None]:
    """Those of one home, where the run of the tests asks for them."""
    seen = os.environ.get(SWITCH)
    if not seen:
        yield None
        return
    users = write_users(folder)
    with run_valkey(persistent=True, options=("--aclfile", str(users))) as store:
        mine = RoleUsers(store, Path(seen))
        _open.append(mine)
        try:
            yield mine
            assert mine.refusals() == [], "refused by the store after the last test"
        finally:
            _open.remove(mine)


class InProcess:
    """The store of a gateway in the process of the tests."""

    def __init__(self, server: RunningServer, users: RoleUsers | None) -> None:
        self._server = server
        self._users = users

    def url(self, role: str) -> str:
        """As the role's user has it, where the run of the tests asks for them."""
        return self._server.url if self._users is None else url_of(role, self._server.url)

    def note_users(self) -> None:
        if self._users is not None:
            self._users.note_users()


@contextmanager
def in_process(server: RunningServer) -> Iterator[InProcess]:
    seen = os.environ.get(SWITCH)
    if not seen:
        yield InProcess(server, None)
        return
    permit_roles([server])
    mine = RoleUsers(server, Path(seen))
    _open.append(mine)
    try:
        yield InProcess(server, mine)
        assert mine.refusals() == [], "refused by the store after the last test"
    finally:
        _open.remove(mine)


@asynccontextmanager
async def open_gateway_as_role(server: RunningServer, settings: Settings) -> AsyncIterator[Gateway]:
    """`open_gateway`, under the gateway's user where the run of the tests asks for users."""
    with in_process(server) as store:
        async with open_gateway(store.url("gateway"), settings) as gateway:
            store.note_users()
            yield gateway


def refusals() -> list[str]:
    """Of every store that is in use."""
    return [told for users in _open for told in users.refusals()]


def needs_the_embedded_store() -> NoReturn:
    pytest.skip("needs the embedded store, which has one user")
