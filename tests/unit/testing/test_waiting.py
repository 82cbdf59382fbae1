"""Waiting for a condition."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys

import pytest

from roost.testing import eventually, wait_until


async def test_it_returns_as_soon_as_the_condition_holds() -> None:
    looks = itertools.count()
    await eventually(lambda: next(looks) == 3)
    assert next(looks) == 4


async def test_a_condition_may_be_awaited() -> None:
    looks = itertools.count()

    async def holds() -> bool:
        await asyncio.sleep(0)
        return next(looks) == 3

    await eventually(holds, "three looks")


async def test_in_vain_it_says_what_was_waited_for() -> None:
    with pytest.raises(AssertionError, match=r"^waited 0\.01 s for the end\. it is day 7$"):
        await eventually(lambda: False, "the end", 0.01, lambda: "it is day 7")
    with pytest.raises(AssertionError, match=r"^waited 0\.01 s for the end\.$"):
        wait_until(lambda: False, "the end", timeout_s=0.01)


def test_nothing_in_roost_testing_needs_pytest() -> None:
    program = "import sys; sys.modules['pytest'] = None; import roost.testing; print(*roost.testing.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "eventually" in done.stdout
