from __future__ import annotations

from collections.abc import Sequence

import pytest

from roost.core.errors import StoreUnavailable
from roost.discovery.voting import MAX_VOTES, Checkers, Finding, Vote, Voting


class Box:
    """A ballot that notes what it was told."""

    def __init__(self) -> None:
        self.others: tuple[str, ...] = ()
        self.calls: list[list[Vote]] = []
        self.joined = False
        self.is_away = False
        self.away_after: int | None = None
        """So many more calls are answered."""

    async def vote(self, checker: str, votes: Sequence[Vote], *, leave: bool = False) -> Checkers:
        if self.away_after is not None:
            self.is_away, self.away_after = self.away_after == 0, max(0, self.away_after - 1)
        if self.is_away:
            raise StoreUnavailable("away")
        self.calls.append(list(votes))
        return Checkers(tuple(sorted((checker, *self.others))), self.joined)


def about(instance_id: str, finding: Finding = "unhealthy", life: str = "1") -> Vote:
    return Vote(instance_id, life, finding)


@pytest.fixture
async def box() -> Box:
    return Box()


@pytest.fixture
async def voting(box: Box) -> Voting:
    voting = Voting(box)
    await voting.send()
    box.calls.clear()
    return voting


async def test_only_changes_are_told(box: Box, voting: Voting) -> None:
    for vote in (about("a"), about("b", "none")):
        voting.say(*vote)
    assert not await voting.send()
    voting.say(*about("a"))
    await voting.send()
    voting.say(*about("a", "healthy"))
    voting.say(*about("a", "none"))
    await voting.send()
    await voting.send()
    assert box.calls == [[about("a")], [], [about("a", "none")], []]


async def test_a_change_that_was_undone_before_it_was_told_is_not_told(box: Box, voting: Voting) -> None:
    voting.say(*about("a"))
    voting.say(*about("a", "none"))
    await voting.send()
    assert box.calls == [[]]


async def test_what_could_not_be_told_is_told_later(box: Box, voting: Voting) -> None:
    voting.say(*about("a"))
    box.is_away = True
    with pytest.raises(StoreUnavailable):
        await voting.send()
    box.is_away = False
    await voting.send()
    assert box.calls == [[about("a")]]


async def test_a_change_of_the_live_checkers_is_said_also_where_the_rest_could_not_be_told(
    box: Box, voting: Voting
) -> None:
    """Else who judges whom would stay as it was: nobody might judge what a dead checker did."""
    voting.say(*about("a"))
    await voting.send()
    box.others, box.away_after = ("other",), 1
    with pytest.raises(StoreUnavailable):
        await voting.send()
    box.is_away, box.away_after = False, None
    assert await voting.send()
    assert not await voting.send()


async def test_everything_is_told_again_when_the_live_checkers_change(box: Box, voting: Voting) -> None:
    voting.say(*about("a"))
    await voting.send()
    box.others = ("other",)
    assert await voting.send()
    assert box.calls == [[about("a")], [], [about("a")]]


async def test_everything_is_told_again_by_one_that_did_not_count(box: Box, voting: Voting) -> None:
    voting.say(*about("a"))
    await voting.send()
    box.joined = True
    box.calls.clear()
    await voting.send()
    assert [about("a")] in box.calls


async def test_many_go_in_several_calls(box: Box, voting: Voting) -> None:
    for n in range(2 * MAX_VOTES + 1):
        voting.say(*about(f"i{n}"))
    await voting.send()
    assert [len(call) for call in box.calls] == [MAX_VOTES, MAX_VOTES, 1]


async def test_who_is_gone_is_withdrawn_once_if_it_was_told(box: Box, voting: Voting) -> None:
    voting.say(*about("a"))
    await voting.send()
    voting.say(*about("b"))
    voting.withdraw("a")
    voting.withdraw("b")
    await voting.send()
    await voting.send()
    assert box.calls[1:] == [[about("a", "none")], []]


async def test_alone_everything_is_ours_and_of_many_our_share(box: Box, voting: Voting) -> None:
    ids = [f"i{n}" for n in range(200)]
    assert all(map(voting.is_assigned, ids))
    box.others = tuple(f"other-{n}" for n in range(9))
    await voting.send()
    assert 30 <= sum(map(voting.is_assigned, ids)) <= 95
