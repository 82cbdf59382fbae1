"""Which parts a role has, and so its user's rights."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.acl import uses
from roost.store.acl.patterns import Patterns
from roost.store.acl.rights import Rights, plain_rights, union
from roost.store.acl.uses import Use
from roost.store.keys import FORMAT

CONNECTING = frozenset(
    {"ping", "select", "client|setname", "info", "time", "role", "asking", "cluster|slots", "cluster|info"}
    | {"eval", "evalsha", "eval_ro", "evalsha_ro"}
)
"""What every process asks: to connect, to find its node, to run a script."""

GAMESERVER = (uses.MEMBER, uses.DOOR)
ROLES: Mapping[str, tuple[Use, ...]] = {
    "gateway": (
        *(uses.MEMBER, uses.CHECKER, uses.OVERRIDE, uses.SWEEP),
        *(uses.DESK, uses.GOVERN, uses.DOOR),
        *(uses.HOMES, uses.RESOLVE, uses.RELEASE, uses.DRAIN_DESK),
        *(uses.SHARDS, uses.PLACEMENT, uses.TOKENS_DESK, uses.ALERTS, uses.AUDIT),
        *uses.LEADERS,
    ),
    "manager": (
        *(uses.LOOKER, uses.CHECKER, uses.OVERRIDE, uses.WORLD_LEADER),
        *(uses.HOMES, uses.PARTITION_LEADER, uses.DRAIN_LEADER),
        *(uses.SHARDS, uses.PLACEMENT_LOOK, uses.TOKENS_CHECK, uses.ALERTS),
    ),
    "gate": (*GAMESERVER, uses.RESOLVE, uses.WITNESS),
    "entity": (uses.MEMBER, uses.HOLD),
    "gameserver": GAMESERVER,
    "orders": (uses.MEMBER, uses.OWNER, uses.PLACEMENT),
    "dns": (uses.LOOKER,),
    "forward": (uses.FORWARD, *uses.FEEDS),
    "sdk": (*GAMESERVER, uses.SWEEP, uses.SPARE_SWEEP, uses.HOME),
    "doctor": (),
}
"""`gameserver` and `sdk` are for those who go straight to the store; behind a gateway they need no user."""


def user_of(role: str) -> str:
    return f"roost-{role}"


def role_of(user: str) -> str:
    """The role that a user is made for; empty for a user of another name."""
    role = user.removeprefix("roost-")
    return role if role in ROLES and user_of(role) == user else ""


def rights_of(role: str, patterns: Patterns) -> Rights:
    """All that the user of a role may do."""
    found = plain_rights("GET", patterns.plain(FORMAT))
    if ROLES[role]:  # a role that only looks does not mark an empty store
        found |= plain_rights("SET", patterns.plain(FORMAT))
    return Rights(commands=CONNECTING) | found | union(use.rights(patterns) for use in ROLES[role])
