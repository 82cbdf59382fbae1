"""What a world's leader makes of discovery: which news it writes, and when it writes all of it anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.api.discovery import Change, Instance, Watcher
from roost.core.errors import StoreUnavailable
from roost.core.lease import Tenure
from roost.waitingroom.fleet import ABSENT_S, Fleet
from roost.waitingroom.scripts import Deposed, Stale, Synced
from roost.waitingroom.service import WaitingRoom

TENURE = Tenure("m", 13, 0.0, 10_000)
Answer = Synced | Stale | Deposed | Exception


def instance(server: str, life: str = "7", willing: bool = True) -> Instance:
    return Instance(
        type="game",
        group="kr",
        instance_id=f"i-{server}",
        server_id=server,
        life=life,
        status="ready",
        accepting=False,
        willing=willing,
        last_heartbeat="",
    )


def snapshot(*instances: Instance, revision: int = 1) -> Change:
    return Change("snapshot", revision, "0", instances=list(instances))


def changed(found: Instance, event: Any = "changed") -> Change:
    return Change(event, 1, "0", found.instance_id, found.life, found.server_id, found.status, found)


def removed(server: str, life: str = "7") -> Change:
    return Change("removed", 1, "0", f"i-{server}", life, server, "no-response")


class Heard:
    """A fleet on a store that answers in turn, then takes everything."""

    def __init__(self, *answers: Answer) -> None:
        self.now = 0.0
        self.written: list[tuple[bool, list[tuple[str, ...]]]] = []
        self.numbers: list[int] = []
        self.answers = list(answers)
        self.meanwhile: Change | None = None
        """Heard while the next write is under way."""
        room = SimpleNamespace(world="main", scripts=SimpleNamespace(sync=self._sync))
        self.fleet = Fleet(cast(WaitingRoom, room), cast(Watcher, None), "game", clock=lambda: self.now)
        self.fleet.begin()

    async def _sync(self, *, full: int, number: int, rows: list[str], **_: Any) -> Synced | Stale | Deposed:
        self.written.append((bool(full), list(zip(rows[::3], rows[1::3], rows[2::3], strict=True))))
        self.numbers.append(number)
        if self.meanwhile is not None:
            self.fleet.hear(self.meanwhile)
            self.meanwhile = None
        answer = self.answers.pop(0) if self.answers else Synced(0, [])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def write(self, *changes: Change) -> bool:
        for change in changes:
            self.fleet.hear(change)
        return await self.fleet.write(TENURE)


async def test_nothing_is_written_or_named_before_a_snapshot_was_heard() -> None:
    heard = Heard()
    assert await heard.write(changed(instance("501")))
    assert (heard.written, heard.fleet.news) == ([], "")


async def test_first_all_then_what_changed() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501"), instance("502", willing=False)))
    await heard.write()
    await heard.write(changed(instance("501", willing=False)), changed(instance("503", "9"), "added"))
    assert heard.written == [
        (True, [("501", "7", "1"), ("502", "7", "0")]),
        (False, [("501", "7", "0"), ("503", "9", "1")]),
    ]
    assert heard.fleet.news == "13:2"


async def test_a_change_that_changes_nothing_here_is_not_written() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501")), changed(instance("501")))
    await heard.write(changed(instance("501")))
    assert len(heard.written) == 1


async def test_an_end_is_written_before_a_new_life() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501")))
    await heard.write(removed("501"), changed(instance("501", "3"), "added"))
    assert heard.written[-1] == (False, [("501", "7", "-"), ("501", "3", "1")])


async def test_an_end_is_written_again_until_everybody_was_let_out() -> None:
    heard = Heard(Synced(0, []), Synced(700, []), Synced(200, []))
    await heard.write(snapshot(instance("501")))
    await heard.write(removed("501"))
    assert heard.fleet.changed.is_set()
    await heard.write()
    await heard.write()
    assert [rows for _, rows in heard.written[1:]] == [[("501", "7", "-")]] * 3
    assert not heard.fleet.changed.is_set()


async def test_the_end_of_another_life_does_not_take_the_present_one_away() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501", "9")), removed("501", "7"))
    assert heard.written == [(True, [("501", "7", "-"), ("501", "9", "1")])]


@pytest.mark.parametrize("answer", [StoreUnavailable(), Stale()])
async def test_after_a_write_that_was_not_taken_all_of_it_is_written_under_a_larger_number(
    answer: Answer,
) -> None:
    heard = Heard(Synced(0, []), answer)
    await heard.write(snapshot(instance("501"), instance("502")))
    heard.fleet.hear(changed(instance("501", willing=False)))
    try:
        await heard.write()
    except StoreUnavailable:
        pass
    await heard.write()
    assert heard.written[-1] == (True, [("501", "7", "0"), ("502", "7", "1")])
    assert heard.numbers == [1, 2, 3]


async def test_after_a_gap_all_of_it_is_written_though_the_revision_began_again() -> None:
    """Discovery was wiped within a tenure: its new snapshot is no newer by its own count."""
    heard = Heard()
    await heard.write(snapshot(instance("501", willing=False), revision=900))
    await heard.write(snapshot(instance("501", "9"), revision=1))
    assert heard.written[-1] == (True, [("501", "9", "1")])


async def test_a_ledger_that_lost_the_news_gets_all_of_it() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501")))
    heard.fleet.forget_written()
    await heard.write()
    assert heard.written[-1] == (True, [("501", "7", "1")])


async def test_every_tenure_begins_with_a_snapshot_and_goes_on_counting() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501")))
    heard.fleet.begin()
    await heard.write(changed(instance("501", willing=False)))
    assert (len(heard.written), heard.fleet.news) == (1, "")
    await heard.write(snapshot(instance("502")))
    assert (heard.numbers, heard.written[-1]) == ([1, 2], (True, [("502", "7", "1")]))


async def test_a_deposed_leader_is_told_so() -> None:
    heard = Heard(Deposed())
    assert not await heard.write(snapshot())


async def test_a_discovery_that_was_emptied_throws_nobody_out_at_once() -> None:
    heard = Heard(Synced(0, ["501", "7"]))
    await heard.write(snapshot())
    heard.now += ABSENT_S
    await heard.write()
    assert len(heard.written) == 1
    heard.now += 1
    await heard.write()
    assert heard.written[-1] == (False, [("501", "7", "-")])


async def test_who_is_absent_and_comes_back_in_time_is_not_ended() -> None:
    heard = Heard(Synced(0, ["501", "7"]), Synced(0, []))
    await heard.write(snapshot())
    heard.now += ABSENT_S - 1
    await heard.write(snapshot(instance("501")))
    heard.now += ABSENT_S
    await heard.write()
    assert heard.written[-1] == (True, [("501", "7", "1")])


async def test_a_server_without_an_id_of_its_own_goes_by_its_instance() -> None:
    heard = Heard()
    nameless = instance("")
    nameless.instance_id = "01J"
    await heard.write(snapshot(nameless))
    assert heard.written == [(True, [("01J", "7", "1")])]


async def test_a_snapshot_that_comes_while_a_write_is_under_way_is_written_in_full() -> None:
    heard = Heard()
    await heard.write(snapshot(instance("501"), instance("502")))
    heard.meanwhile = snapshot(instance("501"))  # after a gap: the end of 502 was missed
    await heard.write(changed(instance("501", willing=False)))
    await heard.write()
    assert heard.written[-1] == (True, [("501", "7", "1")])


async def test_a_snapshot_that_shows_a_life_again_saves_it() -> None:
    heard = Heard(Synced(0, ["501", "7"]))
    await heard.write(snapshot())
    heard.now = ABSENT_S + 0.1
    await heard.write(snapshot(instance("501")))
    assert heard.written[-1] == (True, [("501", "7", "1")])
