"""Where `roost up` may start its demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.roles import ROLES, may_have_demo
from roost.settings import Loaded


@pytest.mark.parametrize(
    ("name", "value", "may"),
    [
        ("queue.worlds", "main", True),
        ("queue.worlds", "main,demo", False),
        ("queue.worlds", "main,demonstration", True),
        ("binding.types", "entity,demo-entity", False),
    ],
)
def test_nothing_of_somebody_elses_is_taken_for_the_demo(
    tmp_path: Path, name: str, value: str, may: bool
) -> None:
    settings = Loaded.load({"profile": "dev", "data": str(tmp_path), name: value}).settings
    assert may_have_demo(settings, ROLES) is may
