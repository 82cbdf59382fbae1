"""Every key is made by store/keys.py, and docs/keys.md says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import get_args

from roost.core.ids import Scope
from roost.store.keys import CATALOGUE, Key, Keys, QueuePart, SdPart, glossary
from tests.architecture.source import ROOT, Module, modules, parse_module

BIRTHPLACE = "roost.store.keys"

STEMS = sorted({family.pattern.partition("{")[0].rstrip(":") for family in CATALOGUE})
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
    others = [module for name, module in modules().items() if name != BIRTHPLACE]
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


MAKERS: dict[str, Callable[[Keys], list[Key]]] = {
    "format": lambda keys: [keys.format()],
    "tokens": lambda keys: [keys.tokens()],
    "leader": lambda keys: [keys.leader(Scope("scope"))],
    "feed": lambda keys: [keys.feed(Scope("scope"))],
    "bell": lambda keys: [keys.bell(Scope("scope"))],
    "sd": lambda keys: [keys.sd(part) for part in get_args(SdPart)],
    "queue": lambda keys: [keys.queue(Scope("world"), part) for part in get_args(QueuePart)],
    "server_status": lambda keys: [keys.server_status()],
}
"""Every method of `Keys`, and all keys that it can make in the scope that the glossary names."""


def test_the_glossary_has_a_row_for_every_key_and_no_other() -> None:
    assert {name for name in vars(Keys) if not name.startswith("_")} == MAKERS.keys()
    born = [key.decode() for make in MAKERS.values() for key in make(Keys())]
    assert sorted(born) == sorted(family.pattern.partition("<")[0] for family in CATALOGUE)


def test_the_key_document_is_fresh() -> None:
    document = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    assert document == glossary(), "run: python -m roost.store.keys > docs/keys.md"


def _module(text: str) -> Module:
    return parse_module("roost.x", ROOT / "x.py", text, "roost")


def _looks_like_a_key(value: object) -> bool:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return isinstance(value, str) and "\n" not in value and LOOKS_LIKE_A_KEY.fullmatch(value) is not None


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
