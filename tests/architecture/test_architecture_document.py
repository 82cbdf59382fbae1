"""The tree in ARCHITECTURE.md is the tree of src/roost, and its table of imports knows every part."""

from __future__ import annotations

import re

from tests.architecture.source import PACKAGE, ROOT
from tests.architecture.test_imports import CAPABILITIES, MAY_IMPORT

DOCUMENT = ROOT / "ARCHITECTURE.md"
LINE = re.compile(r"(?P<indent> +)(?P<name>[\w.]+(?:/|\.py))(?: +(?P<text>.*))?")
WORD = re.compile(r"[a-z_][a-z_0-9]*")
BETWEEN_NAMES = frozenset({"and", "the", "loops"})
NOT_PARTS = frozenset({"__init__.py", "__main__.py"})
KINDS = ("*.py", "*.js", "[a-z][a-z].json")
"""Modules of Python and of the console, and its languages."""


def tree() -> dict[str, str]:
    """Path below src/roost → what is said of it, for every folder and module at the start of a line."""
    block = re.search(r"```\nsrc/roost/\n(.+?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block, "ARCHITECTURE.md has no tree of src/roost"
    found: dict[str, str] = {}
    folder = path = ""
    for line in block[1].splitlines():
        if entry := LINE.fullmatch(line):
            nested = len(entry["indent"]) > 2
            folder = folder if nested else entry["name"]
            path = folder + entry["name"] if nested else entry["name"]
            found[path] = entry["text"] or ""
        else:
            found[path] += " " + line.strip()
    return found


def folders() -> set[str]:
    inside = [path for path in PACKAGE.rglob("*") if path.is_dir() and "__pycache__" not in path.parts]
    return {f"{path.relative_to(PACKAGE)}/" for path in inside if any(path.iterdir())}


def modules_in(folder: str) -> set[str]:
    found = (path for kind in KINDS for path in (PACKAGE / folder).glob(kind))
    return {path.stem for path in found if path.name not in NOT_PARTS}


def test_every_folder_and_module_of_the_top_is_in_the_tree_and_nothing_else() -> None:
    top = {path.name for path in PACKAGE.glob("*.py")} - NOT_PARTS
    assert tree().keys() == folders() | top


def test_every_module_is_named_at_its_folder() -> None:
    said = {path: set(WORD.findall(text)) for path, text in tree().items() if path.endswith("/")}
    missing = {path: modules_in(path) - words for path, words in said.items() if modules_in(path) - words}
    assert missing == {}


def test_every_name_after_the_colon_is_a_module() -> None:
    """`what it is for: module module (a remark) module`."""
    for path, text in tree().items():
        names = re.sub(r"\(.*?\)", "", text).partition(": ")[2]
        assert set(WORD.findall(names)) <= modules_in(path) | BETWEEN_NAMES, path


def test_every_part_is_in_the_table_of_imports() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text[text.index("| Part | May import") : text.index("Two parts are named there")]
    existing = {path.rstrip("/").removesuffix(".py") for path in tree() if path.count("/") < 2}
    parts = {name for name in existing if "/" not in name}
    assert {name for name in parts if f"`{name}`" not in table and f"`{name}.py`" not in table} == set()
    capabilities = next(line for line in table.splitlines() if "a capability" in line)
    assert {f"`{name}`" for name in CAPABILITIES & parts} <= set(re.findall(r"`\w+`", capabilities))
    assert parts <= MAY_IMPORT.keys()
