"""Every link from one of our documents to another, or to a heading, leads there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "deploy/**/*.md",
        "examples/*/*.md",
        "clients/*/*.md",
        "benchmarks/*.md",
    )
    for path in ROOT.glob(pattern)
)
NAMING = [
    ROOT / "compose.yaml",
    *(
        path
        for pattern in ("*.yaml", "*.yml", "*.conf", "*.service")
        for path in (ROOT / "deploy").rglob(pattern)
    ),
]
"""Files whose comments name a document."""
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^[a-z]+:")


@cache
def anchors_of(path: Path) -> frozenset[str]:
    """As GitHub makes them of headings; the second of a name gets -1."""
    found: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        again = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one) is not None for one in found)
        found.append(f"{slug}-{again}" if again else slug)
    return frozenset(found)


def faults_of(path: Path, text: str) -> Iterator[str]:
    """Links of a document that lead nowhere."""
    for target in LINK.findall(CODE.sub("", FENCE.sub("", text))):
        if not ELSEWHERE.match(target):
            name, _, anchor = target.partition("#")
            yield from _fault(path.parent / name if name else path, anchor, target)


def _fault(there: Path, anchor: str, target: str) -> Iterator[str]:
    if not there.exists():
        yield f"{target}: no such file"
    elif anchor and there.suffix == ".md" and anchor not in anchors_of(there):
        yield f"{target}: no such heading"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_somewhere(path: Path) -> None:
    assert list(faults_of(path, path.read_text(encoding="utf-8"))) == []


def test_documents_that_other_files_name_exist() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in NAMING
        for name, anchor in NAMED.findall(path.read_text(encoding="utf-8"))
        for fault in _fault(ROOT / name, anchor, f"{name}#{anchor}")
    ]
    assert found == []


def test_a_link_to_nowhere_would_be_found() -> None:
    bad = "[a](docs/no.md) [b](docs/operations.md#an-acl-user) [c](#no)"
    text = f"{bad} [d](docs/operations.md#alerts) `[e](no.md)`"
    assert list(faults_of(ROOT / "README.md", text)) == [
        "docs/no.md: no such file",
        "docs/operations.md#an-acl-user: no such heading",
        "#no: no such heading",
    ]
