"""Soft evidence makes half of the fleet unhealthy at most; who is out does not count against itself."""

from __future__ import annotations

import pytest

from tests.unit.discovery.test_health import DEAD, MUTE, NoBallot, Ward


@pytest.fixture
async def ward() -> Ward:
    return Ward(ballot=NoBallot())


async def test_who_is_silent_already_is_found_mute_too_while_the_other_half_is_well(ward: Ward) -> None:
    """Else its first beat would bring it back, though it does not answer."""
    _, blocked, _ = ward.see("501"), ward.see("502"), ward.see("503")
    for _ in range(3):
        ward.checker.judge(blocked, DEAD)
    silent = ward.see("504", status="suspect")
    for _ in range(3):
        ward.checker.judge(silent, MUTE)
    assert ward.votes() == {"502": "unhealthy", "504": "unhealthy"}


async def test_others_who_are_silent_count_for_the_cap(ward: Ward) -> None:
    mute = ward.see("501")
    ward.see("502")
    ward.see("503", status="suspect")
    ward.see("504", status="suspect")
    for _ in range(5):
        ward.checker.judge(mute, MUTE)
    assert ward.votes() == {}
