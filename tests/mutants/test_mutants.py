"""Every known fault, put back into a copy of the source, turns the tests red that guard against it.

A mutant is `<name>.patch`; its first line names those tests: `# tests: tests/unit/core/test_events.py`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted(Path(__file__).parent.glob("*.patch"))
PASSED, FAILED = 0, 1

pytestmark = pytest.mark.slow


def guards_of(patch: Path) -> str:
    first = patch.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith("# tests: "), f"{patch.name} must begin with `# tests: <pytest arguments>`"
    return first.removeprefix("# tests: ")


def copy_to(folder: Path) -> Path:
    """What the tests need, apart from the original."""
    without = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run_tests(folder: Path, arguments: str) -> tuple[int, str]:
    """(exit status of pytest, the end of what it said), with the source of the copy."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, f"{done.stdout[-3000:]}{done.stderr[-1000:]}"


@pytest.mark.parametrize("arguments", sorted({guards_of(patch) for patch in PATCHES}))
def test_the_named_tests_pass_on_the_source_as_it_is(arguments: str, tmp_path: Path) -> None:
    status, said = run_tests(copy_to(tmp_path), arguments)
    assert status == PASSED, said


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_mutant_is_found(patch: Path, tmp_path: Path) -> None:
    folder = copy_to(tmp_path)
    applied = subprocess.run(
        ["patch", "-p1", "--fuzz=0", "-i", str(patch)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert applied.returncode == 0, f"{patch.name} no longer fits: make it anew.\n{applied.stdout}"

    status, said = run_tests(folder, guards_of(patch))

    assert status == FAILED, f"{guards_of(patch)} did not notice {patch.name}:\n{said}"


def test_there_are_mutants() -> None:
    assert PATCHES


def test_the_table_of_safeties_names_patches_that_are_there() -> None:
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    table = text.partition("## What each safety of the move is for")[2].partition("\n## ")[0]
    named = {word for word in re.findall(r"`([a-z_]+)`", table) if word.count("_") > 2}
    assert len(named) > 20
    assert named <= {patch.stem for patch in PATCHES}
