"""Handing events on: going on where a stream broke off, and never more than a queue for one viewer."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from roost.api.events import Happening
from roost.gateway.live.viewers import KEPT, RECENT, Sent, Viewer, Viewers

NOW = "2026-11-18T04:00:00.000Z"


def tell(viewers: Viewers, *texts: str, scope: str = "queue") -> None:
    for text in texts:
        viewers.tell("ticket", Happening(scope, "promoted", NOW, "world/main", text))  # type: ignore[arg-type]


async def heard(viewer: Viewer) -> list[str]:
    return [sent.kind for sent in await waiting_of(viewer)]


async def waiting_of(viewer: Viewer) -> list[Sent]:
    found = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            while True:
                found.append(await viewer.next())
    return found


async def test_who_comes_back_gets_all_that_is_kept_and_then_what_happened_meanwhile() -> None:
    viewers = Viewers()
    tell(viewers, "a")
    seen = viewers.last_id
    tell(viewers, *(str(n) for n in range(KEPT - 1)))
    with viewers.joined(["queue"], seen, NOW) as viewer:
        tell(viewers, "b")
        numbers = [sent.number for sent in await waiting_of(viewer)]
    assert numbers == list(range(2, KEPT + 2))


async def test_who_comes_back_gets_what_they_missed_of_their_scopes() -> None:
    viewers = Viewers()
    tell(viewers, "a")
    seen = viewers.last_id
    tell(viewers, "b")
    tell(viewers, "c", scope="drain")
    with viewers.joined(["queue"], seen, NOW) as viewer:
        assert await heard(viewer) == ["ticket"]


@pytest.mark.parametrize("number", ["-1", "999", "x", ""])
async def test_an_id_that_fits_nothing_is_a_gap(number: str) -> None:
    viewers = Viewers()
    tell(viewers, "a")
    with viewers.joined(["queue"], f"{viewers.history}-{number}", NOW) as viewer:
        assert await heard(viewer) == ["gap"]


async def test_an_event_that_is_forgotten_is_a_gap() -> None:
    viewers = Viewers()
    tell(viewers, "a")
    seen = viewers.last_id
    tell(viewers, *(str(n) for n in range(KEPT)))
    with viewers.joined(["queue"], seen, NOW) as viewer:
        kinds = await heard(viewer)
        assert "gap" in kinds or len(kinds) == KEPT
    tell(viewers, "one more")
    with viewers.joined(["queue"], seen, NOW) as viewer:
        assert await heard(viewer) == ["gap"]


async def test_a_new_list_goes_on_from_no_old_one() -> None:
    viewers = Viewers()
    tell(viewers, "a")
    seen = viewers.last_id
    viewers.start_anew()
    with viewers.joined(["queue"], seen, NOW) as viewer:
        assert await heard(viewer) == ["gap"]


async def test_of_overviews_only_the_newest_waits() -> None:
    viewers = Viewers()
    with viewers.joined(["overview", "queue"], "", NOW) as viewer:
        for number in range(5):
            viewers.show(str(number).encode(), NOW)
        tell(viewers, "a")
        assert await heard(viewer) == ["ticket", "overview"]


async def test_a_gap_of_one_scope_is_heard_by_its_viewers() -> None:
    viewers = Viewers()
    with viewers.joined(["queue"], "", NOW) as viewer, viewers.joined(["drain"], "", NOW) as other:
        viewers.miss("drain", NOW)
        assert (await heard(viewer), await heard(other)) == ([], ["gap"])


def test_recent_is_newest_first_bounded_and_tells_nothing_twice() -> None:
    viewers = Viewers()
    tell(viewers, *(str(n) for n in range(RECENT + 5)))
    assert len(viewers.recent) == RECENT
    assert viewers.recent[0].text == str(RECENT + 4)
    before = list(reversed(viewers.recent))
    viewers.remember(before[:10])
    assert viewers.recent[0].text == str(RECENT + 4)
    assert len({one.text for one in viewers.recent}) == len(viewers.recent)
