"""A store with a user for each role, with the rules that `roost acl` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roost.store.acl.files import acl_line, digest_of, setuser
from roost.store.acl.patterns import Patterns
from roost.store.acl.roles import ROLES, user_of
from roost.testing import RunningServer

PASSWORD = "a-password-of-the-tests"
DIGEST = digest_of(PASSWORD)
EVERYTHING = "user default on nopass ~* &* +@all\n"
"""For the test itself."""


def url_of(role: str, url: str) -> str:
    """The URL for the user of a role."""
    return url.replace("://", f"://{user_of(role)}:{PASSWORD}@", 1)


def write_users(folder: Path) -> Path:
    """An `aclfile`: a store that is started again knows its users."""
    file = folder / "users.acl"
    file.write_text(EVERYTHING + "".join(acl_line(role, Patterns(), DIGEST) for role in ROLES))
    return file


def permit(servers: Sequence[RunningServer], user: str, rules: Sequence[str]) -> None:
    for server in servers:
        server.command_reply("ACL", "SETUSER", user, *rules)


def permit_roles(servers: Sequence[RunningServer]) -> None:
    """As the commands do that `roost acl --commands` prints."""
    for role in ROLES:
        for server in servers:
            server.command_reply(*setuser(role, Patterns(), DIGEST).split())


def denials(servers: Sequence[RunningServer]) -> list[Any]:
    """What the servers refused, as they noted it."""
    return [entry for server in servers for entry in server.command_reply("ACL", "LOG")]
