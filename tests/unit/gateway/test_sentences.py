"""What the entries of feeds mean, in one sentence each."""

from __future__ import annotations

import pytest

from roost.api.audit import AuditEntry
from roost.gateway.live import sentences
from roost.gateway.live.following import Gathering, together_by_second
from roost.gateway.live.sentences import Told

AT = 1_800_000_000_000_000


def moved(user: str, at_us: int = AT, **more: str) -> Told | None:
    fields = {
        "event": "bound",
        "type": "entity",
        "user": user,
        "serverId": "502",
        "from": "501",
        "why": "moved",
    }
    return sentences.of_binding(at_us, fields | more)


def text(told: Told | None) -> str:
    assert told is not None
    return told.happening.text


def test_a_move_of_one_and_of_many() -> None:
    one = moved("ann")
    assert text(one) == "ann (entity) moved from 501 to 502"
    gathering = Gathering()
    for user in ("ann", "bob", "cat"):
        told = moved(user)
        assert told is not None
        gathering.add(told)
    (whole,) = gathering.flush()
    assert text(whole) == "3 users (entity) moved from 501 to 502"
    assert whole.happening.details == {"type": "entity", "from": "501", "to": "502", "count": 3}
    assert gathering.flush() == []


@pytest.mark.parametrize("why", ["renewed", "seen", "reasserted", "move-expired"])
def test_an_owner_that_goes_on_is_no_news(why: str) -> None:
    assert moved("ann", why=why) is None
    assert moved("ann", serverId="501") is None


def test_a_home_that_was_lost_is_a_warning() -> None:
    told = moved("ann", why="failover")
    assert told is not None
    assert (told.happening.level, text(told)) == ("warning", "ann (entity) came to 502: 501 is gone")


def test_what_happened_before_is_gathered_by_the_second() -> None:
    found = [moved("a"), moved("b", AT + 10), moved("c", AT + 2_000_000)]
    told = together_by_second([one for one in found if one is not None])
    assert sorted(map(text, told)) == [
        "2 users (entity) moved from 501 to 502",
        "c (entity) moved from 501 to 502",
    ]


def test_a_world_in_words() -> None:
    governed = {"event": "governed", "mode": "hold", "limit": "-", "rate": "", "opensAt": str(AT)}
    assert text(sentences.of_world("main", AT, governed)) == (
        "an operator changed main: mode hold, limit none, opening 2027-01-15T08:00:00.000Z"
    )
    silent = {"event": "governed", "mode": "", "limit": "", "rate": "", "opensAt": ""}
    assert text(sentences.of_world("main", AT, silent)) == "an operator changed main: its message"
    assert text(sentences.of_world("main", AT, {"event": "promoted", "user": "ann"})) == (
        "ann got a ticket for main"
    )
    assert sentences.of_world("main", AT, {"event": "something new"}) is None


@pytest.mark.parametrize("state", sentences.JOBS)
def test_every_state_of_a_job_has_a_sentence(state: str) -> None:
    fields = {"event": state, "job": "j1", "why": "ordered", "type": "entity", "parts": "501:7 502:8"}
    told = sentences.of_job(AT, fields)
    assert told is not None
    assert "501, 502" in text(told)
    assert text(told).endswith(": ordered")
    assert told.happening.subject == "job/j1"


def test_a_symbol_and_a_shard_in_words() -> None:
    fields = {"event": "begin", "symbol": "AAPL", "from": "3:1", "to": "5:2"}
    assert text(sentences.of_placement(AT, fields)) == "AAPL moves from 3:1 to 5:2"
    assert sentences.of_placement(AT, {"event": "select"}) is None
    assert text(sentences.of_shard(AT, 3, "", "o-1")) == "shard 3 has no owner: o-1 lost it, its symbols wait"
    assert text(sentences.of_shard(AT, 3, "o-2", "o-1")) == "o-2 owns shard 3, which o-1 had"


def test_an_act_in_words() -> None:
    act = AuditEntry(
        "1", "", "ann", "ab", [], "::1", "drain.start", "job/1", None, None, "done", "", "r", "cli"
    )
    assert text(sentences.of_act(AT, act)) == "ann did drain.start on job/1"
    act.outcome, act.code = "refused", "FORBIDDEN"
    told = sentences.of_act(AT, act)
    assert (text(told), told.happening.level) == (
        "ann was refused drain.start on job/1: FORBIDDEN",
        "warning",
    )
