"""Handing events on: going on where a stream broke off, and never more than a queue for one viewer."""

from __future__ import annotations

import pytest

from roost.api.events import Happening
from roost.gateway.live.viewers import KEPT, RECENT, Viewer, Viewers

NOW = "2026-11-18T04:00:00.000Z"


def tell(viewers: Viewers, *texts: str, scope: str = "queue") -> None:
    for text in texts:
        viewers.tell("ticket", Happening(scope, "promoted", NOW, "world/main", text))  # type: ignore[arg-type]


async def heard(viewer: Viewer) -> list[str]:
    found = []
    while (sent := await viewer.next(0.001)) is not None:
        found.append(sent.kind)
    return found


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
