"""A shard whose store's clock is set back, stands still, or leaps a year: ids rise, or are refused (G15)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from roost.lanes.clock import IdClock
from roost.lanes.commands import Method, New, Side, decode_outcome
from roost.lanes.ids import MAX_AHEAD_MS, extract_lane, extract_time
from roost.store.store import Store
from tests.store.lanes.hall import T0_US, TTL_MS, Hall, HallTime, Server

YEAR_S = 365 * 24 * 3600


class StoresTime(HallTime):
    """The true clock of ids, anchored to what the store says: `now_us`; `true_s` is what really passes."""

    def __init__(self, now_us: int = T0_US, true_s: float = 0.0) -> None:
        super().__init__()
        IdClock.__init__(self, now_us // 1000, true_s)
        self.now_us = now_us
        self.true_s = true_s

    def now_ms(self, at: float) -> int:
        return IdClock.now_ms(self, self.true_s)

    def anchor(self, store_ms: int, at: float) -> bool:
        return IdClock.anchor(self, store_ms, self.true_s)

    @property
    def true_ms(self) -> int:
        return T0_US // 1000 + int(self.true_s * 1000)


def store_time_s(scenario: str) -> Callable[[int], float]:
    """What the store's clock says at each second of the test."""
    return {
        "back_10_s": lambda second: second - (10 if second >= 5 else 0),
        "frozen": lambda second: 5 if 5 <= second < 25 else second,
        "a_year_ahead_and_back": lambda second: second + (YEAR_S if 5 <= second < 12 else 0),
    }[scenario]


@pytest.mark.parametrize("scenario", ["back_10_s", "frozen", "a_year_ahead_and_back"])
async def test_g15_a_step_of_the_stores_clock(store: Store, scenario: str) -> None:
    hall = Hall(store)
    hall.time = time = StoresTime()
    says = store_time_s(scenario)
    server = await hall.started("first", wanted=[hall.table.of("ACME")[0]])
    made: list[int] = []

    async def second_passes(owner: Server, time: StoresTime, second: int) -> None:
        time.true_s += 1.0
        time.now_us = T0_US + int(says(second) * 1_000_000)
        for one in hall.servers.values():
            await one.clock.advance(1.0)
        await owner.ownership.step()
        if not owner.ownership.owned:
            return
        answer = await owner.ask(Method.NEW, New("ann", second, 0, "ACME", Side.BUY, 10, 5))
        if answer.code:
            assert b"CLOCK_BEHIND" in answer.payload
        else:
            made.append(decode_outcome(answer.payload).order_id)
            assert abs(extract_time(made[-1]) - time.true_ms) < TTL_MS + MAX_AHEAD_MS + 11_000

    for second in range(1, 25):
        await second_passes(server, time, second)

    assert server.ownership.holds(server.shard_of("ACME").number), "the lease does not depend on the clock"
    assert made == sorted(set(made))
    assert len(made) >= 20  # most of them: the step is not believed, or is made up for slowly
    assert len({extract_lane(order_id) for order_id in made}) == 1
    server.kill()
    hall.time = fresh = StoresTime(time.now_us, time.true_s)  # of a new process

    other = hall.server("second", wanted=server.wanted)
    for second in range(25, 50):
        await second_passes(other, fresh, second)

    assert made == sorted(set(made)), "a new owner repeats no id"
    assert len(made) >= 32
