"""`make .env`: the secrets of compose.yaml, made once and readable by their owner alone."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout whose environment is installed; its programs are those of the tests."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    project, bin_ = tmp_path / "pyproject.toml", tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    project.touch()
    os.utime(project, (0, 0))
    for name, more in (("python", ""), ("roost", " -m roost")):
        _program(bin_ / name, f'exec {sys.executable}{more} "$@"')
    (tmp_path / ".venv" / ".run").touch()
    return tmp_path


def _program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def make_env(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", ".env"], cwd=folder, capture_output=True, text=True, check=False)


def settings_in(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())


def test_it_has_what_compose_asks_for_and_nobody_else_reads_it(folder: Path) -> None:
    old = os.umask(0)
    try:
        done = make_env(folder)
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    wanted = re.findall(r"\$\{(\w+):\?make \.env\}", (ROOT / "compose.yaml").read_text())
    found = settings_in(folder)
    assert found.keys() == set(wanted)
    assert all(len(value) >= 16 for value in found.values())
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600
    assert not any(value in done.stdout + done.stderr for value in found.values())


def test_an_existing_file_is_kept(folder: Path) -> None:
    (folder / ".env").write_text("ROOST_API_TOKEN=mine\n")
    assert make_env(folder).returncode == 0
    assert settings_in(folder) == {"ROOST_API_TOKEN": "mine"}


def test_where_secrets_cannot_be_made_nothing_is_left(folder: Path) -> None:
    """Half a file would be kept by the next call."""
    _program(folder / ".venv" / "bin" / "roost", "exit 1")
    assert make_env(folder).returncode != 0
    assert list(folder.glob(".env*")) == []
