"""The acceptance suites of the roles, each role under its user: they hold, and the store refuses nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from roost.store.acl.roles import ROLES, user_of
from tests.acceptance.role_users import SWITCH

HERE = Path(__file__).parent
BOTH = ("gateway", "manager")
"""What `up` of a test is made of."""


@dataclass(frozen=True)
class Suite:
    """A file of tests, and what of it must be seen."""

    file: str
    roles: tuple[str, ...]
    """Whose users the stores of the tests must have seen."""
    skipped: int = 0
    """At most: tests of the embedded store and of drills, and those whose Debian package is missing."""
    marks: str = "not slow"


SUITES = (
    Suite("audit_http", BOTH),
    Suite("bindings_http", BOTH),
    Suite("discovery_http", BOTH, skipped=1),
    Suite("dns", ("dns",), skipped=1),
    Suite("drain_cli", BOTH, marks="slow"),
    Suite("drain_http", (*BOTH, "entity")),
    Suite("entity", (*BOTH, "entity")),
    Suite("events_http", BOTH),
    Suite("forward", ("forward",), skipped=1),
    Suite("gameserver", (*BOTH, "gameserver")),
    Suite("gate_processes", (*BOTH, "entity", "gate")),
    Suite("gateway_failover", ("gateway",)),
    Suite("orders_cli", (*BOTH, "orders"), skipped=2, marks="slow"),
    Suite("orders_http", (*BOTH, "orders"), marks="slow"),
    Suite("queue_cli", BOTH),
    Suite("queue_http", BOTH),
    Suite("queue_passes_http", BOTH),
    Suite("session_http", ("gateway",)),
    Suite("trader", ("orders",)),
)
IN_PROCESS = {"sdk", "doctor"}
"""Never processes that a test waits for: `test_acl.py` and `test_acl_roles.py` run them under their users."""


def counted(said: str, what: str) -> int:
    """From the last line of pytest: `57 passed, 1 skipped in 14.32s`."""
    found = re.search(rf"(\d+) {what}\b", said.rstrip().rpartition("\n")[2])
    return int(found[1]) if found else 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.file)
def test_a_suite_holds_with_each_role_under_its_user(suite: Suite, tmp_path: Path) -> None:
    """Red where a test fails, where a store has noted a refusal after one, and where a user was not seen."""
    seen = tmp_path / "seen"
    seen.touch()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", suite.marks]
    done = subprocess.run(
        [*command, str(HERE / f"test_{suite.file}.py")],
        cwd=HERE.parents[1],
        env=os.environ | {SWITCH: str(seen)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-1000:]}"
    assert counted(done.stdout, "passed") > suite.skipped, done.stdout
    assert counted(done.stdout, "skipped") <= suite.skipped, done.stdout
    assert set(map(user_of, suite.roles)) <= set(seen.read_text().split())


def test_every_role_that_is_a_process_has_a_suite() -> None:
    assert {role for suite in SUITES for role in suite.roles} == set(ROLES) - IN_PROCESS
