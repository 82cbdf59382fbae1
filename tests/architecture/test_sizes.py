"""Sizes that good code in this field has: whatever grows beyond them is two things."""

from __future__ import annotations

import ast

from tests.architecture.source import PACKAGE, modules

MODULE_LINES = 400
CLASS_LINES = 250
FUNCTION_LINES = 60
LUA_LINES = 100


def test_no_module_is_longer_than_its_subject() -> None:
    sizes = {m.name: len(m.path.read_text(encoding="utf-8").splitlines()) for m in modules().values()}
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}


def test_no_class_does_two_jobs() -> None:
    assert _longer(ast.ClassDef, CLASS_LINES) == {}


def test_no_function_is_a_chapter() -> None:
    assert _longer((ast.FunctionDef, ast.AsyncFunctionDef), FUNCTION_LINES) == {}


def test_no_script_is_longer_than_a_screen_or_two() -> None:
    sizes = {
        str(file.relative_to(PACKAGE)): len(file.read_text(encoding="utf-8").splitlines())
        for file in PACKAGE.rglob("*.lua")
    }
    assert {name: size for name, size in sizes.items() if size > LUA_LINES} == {}


def _longer(kind: type[ast.AST] | tuple[type[ast.AST], ...], most: int) -> dict[str, int]:
    return {
        f"{module.name}.{node.name}": node.end_lineno - node.lineno + 1
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, kind)
        and isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > most
    }
