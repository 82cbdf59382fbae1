"""Every key is declared under store/keys, and docs/keys.md says so."""

from __future__ import annotations

import ast
import itertools
import re

from roost.store import scopes
from roost.store.keys import KeyGroup, Keys, PlainKey
from roost.store.keys.glossary import declared, glossary, rows
from tests.architecture.source import PACKAGE, ROOT, Module, modules, parse_module

BIRTHPLACE = "roost.store.keys"

STEMS = sorted({pattern.partition("{")[0].partition("<")[0].rstrip(":") for pattern, *_ in rows()})
"""What keys begin with, up to their tag: `roost:leader`, `roost:feed`, …"""

_BEGINNINGS = "|".join(re.escape(stem) + (r"(:\S*)?" if ":" in stem else r":\S+") for stem in STEMS)
LOOKS_LIKE_A_KEY = re.compile(rf"{_BEGINNINGS}|\S*[a-z]:\{{[^}}]*(\}}\S*)?")
"""A literal that begins like a key, or that has the brace of a tag after a colon."""


def faults_in(module: Module) -> list[str]:
    """One line for each key that the module makes by itself."""
    faults = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _name_of(node.func) == "Key":
            faults.append(f"{module.at(node.lineno)} calls Key(…)")
        elif isinstance(node, ast.Constant) and _looks_like_a_key(node.value):
            faults.append(f"{module.at(node.lineno)} holds the key {node.value!r}")
    return faults


def test_keys_are_made_in_the_key_module_only() -> None:
    others = [
        module
        for name, module in modules().items()
        if name != BIRTHPLACE and not name.startswith(f"{BIRTHPLACE}.")
    ]
    assert [fault for module in others for fault in faults_in(module)] == []


def test_a_key_made_elsewhere_would_be_found() -> None:
    for text in (
        "key = Key(b'x')",
        "key = keys.Key(b'x')",
        "key = f'roost:feed:{{{scope}}}'",
        "key = b'roost:format'",
        "key = 'roost:leader:' + scope",
        "key = b'roost:leader:{main}'",
        "key = f'queue:waiting:{{{world}}}'",
    ):
        assert faults_in(_module(text)), text


def test_ordinary_text_is_not_taken_for_a_key() -> None:
    for text in ('"""A feed of roost: every change."""', "log.info('link: %s', x)", "x = 'roost.store.link'"):
        assert faults_in(_module(text)) == [], text


def test_the_glossary_has_a_row_for_every_key_and_no_other() -> None:
    keys, scope = Keys(), scopes.Scope("world", "x")
    born = {
        *(keys.plain(found) for found in declared() if isinstance(found, PlainKey)),
        *(keys.leader(scope), keys.feed(scope), keys.bell(scope)),
    }
    for found in declared():
        if isinstance(found, KeyGroup) and found.name != "scope":
            born |= set(keys.of(found, scope).values())
    shown = {
        re.sub(r"\{\w+\}", "{x}", pattern).replace("<kind>", "world").partition("<")[0].encode()
        for pattern, *_ in rows()
    }
    assert born == shown


def test_keys_of_different_kinds_of_scope_never_meet_whatever_their_names() -> None:
    keys = Keys()
    made = [
        [keys.leader(scope, job), keys.feed(scope), keys.bell(scope), *_own_keys(keys, scope)]
        for scope in (scopes.discovery(), *map(scopes.world, ("sd", "failover", "discovery", "world")))
        for job in ("", "failover")
    ]
    of_scopes = [
        set(itertools.chain(first, second)) for first, second in zip(made[::2], made[1::2], strict=True)
    ]
    for one, other in itertools.combinations(of_scopes, 2):
        assert not one & other


def _own_keys(keys: Keys, scope: scopes.Scope) -> list[bytes]:
    capability = {"discovery": "discovery", "world": "waitingroom"}[scope.kind]
    group = next(found for found in declared() if found.name == capability)
    assert isinstance(group, KeyGroup)
    return [key for name, key in keys.of(group, scope).items() if name not in ("leader", "feed", "bell")]


def test_a_lifetime_in_a_script_is_the_one_that_its_key_declares() -> None:
    """`EXPIRE` stands in Lua as a number; the declaration is what operators read."""
    declared_ttls = {
        family.name: family.ttl_s
        for found in declared()
        if isinstance(found, KeyGroup)
        for family in found.families
    }
    found = [
        (file.name, *match)
        for file in sorted(PACKAGE.rglob("*.lua"))
        for match in re.findall(r"'EXPIRE', (?:keys\.)?(\w+)[^,]*, (\d+)\)", file.read_text(encoding="utf-8"))
    ]
    wrong = [
        (file, name, ttl)
        for file, name, ttl in found
        if declared_ttls.get({"person": "people", "party": "parties"}.get(name, name)) != int(ttl)
    ]
    assert found
    assert wrong == []


def test_the_key_document_is_fresh() -> None:
    document = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    assert document == glossary(), "run: python -m roost.store.keys.glossary > docs/keys.md"


def _module(text: str) -> Module:
    return parse_module("roost.x", ROOT / "x.py", text, "roost")


def _looks_like_a_key(value: object) -> bool:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return isinstance(value, str) and "\n" not in value and LOOKS_LIKE_A_KEY.fullmatch(value) is not None


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
