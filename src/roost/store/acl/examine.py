"""Whose rights the user has under which this process talks to the store; nothing is tried to find out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.errors import StoreRefused
from roost.store.acl.patterns import Patterns
from roost.store.acl.proof import HARMFUL, Command, denied, needed
from roost.store.acl.roles import ROLES, rights_of, role_of
from roost.store.inspect import Finding
from roost.store.scripts import Script
from roost.store.store import Store

WHAT = "store user"
SHOWN = 4
_RULES = "`roost acl --role {role} --commands` prints its rules"


@dataclass(frozen=True, slots=True)
class Refused:
    places: list[int]


async def refused(store: Store, commands: Sequence[Command]) -> list[Command]:
    """Those that the user may not give."""
    script: Script[Refused] = store.library.script("store", "permitted", Refused)
    answer = await script(commands=json.dumps(commands))
    return [commands[place - 1] for place in answer.places]


async def examine_user(store: Store, patterns: Patterns, *, role: str = "", is_dev: bool = False) -> Finding:
    """`role`: whose rights are expected; by default that of the user's name."""
    user = store.topology.access.credentials.username or "default"
    expected = role or role_of(user)
    try:
        if expected:
            return await _as_role(store, patterns, user, expected)
        return await _as_any(store, patterns, user, is_dev=is_dev)
    except StoreRefused as error:
        advice = "let it use EVAL_RO and EVALSHA_RO; `roost acl` prints the rules of every role"
        return Finding(WHAT, "warn", f"{user}: its rights cannot be asked for ({error.message})", advice)


async def _as_role(store: Store, patterns: Patterns, user: str, role: str) -> Finding:
    rights, rules = rights_of(role, patterns), _RULES.format(role=role)
    if missing := await refused(store, needed(rights)):
        return Finding(WHAT, "fail", f"{user} lacks what a {role} needs: {_shown(missing)}", rules)
    beyond = denied(rights, patterns)
    if too_much := [one for one in beyond if one not in await refused(store, beyond)]:
        return Finding(WHAT, "warn", f"{user} may do more than a {role} needs: {_shown(too_much)}", rules)
    return Finding(WHAT, "ok", f"{user}: what a {role} needs, and no more")


async def _as_any(store: Store, patterns: Patterns, user: str, *, is_dev: bool) -> Finding:
    """A user of another name: what it may do, and which roles that is enough for."""
    if len(await refused(store, HARMFUL)) < len(HARMFUL):
        if is_dev:
            return Finding(WHAT, "ok", f"{user}, with the rights of an administrator (profile dev)")
        advice = "give each role a user of its own: `roost acl` prints them, docs/acl.md says how"
        return Finding(WHAT, "warn", f"{user} has the rights of an administrator", advice)
    enough = [role for role in ROLES if not await refused(store, needed(rights_of(role, patterns)))]
    if not enough:
        advice = "name the role: `roost doctor --role …` says what is missing"
        return Finding(WHAT, "warn", f"{user}: not enough for any role", advice)
    return Finding(WHAT, "ok", f"{user}: enough for {', '.join(enough)}")


def _shown(commands: Sequence[Command]) -> str:
    words = [_words(command) for command in commands]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _words(command: Command) -> str:
    """As a person would say it: a script's keys are what is read or written."""
    match command:
        case ("EVALSHA", _, _, key):
            return f"write {key}"
        case ("EVALSHA_RO", _, _, key):
            return f"read {key}"
        case (name, _, "0", "0", "0"):
            return name
    return " ".join(command)
