"""What every database must do, the same on each of them."""

from __future__ import annotations

import asyncio

import pytest

from roost.core.errors import InvalidId, InvalidInput, RoostError
from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.errors import DatabaseOverloaded, StateTooLarge
from roost.db.model import MAX_NUMBER, Claimed, Fenced, Flush, Flushed, Refused, Row
from roost.db.options import DatabaseOptions

A, B = Owner("501", "life-1"), Owner("502", "life-2")
ALL_BYTES = bytes(range(256))


async def claimed(db: Database, user: str = "anna", owner: Owner = A, epoch: int = 5, judged: int = 0) -> Row:
    answer = await db.claim("entity", user, owner, epoch, judged=judged)
    assert isinstance(answer, Claimed)
    return answer.row


async def row(db: Database, user: str = "anna") -> Row:
    found = await db.read("entity", user)
    assert found is not None
    return found


def flush(user: str = "anna", epoch: int = 5, revision: int = 1, state: bytes = b"state") -> Flush:
    return Flush("entity", user, epoch, revision, state)


async def test_a_user_whom_nobody_claimed_has_no_row(db: Database) -> None:
    assert await db.read("entity", "anna") is None
    await db.ping()
    assert db.healthy


async def test_the_first_claim_makes_the_row(db: Database) -> None:
    made = await claimed(db)

    assert (made.owner, made.epoch, made.revision, made.state, made.replies) == (A, 5, 0, None, b"")
    assert (made.last_sequence, made.schema_version, made.min_reader) == (0, 1, 1)
    assert 1_600_000_000_000 < made.created_at <= made.updated_at
    assert await row(db) == made


async def test_a_claim_names_the_epoch_that_it_judged(db: Database) -> None:
    before = await claimed(db)

    assert await db.claim("entity", "anna", B, 9, judged=4) == Refused(before)
    assert await db.claim("entity", "anna", B, 9, judged=6) == Refused(before)
    assert await db.claim("entity", "anna", B, 9, judged=0) == Refused(before)
    assert (await claimed(db, owner=B, epoch=9, judged=5)).owner == B


@pytest.mark.parametrize("epoch", [5, 4, 1])
async def test_an_epoch_only_rises(db: Database, epoch: int) -> None:
    before = await claimed(db)
    assert await db.claim("entity", "anna", B, epoch, judged=5) == Refused(before)
    assert await row(db) == before


async def test_the_same_epoch_is_never_given_again_not_even_to_its_owner(db: Database) -> None:
    before = await claimed(db)
    assert await db.claim("entity", "anna", A, 5, judged=0) == Refused(before)
    assert await db.claim("entity", "anna", A, 5, judged=5) == Refused(before)


async def test_a_claim_that_judged_a_row_which_is_not_there_is_refused_and_makes_none(db: Database) -> None:
    answer = await db.claim("entity", "anna", A, 5, judged=3)

    assert answer == Refused(Row.absent("entity", "anna"))
    assert await db.read("entity", "anna") is None
    await claimed(db, judged=0)


async def test_a_claim_changes_the_owner_and_nothing_of_the_state(db: Database) -> None:
    await claimed(db)
    whole = Flush("entity", "anna", 5, 7, ALL_BYTES, 42, b"replies", 3, 2)
    assert await db.flush(whole) == Flushed()

    taken = await claimed(db, owner=B, epoch=6, judged=5)

    assert (taken.owner, taken.epoch, taken.revision, taken.last_sequence) == (B, 6, 7, 42)
    assert (taken.state, taken.replies, taken.schema_version, taken.min_reader) == (
        ALL_BYTES,
        b"replies",
        3,
        2,
    )


async def test_of_racing_claims_one_wins(db: Database) -> None:
    for judged in (0, 10):
        claims = [
            db.claim("entity", "anna", Owner(str(n), "l"), judged + 1 + n % 9, judged=judged)
            for n in range(16)
        ]
        answers = await asyncio.gather(*claims)
        winners = [answer for answer in answers if isinstance(answer, Claimed)]
        assert len(winners) == 1
        now = await row(db)
        assert (now.owner, now.epoch) == (winners[0].row.owner, winners[0].row.epoch)
        if now.epoch < 10:
            await claimed(db, epoch=10, judged=now.epoch)


async def test_a_flush_with_another_epoch_is_fenced(db: Database) -> None:
    before = await claimed(db)
    for epoch in (4, 6):
        assert await db.flush(flush(epoch=epoch)) == Fenced(before)
    assert await row(db) == before


async def test_a_flush_without_a_row_is_fenced_and_makes_none(db: Database) -> None:
    assert await db.flush(flush()) == Fenced(None)
    assert await db.read("entity", "anna") is None


async def test_a_late_older_revision_never_lands(db: Database) -> None:
    await claimed(db)
    assert await db.flush(flush(revision=2, state=b"second")) == Flushed()
    now = await row(db)

    assert await db.flush(flush(revision=1, state=b"first")) == Fenced(now)
    assert (await row(db)).state == b"second"


async def test_a_flush_that_is_repeated_is_no_fence(db: Database) -> None:
    await claimed(db)
    assert await db.flush(flush()) == Flushed()
    before = await row(db)
    assert await db.flush(flush()) == Flushed()
    assert await row(db) == before


async def test_other_content_under_the_same_revision_is_not_taken_for_a_repeat(db: Database) -> None:
    await claimed(db)
    await db.flush(flush())
    assert await db.flush(flush(state=b"other")) == Fenced(await row(db))


async def test_the_owner_before_is_fenced_after_a_claim(db: Database) -> None:
    await claimed(db)
    taken = await claimed(db, owner=B, epoch=6, judged=5)
    assert await db.flush(flush(revision=9)) == Fenced(taken)
    assert await db.flush(flush(epoch=6)) == Flushed()


async def test_an_empty_state_is_not_the_same_as_none(db: Database) -> None:
    await claimed(db)
    await db.flush(flush(state=b""))
    assert (await row(db)).state == b""


@pytest.mark.parametrize("blob", [ALL_BYTES, b"\x00", b"'\\\"%s %% {} \x1a\n", "ü€😀".encode()])
async def test_blobs_come_back_byte_for_byte(db: Database, blob: bytes) -> None:
    await claimed(db)
    assert await db.flush(Flush("entity", "anna", 5, 1, blob, 0, blob)) == Flushed()
    now = await row(db)
    assert (now.state, now.replies) == (blob, blob)
    assert await db.flush_many([Flush("entity", "anna", 5, 2, blob * 2), flush("bob")]) == [
        Flushed(),
        Fenced(None),
    ]
    assert (await row(db)).state == blob * 2


IDS = [
    "anna",
    "Anna",
    "ánna",
    "a'n%s\\na",
    "Ä",
    "ä",
    "ß",
    "ss",
    "😀",
    "x" * 128,
    "a:b",
    "1",
    "01",
    "a\u0301nna",
]


async def test_ids_are_compared_byte_by_byte(db: Database) -> None:
    for epoch, user in enumerate(IDS, start=1):
        await claimed(db, user, epoch=epoch)
        await claimed(db, user, epoch=epoch + 100, judged=epoch)
    assert [(await row(db, user)).epoch for user in IDS] == [100 + n for n in range(1, len(IDS) + 1)]
    assert [(await row(db, user)).user for user in IDS] == IDS
    batch = await db.flush_many([flush(user, epoch=100 + n) for n, user in enumerate(IDS, start=1)])
    assert batch == [Flushed()] * len(IDS)


async def test_types_are_apart(db: Database) -> None:
    await db.claim("entity", "anna", A, 5, judged=0)
    await db.claim("pet", "anna", B, 3, judged=0)
    await db.flush(Flush("pet", "anna", 3, 1, b"pet"))
    assert (await row(db)).state is None


async def test_the_largest_numbers_are_kept(db: Database) -> None:
    await claimed(db, epoch=MAX_NUMBER)
    assert await db.flush(Flush("entity", "anna", MAX_NUMBER, MAX_NUMBER, b"", MAX_NUMBER)) == Flushed()
    now = await row(db)
    assert (now.epoch, now.revision, now.last_sequence) == (MAX_NUMBER,) * 3


async def test_a_state_of_the_largest_size_is_kept_and_a_larger_one_refused(db: Database) -> None:
    await claimed(db)
    largest = ALL_BYTES * 4096
    assert await db.flush(flush(state=largest)) == Flushed()
    assert (await row(db)).state == largest

    with pytest.raises(StateTooLarge, match="1048577 bytes, at most 1048576"):
        await db.flush(flush(revision=2, state=largest + b"x"))
    with pytest.raises(StateTooLarge, match="replies"):
        await db.flush(Flush("entity", "anna", 5, 2, b"", 0, largest + b"x"))
    assert (await row(db)).revision == 1


async def test_a_batch_answers_each_in_its_place(db: Database) -> None:
    for user in ("anna", "bob", "carl"):
        await claimed(db, user)
    batch = [
        flush("carl", revision=3),
        flush("dora"),
        flush("anna", revision=1),
        flush("bob", epoch=4),
        flush("anna", revision=2, state=b"later"),
        flush("bob", state=b"x" * 2_000_000),
        flush("anna", revision=2, state=b"later"),
        flush("not an id"),
        flush("anna", revision=1),
    ]

    answers = await db.flush_many(batch)

    assert answers[0] == answers[2] == answers[4] == answers[6] == Flushed()
    assert answers[1] == Fenced(None)
    assert isinstance(answers[3], Fenced)
    assert isinstance(answers[5], StateTooLarge)
    assert isinstance(answers[7], InvalidId)
    assert answers[8] == Fenced(await row(db))
    assert (await row(db)).state == b"later"


async def test_in_a_large_batch_those_who_are_fenced_are_fenced_alone(db: Database) -> None:
    users = [f"user-{n}" for n in range(43)]
    await asyncio.gather(*(claimed(db, user) for user in users))
    late, other_epoch = users[3::7], users[5::7]
    await db.flush_many([flush(user, revision=9, state=b"newer") for user in late])

    answers = await db.flush_many(
        [flush(user, epoch=4 if user in other_epoch else 5, state=b"mine") for user in users]
    )

    fenced = {user for user, answer in zip(users, answers, strict=True) if isinstance(answer, Fenced)}
    assert fenced == {*late, *other_epoch}
    states = {user: (await row(db, user)).state for user in users}
    assert {user for user in users if states[user] == b"mine"} == {*users} - fenced
    assert all(states[user] == b"newer" for user in late)


async def test_a_large_batch_lands(db: Database) -> None:
    users = [f"user-{n}" for n in range(700)]
    await asyncio.gather(*(claimed(db, user) for user in users))
    assert await db.flush_many([flush(user, state=user.encode()) for user in users]) == [Flushed()] * len(
        users
    )
    assert [(await row(db, user)).state for user in users[::50]] == [user.encode() for user in users[::50]]
    assert await db.flush_many([]) == []


async def test_release_clears_the_owner_and_keeps_the_epoch(db: Database) -> None:
    await claimed(db)
    await db.flush(flush())

    assert await db.release("entity", "anna", A, 5)

    now = await row(db)
    assert (now.owner, now.epoch, now.state) == (None, 5, b"state")
    assert isinstance(await db.claim("entity", "anna", B, 5, judged=5), Refused)
    assert (await claimed(db, owner=B, epoch=6, judged=5)).state == b"state"


async def test_only_the_owner_releases_and_may_repeat_it(db: Database) -> None:
    await claimed(db)
    assert not await db.release("entity", "anna", B, 5)
    assert not await db.release("entity", "anna", Owner("501", "life-2"), 5)
    assert not await db.release("entity", "anna", A, 4)
    assert not await db.release("entity", "bob", A, 5)
    assert (await row(db)).owner == A
    assert await db.release("entity", "anna", A, 5)
    assert await db.release("entity", "anna", A, 5)


BAD_IDS = ["", "a b", "a{b}", "x" * 129, "a\nb", "é" * 65]


@pytest.mark.parametrize("bad", BAD_IDS)
async def test_bad_ids_are_refused_before_anything_is_sent(db: Database, bad: str) -> None:
    with pytest.raises(InvalidId):
        await db.read("entity", bad)
    with pytest.raises(InvalidId):
        await db.read(bad, "anna")
    with pytest.raises(InvalidId):
        await db.claim("entity", "anna", Owner(bad, "life"), 5, judged=0)
    with pytest.raises(InvalidId):
        await db.release("entity", "anna", Owner("501", bad), 5)
    assert await db.read("entity", "anna") is None


@pytest.mark.parametrize("bad", [0, -1, MAX_NUMBER + 1, True, 1.5, "5", None])
async def test_bad_numbers_are_refused_before_anything_is_sent(db: Database, bad: int) -> None:
    with pytest.raises(InvalidInput, match="epoch must be a whole number"):
        await db.claim("entity", "anna", A, bad, judged=0)
    with pytest.raises(InvalidInput, match="revision must be a whole number"):
        await db.flush(Flush("entity", "anna", 5, bad, b""))
    with pytest.raises(InvalidInput):
        await db.flush(Flush("entity", "anna", 5, 1, "text"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        await db.claim("entity", "anna", A, 5, judged=-1)
    assert await db.read("entity", "anna") is None


async def test_callers_beyond_the_bound_are_refused_at_once(any_url: str) -> None:
    async with open_database(any_url, options=DatabaseOptions(pool_size=1, max_waiting=5)) as db:
        answers = await asyncio.gather(
            *(db.read("entity", f"user-{n}") for n in range(50)), return_exceptions=True
        )
        refused = [answer for answer in answers if isinstance(answer, RoostError)]
        assert refused
        assert {type(answer) for answer in refused} == {DatabaseOverloaded}
        assert await db.read("entity", "anna") is None
