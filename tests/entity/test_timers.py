"""Timers belong to their user: they ring in a turn, and end with the session."""

from __future__ import annotations

from typing import ClassVar

import pytest

from roost.sdk.entity import Entity, Message
from roost.servers.entity import timers
from roost.servers.entity.timers import MOST
from roost.testing import eventually
from roost.wire.codes import Code
from tests.entity.town import Counter, Town


class Ringing(Counter):
    rings: ClassVar[int] = 0

    async def on_login(self, reason: str) -> None:
        self.timer = self.every(0.001, self.ring)

    async def ring(self) -> None:
        type(self).rings += 1
        self.count += 1
        if self.count == 2:
            raise ValueError("a timer of the class fails")
        if self.count >= 5:
            self.timer.cancel()


async def test_a_timer_rings_in_turns_of_its_user_until_it_is_cancelled(town: Town) -> None:
    house = await town.open(entity=Ringing)
    Ringing.rings = 0
    await town.bind("ann", house)
    await house.login("ann")

    await eventually(lambda: Ringing.rings == 5)

    assert await house.result("ann") == 6
    assert house.host.counts["hook_failures"] == 1
    assert not house.host.sessions["ann"].timers.running


async def test_timers_end_with_the_session(town: Town) -> None:
    house = await town.open(entity=Ringing)
    await town.bind("ann", house)
    await house.login("ann")
    session = house.host.sessions["ann"]
    session.entity.every(3600, lambda: None)

    await house.host.stop()

    assert not session.timers.running


async def test_a_timer_that_is_due_while_the_lease_is_over_waits_for_it(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timers, "PUT_OFF_S", 0.001)
    house = await town.open()
    await town.bind("ann", house)
    await house.login("ann")
    house.lapse()
    turns: list[bool] = []
    session = house.host.sessions["ann"]
    put_off = timers.RunningTimer.put_off

    def noted(timer: timers.RunningTimer) -> None:
        turns.append(False)
        put_off(timer)

    monkeypatch.setattr(timers.RunningTimer, "put_off", noted)
    session.entity.after(0.001, lambda: turns.append(True))

    await eventually(lambda: len(turns) >= 2, "it is put off")
    assert True not in turns
    await house.beat()

    await eventually(lambda: True in turns, "it rings when the user is ours again")


class Many(Entity):
    async def handle(self, message: Message) -> object:
        for _ in range(MOST + 1):
            self.after(3600, lambda: None)
        return "too many"


async def test_a_user_has_a_bounded_number_of_timers(town: Town) -> None:
    house = await town.open(entity=Many)
    await town.bind("ann", house)

    assert (await house.ask("ann", "up")).code is Code.FAILED
    assert len(house.host.sessions["ann"].timers.running) == MOST


def test_an_entity_without_a_server_has_no_timers() -> None:
    with pytest.raises(RuntimeError, match="need a server"):
        Counter().after(1, lambda: None)
    assert not Counter().push("x")
