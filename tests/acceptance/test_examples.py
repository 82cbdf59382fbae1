"""Every example runs by the one command that its README names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roost.testing import free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(example: str) -> subprocess.CompletedProcess[str]:
    """On ports that are free, without settings from outside."""
    ports = {f"EXAMPLE_{name}_PORT": str(free_port()) for name in ("GATEWAY", "GATE", "FIRST", "SECOND")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    return subprocess.run(
        [sys.executable, "run.py"],
        cwd=EXAMPLES / example,
        env=kept | ports,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.slow
def test_a_counter_for_each_user_survives_kill_9() -> None:
    done = run("counter")

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


@pytest.mark.slow
def test_a_hot_update_with_another_schema_goes_unnoticed() -> None:
    done = run("hot_update")

    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    told = [
        "ann sees version 1.0, a purse of gold",
        "$ roost entity_hotfix 501",
        "ann sees version 2.0, a purse of gold and silver",
        "server 501 ended with 0",
    ]
    assert [line for line in said if line in told] == told
    assert re.fullmatch(r"ann has \d+ gold and was connected 1 time", said[-1])
    assert "0 lost" in done.stdout, "the certificate is printed"


@pytest.mark.slow
def test_a_market_goes_on_after_kill_9_of_its_order_server() -> None:
    done = run("exchange")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ann bids for 10 at 100: open",
        "cyd cancels her bid: cancelled",
        "bob sells 4 at 100: filled",
        "ann bought 4 at 100, 6 are left",
        "order server 901 is killed, 902 starts",
        "bob sells 6 at 100: filled",
        "ann's order is filled, 0 are left",
    ]


def test_work_by_key_is_done_in_order() -> None:
    done = run("keyed_work")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ann has 5000",
        "refused: bob has only 5050",
        "in the end {'ann': 5000, 'bob': 5050, 'eve': 5050}",
    ]


def test_every_example_has_a_readme() -> None:
    folders = [folder for folder in EXAMPLES.iterdir() if folder.is_dir()]
    assert folders
    assert all((folder / "README.md").exists() for folder in folders)
