"""The rights of the roles are complete: every script and every plain command of the source is in a use."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

from roost.store.acl import uses
from roost.store.acl.patterns import Patterns
from roost.store.acl.rights import commands_of, contract_of
from roost.store.acl.roles import CONNECTING, ROLES, rights_of
from roost.store.acl.uses import Use
from tests.architecture.source import PACKAGE, Module, modules

STORES_OWN = {"leader_campaign", "leader_resign", "permitted"}
"""The store's scripts: those of whoever leads, and that of the doctor, which touches no key."""
ELSEWHERE = ("demo", "testing", "drills")
"""Those run on a store of their own, as its administrator."""
ASKED_BY_ALL = {command.upper() for command in CONNECTING}
DONE_WITHOUT = {"CONFIG"}
"""An order server asks whether it may CONFIG GET, and does without."""

SCRIPTS = sorted(
    (file.parent.parent.name, file.stem)
    for file in PACKAGE.rglob("*.lua")
    if file.read_text(encoding="utf-8").startswith("#!lua")
)


def declared() -> list[Use]:
    found = [value for value in vars(uses).values() if isinstance(value, Use)]
    return [*found, *uses.LEADERS, *uses.FEEDS]


def test_every_script_is_in_the_rights_of_a_role() -> None:
    used = {(use.folder, name) for parts in ROLES.values() for use in parts for name in use.scripts}
    assert set(SCRIPTS) == used | {("store", name) for name in STORES_OWN}


def test_every_use_is_that_of_a_role() -> None:
    assert [use for use in declared() if not any(use in parts for parts in ROLES.values())] == []


@pytest.mark.parametrize(("capability", "name"), SCRIPTS)
def test_every_command_of_a_script_can_be_read_from_it(capability: str, name: str) -> None:
    assert commands_of(contract_of(capability, name)) or name == "permitted"


def test_every_plain_command_is_in_a_use_of_its_capability() -> None:
    named: defaultdict[str, set[str]] = defaultdict(set)
    for use in declared():
        named[use.folder] |= {words.partition(" ")[0] for words in use.plain}
        named[use.folder] |= {verb for verb, _, _ in use.outside}
    missing = {
        f"{module.at(line)} {command}"
        for module in modules().values()
        if module.group not in (*ELSEWHERE, "store")
        for line, command in plain_commands(module)
        if command not in named[_folder(module)] | ASKED_BY_ALL | DONE_WITHOUT
    }
    assert missing == set()


def _folder(module: Module) -> str:
    """What a client on the store asks while nobody sweeps is about discovery."""
    return "discovery" if module.group == "sdk" else module.group


def plain_commands(module: Module) -> list[tuple[int, str]]:
    """The first word of every `….call(…)` that is a literal in capitals, alone or in a tuple."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "call":
            for word in ast.walk(node.args[0]) if node.args else ():
                if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.isupper():
                    found.append((node.lineno, word.value))
                    break
    return found


def test_the_commands_of_the_source_are_found() -> None:
    found = {command for module in modules().values() for _, command in plain_commands(module)}
    assert {"HMGET", "XRANGE", "HGETALL", "XTRIM", "INFO"} <= found


def test_no_right_is_a_category_or_everything() -> None:
    for role in ROLES:
        rules = rights_of(role, Patterns()).rules()
        assert rules[:3] == ["resetkeys", "resetchannels", "-@all"]
        assert [rule for rule in rules[3:] if "@" in rule or rule in ("~*", "&*", "%R~*")] == []
        assert rights_of(role, Patterns()).commands >= CONNECTING
