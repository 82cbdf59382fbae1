"""Nouns are found by their file, loaded when they are called, and start fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost.cli import nouns
from roost.cli.app import app, noun_modules

NAMES = sorted(noun_modules())
HEAVY = ("aiohttp", "numpy", "msgspec", "rich", "roost.settings", "uvloop")


@pytest.mark.parametrize("name", NAMES)
def test_every_noun_has_help(name: str) -> None:
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert f"roost {name}" in done.output


def test_the_help_lists_every_noun() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output.split()
    assert set(NAMES) <= set(shown)


def test_a_new_noun_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import typer\napp = typer.Typer()\n@app.command()\ndef nest() -> None:\n    print('twigs')\n"
    tmp_path.joinpath("nest.py").write_text(text)
    monkeypatch.setattr(nouns, "__path__", [*nouns.__path__, str(tmp_path)])
    assert CliRunner().invoke(app, ["nest"]).output == "twigs\n"


def test_a_typing_error_names_what_was_meant() -> None:
    done = CliRunner().invoke(app, ["instnaces"])
    assert done.exit_code == 2
    assert "instances" in done.output


def modules_loaded_by(*arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_short_command_does_not_load_what_it_does_not_use() -> None:
    loaded = modules_loaded_by("-m", "roost", "version")
    assert "roost.cli.context" in loaded
    assert loaded & set(HEAVY) == set()


def test_only_an_entity_server_loads_the_databases() -> None:
    loaded = modules_loaded_by("-c", "import roost.roles")
    assert "roost.app" in loaded
    assert "sqlalchemy" not in loaded
