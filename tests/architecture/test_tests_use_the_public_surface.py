"""No test reaches into what belongs to another class: that would hold the form, not the promises."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

OWN = frozenset({"self", "cls"})
"""A class of the tests may keep secrets of its own."""

PUBLIC_IN_SPITE_OF_ITS_NAME = frozenset({"_replace", "_asdict", "_fields", "_make", "_exit"})
"""Documented methods of named tuples, which are spelt so that they cannot meet a field."""

SETTERS = frozenset({"setattr", "getattr", "delattr", "hasattr", "patch"})
"""Functions that take the name of an attribute as text, those of monkeypatch among them."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_IN_SPITE_OF_ITS_NAME


def private_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what is used) of each access to a private name from outside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in OWN):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if is_private(alias.name):
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call) and _called(node) in SETTERS:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if any(isinstance(text, str) and is_private(text.rpartition(".")[2]) for text in texts):
                yield node.lineno, ast.unparse(node)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_no_test_uses_a_private_name_of_another_class_or_module() -> None:
    found = [
        f"{path.relative_to(TESTS.parent)}:{line}: {what}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, what in private_uses(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_such_a_use_would_be_found() -> None:
    text = """
from roost.store.scripts import _text
door._tell()
super()._points()
room.board._fresh_s = 0
monkeypatch.setattr(board, "_fresh_s", 0.0)
monkeypatch.setattr("roost.app._name", None)
self._mine = entry._replace(a=1)
thing.__class__
"""
    assert sorted(line for line, _ in private_uses(ast.parse(text))) == [2, 3, 4, 5, 6, 7]
