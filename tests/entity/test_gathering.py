"""Who is gathered for a party: everybody on the server is asked for it now and then, not for each MOVE."""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from typing import ClassVar

import pytest

from roost.sdk.entity import Later, Now, Pinned
from roost.servers.entity import parties
from tests.entity.town import Counter, House, Town

PARTIES = {f"p{number}": (f"u{number}a", f"u{number}b") for number in range(6)}
BYSTANDERS = ("x", "y", "z")


class Member(Counter):
    party: ClassVar[dict[str, str]] = {}
    asked: ClassVar[Tally[str]] = Tally()

    def can_move(self) -> Now | Later | Pinned:
        Member.asked[self.user] += 1
        return Now(Member.party.get(self.user, ""))


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is of which party is asked once in a test."""
    monkeypatch.setattr(parties, "EVERY_S", 3600.0)
    Member.party = {user: party for party, members in PARTIES.items() for user in members}


async def two(town: Town) -> tuple[House, House]:
    a, b = await town.open("501", Member), await town.open("502", Member)
    for user in (*Member.party, *BYSTANDERS):
        await town.bind(user, a)
        await a.result(user)
    Member.asked = Tally()
    return a, b


async def outcomes(a: House, b: House, *users: str, **terms: bool) -> dict[str, str]:
    return {report[0]: report[1] for report in await a.move(b, *users, **terms)}


def asked_of_bystanders() -> list[int]:
    return [Member.asked[user] for user in BYSTANDERS]


async def test_all_are_asked_once_for_many_parties(town: Town) -> None:
    a, b = await two(town)

    for one, other in PARTIES.values():
        assert await outcomes(a, b, one) == {one: "moved", other: "moved"}

    assert asked_of_bystanders() == [1, 1, 1]


async def test_all_are_asked_once_for_moves_that_come_at_once(town: Town) -> None:
    a, b = await two(town)

    await asyncio.gather(*(a.move(b, user) for user in Member.party))

    assert a.users == list(BYSTANDERS)
    assert asked_of_bystanders() == [1, 1, 1]


async def test_nobody_else_is_asked_for_one_who_goes_alone_or_by_force(town: Town) -> None:
    a, b = await two(town)

    assert await outcomes(a, b, "x") == {"x": "moved"}
    assert await outcomes(a, b, "u0a", "u0b", "u1a", force=True) == dict.fromkeys(
        ("u0a", "u0b", "u1a"), "moved"
    )

    assert asked_of_bystanders()[1:] == [0, 0]
    assert Member.asked["u1b"] == 0


async def test_who_has_joined_since_and_is_asked_for_goes_with_the_party(town: Town) -> None:
    a, b = await two(town)
    await a.move(b, *PARTIES["p0"])
    Member.party = Member.party | {"x": "p1"}

    assert await outcomes(a, b, "u1a", "x") == dict.fromkeys((*PARTIES["p1"], "x"), "moved")


async def test_who_has_changed_sides_since_goes_with_the_others_of_now(town: Town) -> None:
    a, b = await two(town)
    await a.move(b, *PARTIES["p0"])
    Member.party = Member.party | {"u1a": "p2"}

    assert await outcomes(a, b, "u1a", "u1b") == dict.fromkeys((*PARTIES["p2"], *PARTIES["p1"]), "moved")


async def test_a_party_that_has_changed_since_is_tried_later_and_found_anew(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await two(town)
    await a.move(b, *PARTIES["p0"])
    Member.party = Member.party | {"u1b": "another"}

    assert await outcomes(a, b, "u1a") == dict.fromkeys(PARTIES["p1"], "later")
    assert set(PARTIES["p1"]) <= set(a.users)

    monkeypatch.setattr(parties, "EVERY_S", 0.0)
    assert await outcomes(a, b, "u1a") == {"u1a": "moved"}


async def test_who_has_left_the_server_since_is_not_waited_for(town: Town) -> None:
    a, b = await two(town)
    await a.move(b, *PARTIES["p0"])
    await a.move(b, "u1b", force=True)

    assert await outcomes(a, b, "u1a") == {"u1a": "moved"}
