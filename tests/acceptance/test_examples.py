"""Every example runs by the one command that its README names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roost.testing import free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.slow
def test_a_counter_for_each_user_survives_kill_9() -> None:
    ports = {f"EXAMPLE_{name}_PORT": str(free_port()) for name in ("GATEWAY", "GATE", "FIRST", "SECOND")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}

    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=EXAMPLES / "counter",
        env=kept | ports,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ann counts 1",
        "ann counts 2",
        "ann counts 3",
        "server 501 is killed, 502 starts",
        "ann counts 4",
        "ann counts 5",
        "ann counts 6",
    ]


def test_every_example_has_a_readme() -> None:
    folders = [folder for folder in EXAMPLES.iterdir() if folder.is_dir()]
    assert folders
    assert all((folder / "README.md").exists() for folder in folders)
