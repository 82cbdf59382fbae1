"""Every known fault, put back into a copy of the source, turns the tests red that guard against it.

A mutant is `<name>.patch`; its first line names those tests: `# tests: tests/unit/core/test_events.py`. Of
several such lines each turns red by itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted(Path(__file__).parent.glob("*.patch"))
PASSED, FAILED = 0, 1
ORDER_MACHINE = "tests/store/lanes/test_order_machine.py::test_orders_under_drawn_faults"
DRAWS = 5
"""Times that the order machine draws its faults anew before a mutant counts as missed."""
NAIVE = {
    "a_range_check_that_cannot_fire_makes_foreign_ids_ours": "F1",
    "a_cancel_by_id_goes_by_the_bits_of_the_id": "F2",
    "a_command_that_no_queue_takes_is_answered_by_nobody": "F3",
    "half_of_all_symbols_have_a_negative_shard": "F4",
    "an_order_is_answered_before_it_is_in_the_log": "F5",
    "symbols_are_placed_by_a_ring_of_few_points": "F6",
    "symbols_that_differ_in_the_last_byte_stay_together": "F7",
    "the_lane_is_taken_from_the_bits_of_the_shard": "F8",
}
"""The faults of a naive order server: the order machine finds each."""

pytestmark = pytest.mark.slow


def guards_of(patch: Path) -> list[str]:
    found: list[str] = []
    for line in patch.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# tests: "):
            break
        found.append(line.removeprefix("# tests: "))
    assert found, f"{patch.name} must begin with `# tests: <pytest arguments>`"
    return found


GUARDED = [(patch, guard) for patch in PATCHES for guard in guards_of(patch)]


def all_guards() -> list[str]:
    """The guards of all patches in few runs: for each folder of tests its whole files, then its parts."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for _, guard in GUARDED:
        files, _, keyword = guard.partition(" -k ")
        for file in files.split():
            wanted[file].add(" ".join(shlex.split(keyword)))
    runs: defaultdict[tuple[bool, str], list[str]] = defaultdict(list)
    for file in sorted(wanted):
        runs["" not in wanted[file], "/".join(file.split("/")[:2])].append(file)
    return [
        f"{' '.join(group)} -k '{' or '.join(sorted({f'({k})' for one in group for k in wanted[one]}))}'"
        if is_part
        else " ".join(group)
        for (is_part, _), group in sorted(runs.items())
    ]


def copy_to(folder: Path) -> Path:
    """The source, apart from the original; what is compiled of it stays valid."""
    shutil.copytree(ROOT / "src", folder / "src")
    return folder


def run_tests(folder: Path, arguments: str) -> tuple[int, str]:
    """(exit status of pytest, the end of what it said), with the source of the copy and notes of its own."""
    own = {"PYTHONPATH": str(folder / "src"), "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "examples")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False
    )
    return done.returncode, f"{done.stdout[-3000:]}{done.stderr[-1000:]}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("arguments", all_guards())
def test_the_named_tests_pass_on_the_source_as_it_is(arguments: str, tmp_path: Path) -> None:
    status, said = run_tests(copy_to(tmp_path), arguments)
    assert status == PASSED, said


@pytest.mark.parametrize(("patch", "guard"), GUARDED, ids=[patch.stem for patch, _ in GUARDED])
def test_a_mutant_is_found(patch: Path, guard: str, tmp_path: Path) -> None:
    folder = copy_to(tmp_path)
    applied = subprocess.run(
        ["patch", "-p1", "--fuzz=0", "-i", str(patch)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert applied.returncode == 0, f"{patch.name} no longer fits: make it anew.\n{applied.stdout}"

    status, said = run_tests(folder, guard)
    for _ in range(DRAWS - 1 if guard == ORDER_MACHINE else 0):
        if status == PASSED:
            status, said = run_tests(folder, guard)

    assert status == FAILED, f"{guard} did not notice {patch.name}:\n{said}"


def test_there_are_mutants() -> None:
    assert PATCHES


def test_each_fault_of_a_naive_order_server_turns_the_order_machine_red() -> None:
    named = {patch.stem for patch, guard in GUARDED if guard == ORDER_MACHINE}
    assert NAIVE.keys() <= named
    assert sorted(NAIVE.values()) == [f"F{number}" for number in range(1, 9)]


def test_the_table_of_safeties_names_patches_that_are_there() -> None:
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    table = text.partition("## What each safety of the move is for")[2].partition("\n## ")[0]
    named = {word for word in re.findall(r"`([a-z_]+)`", table) if word.count("_") > 2}
    assert len(named) > 20
    assert named <= {patch.stem for patch in PATCHES}
