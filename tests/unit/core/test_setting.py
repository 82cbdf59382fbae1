"""Sections that say what their values may be."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from roost.core.errors import InvalidInput
from roost.core.setting import check_fields, checked, setting


@dataclass(frozen=True, slots=True)
class Inner:
    port: int = setting(0, "Port.")


@dataclass(frozen=True, slots=True)
class Section:
    level: str = setting("info", "Level.", choices=("info", "error"))
    port: int = setting(80, "Port.", most=100)
    pause_s: int = setting(50, "Pause.", least=50)
    inner: Inner = Inner()


def test_what_is_allowed_is_no_fault() -> None:
    assert check_fields(Section()) == []
    assert check_fields(Section("error", 1, 50)) == []
    assert check_fields(Section(port=100)) == []


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (Section(level="loud"), "level is 'loud', must be one of info, error"),
        (Section(pause_s=3), "pause_s is 3, must be at least 50"),
        (Section(port=0), "port is 0, must be at least 1"),
        (Section(port=101), "port is 101, must be at most 100"),
    ],
)
def test_a_fault_names_the_field_its_value_and_what_is_allowed(section: Section, fault: str) -> None:
    assert check_fields(section) == [fault]


def test_all_faults_come_at_once_and_sections_within_check_themselves() -> None:
    assert len(check_fields(Section("loud", 0, 0))) == 3


def test_a_check_that_refuses_is_a_fault_with_its_hint() -> None:
    def refuse(text: str) -> str:
        raise InvalidInput(f"{text} is odd", hint="write 2")

    faults: list[str] = []
    assert checked(faults, "number", int, "2") == 2
    assert faults == []
    assert checked(faults, "number", refuse, "3") is None
    assert faults == ["number: 3 is odd (write 2)"]
