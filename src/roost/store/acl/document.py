"""docs/acl.md, made from what every role uses."""

from __future__ import annotations

from collections.abc import Iterator

from roost.store.acl.patterns import Patterns
from roost.store.acl.proof import HARMFUL, access, all_keys
from roost.store.acl.roles import ROLES, rights_of, user_of

_HEAD = """\
# Users of the store

Each role has a user of its own (`roost-gateway`, `roost-gate`, …), which may do what the role does and
nothing else. The rights are made from the headers of the scripts (keys), their sources (commands) and the
plain commands that a role sends: `src/roost/store/acl/`. This page is made from the same by
`python -m roost.store.acl.document > docs/acl.md`; `tests/acceptance/test_acl_roles.py` asks a server every
cell of it. `tests/acceptance/test_acl_suites.py` runs acceptance suites of every role that is a process, with
the processes under their users; `tests/stories` does so with whole evenings, `tests/acceptance/test_acl.py`
with a client of the store (`sdk`). After each test the `ACL LOG` of the store is empty.
[deploy/redis](../deploy/redis/README.md) has the files and says how to use them; `roost doctor` compares
the user it runs under.

`gameserver` and `sdk` are for programs that go straight to the store (`roost gameserver --url redis://…`,
`roost.connect("redis://…")`); with a gateway between they need no user. `doctor` is for `roost doctor`
alone. NB: rights are for kinds of keys, not for single servers: an entity server can write the binding of
any user, a game server the ledger row of any other. Who must be held to its own goes through a gateway,
with a bound token.

## Which keys

`RW`: reads and writes; `R`: reads; a dot: refused (`NOPERM`). A script that writes is refused unless its
user may write all of its keys, also those that it only reads; scripts that write nothing are sent as
`EVALSHA_RO`.
"""

_REFUSED = """\
## What nobody may

Every user above is refused keys and channels that are not Roost's, and each of
"""


def document() -> str:
    """The text of docs/acl.md."""
    patterns = Patterns()
    parts = [_HEAD, *_table(patterns), "", _REFUSED, *(f"- `{' '.join(command)}`" for command in HARMFUL)]
    parts += ["", "## Which commands", "", *_commands(patterns)]
    return "\n".join(parts) + "\n"


def _table(patterns: Patterns) -> Iterator[str]:
    rights = {role: rights_of(role, patterns) for role in ROLES}
    yield f"| | Key | {' | '.join(ROLES)} |"
    yield f"|---|---|{'---|' * len(ROLES)}"
    for group, pattern in all_keys(patterns):
        cells = (access(rights[role], pattern) or "·" for role in ROLES)
        yield f"| {group} | `{pattern}` | {' | '.join(cells)} |"


def _commands(patterns: Patterns) -> Iterator[str]:
    """The common ones once, then what each role has beside them."""
    rights = {role: rights_of(role, patterns).commands for role in ROLES}
    common = frozenset.intersection(*rights.values())
    yield f"- every user: {_listed(common)}"
    for role, commands in rights.items():
        if commands - common:
            yield f"- `{user_of(role)}` too: {_listed(commands - common)}"


def _listed(commands: frozenset[str]) -> str:
    return ", ".join(command.replace("|", " ") for command in sorted(commands))


if __name__ == "__main__":
    print(document(), end="")
