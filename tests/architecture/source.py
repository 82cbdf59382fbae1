"""The source tree as the architecture tests see it: modules and their imports, read without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "roost"


@dataclass(frozen=True)
class Import:
    """`target` is a dotted name: a module, or a name inside one."""

    target: str
    line: int
    lazy: bool
    """Inside a function: it happens on use, not on import."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def group(self) -> str:
        """The part of the tree it belongs to: `store` for roost.store.feed, `roost` for the package."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "roost"

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def modules() -> dict[str, Module]:
    return {module.name: module for module in map(read_module, sorted(PACKAGE.rglob("*.py")))}


def read_module(path: Path) -> Module:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    package = name if parts[-1] == "__init__" else name.rpartition(".")[0]
    return parse_module(name, path, path.read_text(encoding="utf-8"), package)


def parse_module(name: str, path: Path, text: str, package: str) -> Module:
    tree = ast.parse(text)
    return Module(name, path, tree, tuple(_imports(tree.body, package, lazy=False)))


def _imports(body: list[ast.stmt], package: str, lazy: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            yield from (Import(f"{base}.{alias.name}", node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, package, lazy)
        else:
            inner = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(_statements_inside(node), package, inner)


def _statements_inside(node: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.excepthandler | ast.match_case):
            found.extend(_statements_inside(child))
    return found


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def module_of(target: str) -> str | None:
    """The module of ours that an import loads, or None for somebody else's."""
    if target.split(".")[0] != "roost":
        return None
    while target not in modules():
        target = target.rpartition(".")[0]
    return target
