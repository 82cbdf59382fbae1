"""What `roost acl` prints, and the passwords that it keeps."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from roost.core.errors import InvalidInput
from roost.settings import Settings
from roost.store.acl.files import OWN_USERS, acl_line, digest_of, setuser, users_file
from roost.store.acl.patterns import Patterns
from roost.store.acl.roles import ROLES, user_of

LOCKED = "default"
"""The user that gets no password: it stays off."""


def printed(settings: Settings, roles: tuple[str, ...], folder: Path | None, *, as_commands: bool) -> str:
    """The users of these roles; without a role a whole file, with the store's own users in it."""
    if unknown := sorted(set(roles) - set(ROLES)):
        raise InvalidInput(f"no role {', '.join(unknown)}", hint=f"roles are: {', '.join(ROLES)}")
    patterns = patterns_of(settings)
    own = () if roles or as_commands else (user for user in OWN_USERS if user != LOCKED)
    users = [*own, *(user_of(role) for role in roles or ROLES)]
    try:
        digests = {user: digest_of(password_of(folder, user)) for user in users} if folder else {}
    except OSError as error:
        raise InvalidInput(f"cannot keep passwords in {folder}: {error.strerror}") from None
    if not roles and not as_commands:
        return users_file(patterns, digests)
    line = setuser if as_commands else acl_line
    return _joined(line(role, patterns, digests.get(user_of(role), "")) for role in roles or ROLES)


def _joined(lines: Iterable[str]) -> str:
    return "".join(lines)


def patterns_of(settings: Settings) -> Patterns:
    """Of the namespace and the key prefix that are set."""
    return Patterns(settings.namespace, settings.discovery.key_prefix)


def password_of(folder: Path, user: str) -> str:
    """What the user's file holds; a new one, readable by its owner alone, where there is none."""
    file = folder / user
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept(file)
    password = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="utf-8") as new:
        new.write(password + "\n")
    return password


def _kept(file: Path) -> str:
    password = file.read_text(encoding="utf-8").strip()
    if not password:
        raise InvalidInput(f"{file} is empty", hint="write a password into it, or delete it to have one made")
    return password
