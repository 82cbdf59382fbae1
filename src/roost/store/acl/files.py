"""The ACL files of `deploy/redis`: `python -m roost.store.acl.files deploy/redis` writes them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from roost.store.acl.patterns import Patterns
from roost.store.acl.roles import ROLES, rights_of, user_of

OWN_USERS: Mapping[str, str] = {
    "default": "resetkeys resetchannels -@all",
    "roost-admin": "~* &* +@all",
    "roost-replica": "resetkeys resetchannels -@all +psync +replconf +ping",
    "roost-sentinel": "resetkeys allchannels -@all +multi +slaveof +replicaof +ping +exec +subscribe "
    "+psubscribe +publish +config|rewrite +role +info +client|setname +client|kill +script|kill",
}
"""Those of the store itself: who connects without a name, a person, a replica, a sentinel."""


def digest_of(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def rules_of(role: str, patterns: Patterns, digest: str = "") -> str:
    """The rules of a role's user; without the SHA-256 of a password nobody can log in as it."""
    return " ".join([*_state(digest), *rights_of(role, patterns).rules()])


def acl_line(role: str, patterns: Patterns, digest: str = "") -> str:
    return f"user {user_of(role)} {rules_of(role, patterns, digest)}\n"


def setuser(role: str, patterns: Patterns, digest: str = "") -> str:
    """The same as a command for a store that runs; on a cluster for each node."""
    return f"ACL SETUSER {user_of(role)} reset {rules_of(role, patterns, digest)}\n"


def own_lines(digests: Mapping[str, str]) -> str:
    return "".join(
        f"user {user} {' '.join(_state(digests.get(user, '')))} {rules}\n"
        for user, rules in OWN_USERS.items()
    )


def users_file(patterns: Patterns, digests: Mapping[str, str] | None = None) -> str:
    """A whole `aclfile`. The default user is in it, and off: a file without it would leave it all rights."""
    known = digests or {}
    return own_lines(known) + "".join(
        acl_line(role, patterns, known.get(user_of(role), "")) for role in ROLES
    )


def _state(digest: str) -> Iterable[str]:
    return ("on", f"#{digest}") if digest else ("off", "resetpass")


def committed(patterns: Patterns) -> dict[str, str]:
    """Path below `deploy/redis` → text."""
    return {"users.acl": users_file(patterns)} | {
        f"acl/{role}.acl": acl_line(role, patterns) for role in ROLES
    }


if __name__ == "__main__":
    for name, text in committed(Patterns()).items():
        file = Path(sys.argv[1]) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
