"""Moves under faults: lost answers, dead and hung targets, lapses, stores that forget.

R1 to R6 and I2 to I9 name the rules and invariants of the move, as docs/decisions/0043 lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest

from roost.binding.scripts import Bound, Frozen, Placed
from roost.core.errors import OutcomeUnknown, RoostError, Unavailable
from roost.core.owner import Owner
from roost.db.model import Flush
from roost.sdk.entity import Durability, Journal, WriteBack
from roost.servers.entity.session import digest_of
from roost.testing import eventually
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.server import Answer
from tests.entity.town import ACCEPT, COMMIT, ENTITY, SECRET, TYPE, Counter, House, Town

BLOCK_MS = 400


class Lazy(Counter):
    """Written only when somebody asks for it."""

    durability: ClassVar[Durability] = WriteBack(ms=60_000)


class Journaled(Counter):
    durability: ClassVar[Durability] = Journal(ms=60_000)


class Broken(Lazy):
    async def load(self, state: bytes | None) -> None:
        if self.home.server_id == "502":
            raise ValueError("this version cannot read it")
        await super().load(state)


class _Faulty:
    """Anything, with some of its verbs replaced."""

    def __init__(self, inner: Any, **verbs: Any) -> None:
        self._inner = inner
        self.__dict__.update(verbs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def faulty(inner: Any, **verbs: Any) -> Any:
    return _Faulty(inner, **verbs)


def loses_answer(verb: Callable[..., Awaitable[Any]], error: type[RoostError] = Unavailable) -> Any:
    """It is done, and nobody hears of it."""

    async def done(*args: Any, **more: Any) -> Any:
        await verb(*args, **more)
        raise error("the answer was lost")

    return done


async def fails(*args: Any, **more: Any) -> Any:
    raise Unavailable("away")


async def nothing(*args: Any, **more: Any) -> None:
    return None


async def hangs(*args: Any, **more: Any) -> Any:
    await asyncio.Event().wait()


async def two(town: Town, entity: type[Counter] = Lazy, **more: Any) -> tuple[House, House]:
    """Ann is at the first one, who has counted to 2; one of it is not written."""
    a, b = await town.open("501", entity, **more), await town.open("502", entity)
    await town.bind("ann", a)
    await a.result("ann")
    await a.host.flusher.save_soon(a.host.sessions["ann"], 5)
    await a.result("ann")
    return a, b


def via(a: House, call: Any) -> None:
    """What the source's calls to other entity servers go through."""
    pool = a.host.mover.peers
    assert pool is not None
    a.host.mover.peers = faulty(
        pool, at=lambda host, port: faulty(pool.at(host, port), call=call(pool.at(host, port)))
    )


class Gate:
    """Finds the user by the map and counts, as a gate would."""

    def __init__(self, town: Town, *houses: House) -> None:
        self.town = town
        self.houses = {house.owner.server_id: house for house in houses}
        self.seen = 0

    async def count(self, user: str, sequence: int) -> int:
        async with asyncio.timeout(15):
            while (found := await self._try(user, sequence)) is None:
                await asyncio.sleep(0.005)
        return found

    async def _try(self, user: str, sequence: int) -> int | None:
        found = await self.town.bindings.resolve(TYPE, user, seen=self.seen)
        if not isinstance(found, Bound | Placed):
            return None
        self.seen = max(self.seen, found.epoch)
        answer = await self.houses[found.server_id].put(
            "ann", "up", sequence, oldest=sequence, epoch=self.seen
        )
        if answer.code is not Code.OK or answer.epoch < self.seen:
            return None
        self.seen = answer.epoch
        return int(msgspec.msgpack.decode(answer.payload)[0])


async def goes_on(town: Town, *houses: House) -> str:
    """Nothing was lost or doubled, and nobody is on the move; where the user is."""
    gate = Gate(town, *houses)
    assert [await gate.count("ann", n) for n in (3, 4)] == [3, 4]
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert (record.state, record.owner is not None) == ("A", True)
    holders = [house for house in houses if "ann" in house.users]
    assert len(holders) == 1
    row = await town.database.read(TYPE, "ann")
    assert row is not None
    assert (row.owner, row.epoch) == (record.owner, record.epoch)
    for house in houses:
        seats = await town.bindings.binders(TYPE, house.owner)
        assert seats == (["ann"] if house in holders else []), "I5: no seat leaks"
    return holders[0].owner.server_id


# -- the target says no


async def test_load_that_fails_at_the_target_returns_the_user_to_the_same_session(town: Town) -> None:
    a, b = await two(town, Broken)
    session = a.host.sessions["ann"]

    [[_, outcome, why, _, _]] = await a.move(b, "ann")

    assert (outcome, why) == ("returned", "REFUSED: the user's state could not be loaded")
    assert a.host.sessions["ann"] is session
    assert (b.users, a.host.residence.counts["lost"]) == ([], 0)
    assert await goes_on(town, a, b) == "501"


async def test_another_state_than_the_source_wrote_returns_the_user(town: Town) -> None:
    a, b = await two(town)

    def other_digest(peer: Peer) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            parts = msgspec.msgpack.decode(payload)
            parts[6] = digest_of(b"something else")
            return await peer.call(service, method, msgspec.msgpack.encode(parts), **more)

        return call

    via(a, other_digest)
    [[_, outcome, why, _, _]] = await a.move(b, "ann")

    assert outcome == "returned"
    assert "another state" in why
    assert await goes_on(town, a, b) == "501"


async def test_r4_a_revision_that_the_source_did_not_write_returns_the_user(town: Town) -> None:
    """The row was written by somebody the source does not know of: what B would load is not A's state."""
    a, b = await two(town)
    session = a.host.sessions["ann"]

    def writes_late(peer: Peer) -> Any:
        async def call(*args: Any, **more: Any) -> Answer:
            late = Flush(TYPE, "ann", session.epoch, session.unsaved.revision + 1, b"2", 2)
            await town.database.flush(late)
            return await peer.call(*args, **more)

        return call

    via(a, writes_late)
    [[_, outcome, why, _, _]] = await a.move(b, "ann")

    assert outcome == "gone", "R2: the row is not as the source wrote it"
    assert "revision" in why
    assert await goes_on(town, a, b) == "501"


async def test_r6_a_target_whose_lease_lapsed_takes_nobody(town: Town) -> None:
    a, b = await two(town)
    b.lapse()

    [[_, outcome, why, _, _]] = await a.move(b, "ann")

    assert outcome == "returned"
    assert "lease" in why
    assert (b.users, (await town.database.read(TYPE, "ann")).owner) == ([], a.owner)  # type: ignore[union-attr]
    assert await goes_on(town, a, b) == "501"


async def test_a_full_target_takes_nobody(town: Town) -> None:
    a = await town.open("501", Lazy)
    b = await town.open("502", Lazy, capacity=1)
    await town.bind("bob", b)
    await b.result("bob")
    await town.bind("ann", a)
    await a.result("ann")

    [[_, outcome, why, _, _]] = await a.move(b, "ann")

    assert (outcome, why) == ("returned", "the target takes nobody: all full")
    assert await a.result("ann", sequence=2) == 2


async def test_a_target_with_an_old_session_refuses_and_doubts_it(town: Town) -> None:
    a, b = await two(town)
    assert await a.outcome(b, "ann") == "moved"
    stale = b.host.sessions["ann"]
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    b.lapse()  # so that it does not notice
    await town.bindings.release(TYPE, "ann", b.owner, record.epoch)
    await town.bind("ann", a)
    row = await town.database.read(TYPE, "ann")
    assert row is not None
    await town.database.release(TYPE, "ann", b.owner, row.epoch)
    assert await a.result("ann", sequence=3) == 3
    await b.beat()

    assert await a.outcome(b, "ann") == "returned"
    await eventually(lambda: stale.has_ended)

    assert await a.result("ann", sequence=4) == 4
    assert await a.outcome(b, "ann") == "moved"
    assert await b.result("ann", sequence=5) == 5


# -- the target does not answer


async def test_a_target_that_is_dead_returns_the_user_within_the_budget(town: Town) -> None:
    a, b = await two(town)
    await b.crash()

    [[_, outcome, _, phases, _]] = await a.move(b, "ann", maxBlockMs=BLOCK_MS)

    assert outcome == "returned"
    assert phases["total"] < BLOCK_MS + 500
    assert await a.result("ann", sequence=3) == 3


async def test_i9_a_target_that_hangs_returns_the_user_within_the_budget(town: Town) -> None:
    a, b = await two(town)
    b.host.database = faulty(town.database, claim=hangs)

    [[_, outcome, _, phases, _]] = await a.move(b, "ann", maxBlockMs=BLOCK_MS)

    assert outcome == "returned"
    assert phases["total"] < BLOCK_MS + 500
    assert await a.result("ann", sequence=3) == 3


class Prompt(Lazy):
    durability: ClassVar[Durability] = WriteBack(ms=10)


async def test_nothing_is_written_while_the_user_is_on_the_move(town: Town) -> None:
    """A change by a task of the class, after the last write: it would fence the target, or be fenced."""
    a, b = await two(town, Prompt)
    asked, go = asyncio.Event(), asyncio.Event()

    async def claim(*args: Any, **more: Any) -> Any:
        asked.set()
        await go.wait()
        return await town.database.claim(*args, **more)

    b.host.database = faulty(town.database, claim=claim)
    moving = asyncio.create_task(a.move(b, "ann"))
    await asked.wait()
    session, written = a.host.sessions["ann"], a.host.flusher.counts["saved"]
    session.entity.changed()
    await eventually(lambda: not session.unsaved.is_queued)
    await asyncio.sleep(0.03)
    assert a.host.flusher.counts["saved"] == written
    go.set()

    [[_, outcome, *_]] = await moving
    assert outcome == "moved"
    assert a.host.flusher.counts["fenced"] == 0
    assert await b.result("ann", sequence=3) == 3


async def test_a_move_that_cannot_be_written_returns_the_user(town: Town) -> None:
    shaky = faulty(town.database)
    a, b = await two(town, database=shaky)
    shaky.flush_many = fails

    [[_, outcome, _, phases, _]] = await a.move(b, "ann", maxBlockMs=BLOCK_MS, quiesceMs=50)

    assert outcome == "returned"
    assert phases["total"] < BLOCK_MS + 500
    del shaky.flush_many
    assert await goes_on(town, a, b) == "501"


# -- answers are lost


async def test_the_answer_of_the_freeze_is_lost(town: Town) -> None:
    a, b = await two(town)
    a.host.bindings = faulty(town.bindings, freeze=loses_answer(town.bindings.freeze))

    assert await a.outcome(b, "ann") == "returned"
    assert await goes_on(town, a, b) == "501"


@pytest.mark.parametrize("entity", [Lazy, Journaled])
async def test_the_answer_of_the_offer_is_lost_and_the_map_says_that_it_was_taken(
    town: Town, entity: type[Counter]
) -> None:
    a, b = await two(town, entity)
    via(a, lambda peer: loses_answer(peer.call, OutcomeUnknown))

    assert await a.outcome(b, "ann") == "moved"
    assert a.users == []
    assert await goes_on(town, a, b) == "502"


async def test_the_answer_of_the_commit_is_lost_and_it_is_sent_again(town: Town) -> None:
    a, b = await two(town)
    lost = 0

    async def commit(*args: Any) -> Any:
        nonlocal lost
        found = await town.bindings.commit(*args)
        lost += 1
        if lost == 1:
            raise Unavailable("the answer was lost")
        return found

    b.host.bindings = faulty(town.bindings, commit=commit)
    assert await a.outcome(b, "ann") == "moved"
    assert lost == 2
    assert await goes_on(town, a, b) == "502"


async def test_the_target_never_learns_whether_it_committed(town: Town) -> None:
    a, b = await two(town)
    b.host.bindings = faulty(town.bindings, commit=loses_answer(town.bindings.commit))

    assert await a.outcome(b, "ann") == "moved", "the map says so"
    b.host.bindings = town.bindings
    assert await goes_on(town, a, b) == "502"


async def test_the_source_cannot_find_out_and_does_before_it_serves_again(town: Town) -> None:
    a, b = await two(town)
    b.host.database = faulty(town.database, claim=fails)
    a.host.database = faulty(town.database, claim=loses_answer(town.database.claim))

    assert await a.outcome(b, "ann") == "returned"
    a.host.database = b.host.database = town.database
    assert await goes_on(town, a, b) == "501"


async def test_what_is_not_written_outlives_a_claim_whose_answer_was_lost(town: Town) -> None:
    """The row is ours under an epoch of which nobody told us: a write under the old one would be refused."""
    shaky = faulty(town.database)
    a, b = await two(town, database=shaky)
    shaky.flush_many, shaky.claim = fails, loses_answer(town.database.claim)

    assert await a.outcome(b, "ann", maxBlockMs=100, quiesceMs=20) == "returned"
    del shaky.flush_many, shaky.claim
    await a.host.flusher.save_soon(a.host.sessions["ann"], 1)

    assert a.host.residence.counts["lost"] == 0
    assert await goes_on(town, a, b) == "501"


# -- late ones


async def test_r1_r5_a_late_offer_of_a_move_that_went_back_changes_nothing(town: Town) -> None:
    a, b = await two(town)
    offers: list[bytes] = []

    def keeps(peer: Peer) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            offers.append(payload)
            raise OutcomeUnknown("lost on its way")

        return call

    via(a, keeps)
    assert await a.outcome(b, "ann") == "returned"
    assert await a.result("ann", sequence=3) == 3

    peer = Peer(*b.address, secret=SECRET, role="entity")
    late = await peer.call(ENTITY, ACCEPT, offers[0], budget_ms=5000)
    await peer.close()

    assert late.code is Code.REFUSED
    assert await a.result("ann", sequence=4) == 4
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert record.owner == a.owner


async def test_r1_a_failover_loses_the_freeze_and_the_source_serves_under_a_new_epoch(town: Town) -> None:
    """Else B's late claim by the old epoch would fence A, and what A acknowledged since would be gone."""
    a, b = await two(town)
    before = a.host.sessions["ann"].epoch
    offers: list[bytes] = []

    def forgets(peer: Peer) -> Any:
        async def call(service: int, method: int, payload: bytes, **more: Any) -> Answer:
            offers.append(payload)
            key = b"bind:user:{b0}:entity:ann"
            [key] = await town.store.call("KEYS", "*user*entity:ann", key=key)
            await town.store.call("HSET", key, "st", "A", key=key)
            await town.store.call("HDEL", key, "d", "dl", "ne", "m", "dt", key=key)
            raise OutcomeUnknown("no answer")

        return call

    via(a, forgets)
    assert await a.outcome(b, "ann") == "returned"
    assert a.host.sessions["ann"].epoch > before
    assert await a.result("ann", sequence=3) == 3

    peer = Peer(*b.address, secret=SECRET, role="entity")
    late = await peer.call(ENTITY, ACCEPT, offers[0], budget_ms=5000)
    await peer.close()
    assert late.code is Code.REFUSED
    await a.host.flusher.save_soon(a.host.sessions["ann"], 5)
    assert await a.result("ann", sequence=4) == 4
    assert a.host.residence.counts["lost"] == 0


async def test_r2_a_failover_loses_the_commit_and_the_source_takes_nothing_back(town: Town) -> None:
    """The map says A, the row B, who has acknowledged: A throws its memory away, and the map is repaired."""
    a, b = await two(town)
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None

    def loses_commit(peer: Peer) -> Any:
        async def call(*args: Any, **more: Any) -> Answer:
            await peer.call(*args, **more)
            assert await b.result("ann", sequence=3) == 3
            await _rewrite(town, "ann", a.owner, record.epoch)
            raise OutcomeUnknown("no answer")

        return call

    via(a, loses_commit)
    assert await a.outcome(b, "ann", maxBlockMs=2000) == "gone"
    assert (a.users, b.users) == ([], ["ann"])

    gate = Gate(town, a, b)
    assert [await gate.count("ann", n) for n in (4, 5)] == [4, 5]
    assert await b.host.bindings.binders(TYPE, b.owner) == ["ann"]


async def _rewrite(town: Town, user: str, owner: Owner, epoch: int) -> None:
    """The map has gone back to this."""
    [key] = await town.store.call("KEYS", f"*user*entity:{user}", key=b"")
    fields = ("s", owner.server_id, "l", owner.life, "e", epoch, "st", "A", "why", "new")
    await town.store.call("HSET", key, *fields, key=key)


async def test_a_commit_that_a_failover_lost_is_said_again_by_the_target(town: Town) -> None:
    a, b = await two(town)
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert await a.outcome(b, "ann") == "moved"
    await _rewrite(town, "ann", a.owner, record.epoch)

    await b.host.healer.reassert_all()

    assert await goes_on_at(town, b, a) == [3, 4]


async def test_r3_a_commit_that_a_failover_lost_is_claimed_again_by_a_target_that_lapsed(town: Town) -> None:
    """The map has gone back to the source, the row is the target's: the user stays where they play."""
    a, b = await two(town)
    record = await town.bindings.read(TYPE, "ann")
    assert record is not None
    assert await a.outcome(b, "ann") == "moved"
    await _rewrite(town, "ann", a.owner, record.epoch)
    b.lapse()
    await b.beat()

    assert await b.result("ann", sequence=3) == 3
    assert b.host.residence.counts["lost"] == 0
    assert await b.host.bindings.binders(TYPE, b.owner) == ["ann"]
    assert await goes_on_at(town, b, a) == [3, 4]


async def goes_on_at(town: Town, *houses: House) -> list[int]:
    gate = Gate(town, *houses)
    found = [await gate.count("ann", n) for n in (3, 4)]
    assert houses[0].users == ["ann"]
    return found


# -- the source dies, or lapses


async def test_the_source_lapses_during_the_move_and_comes_back(town: Town) -> None:
    a, b = await two(town)

    def lapses(peer: Peer) -> Any:
        async def call(*args: Any, **more: Any) -> Answer:
            a.lapse()
            raise OutcomeUnknown("no answer")

        return call

    via(a, lapses)
    assert await a.outcome(b, "ann") == "returned"
    refused = await a.ask("ann", "up", 3)
    assert refused.code is Code.MOVED, "it has no lease"
    await a.beat()
    assert await goes_on(town, a, b) == "501"


async def test_a_source_that_lapsed_before_the_move_claims_the_user_anew_and_moves_them(town: Town) -> None:
    """A message would have it claim anew; of one who says nothing a drain would wait for ever."""
    a, b = await two(town)
    a.lapse()
    await a.beat()

    assert await a.outcome(b, "ann") == "moved"
    assert await goes_on_at(town, b, a) == [3, 4]


async def test_a_source_that_lapsed_and_lost_the_user_meanwhile_lets_go_when_it_is_to_move_them(
    town: Town,
) -> None:
    a, b = await two(town)
    c = await town.open("503", Lazy)
    a.lapse()
    await town.bury(a)
    await town.bind("ann", c)
    await c.result("ann", sequence=3, oldest=3)
    a.lease.renewed(a.clock.now(), 6000)  # as if the store had not ended it

    assert await a.outcome(b, "ann") == "gone"
    assert (a.users, b.users, c.users) == ([], [], ["ann"])


async def test_a_source_without_a_lease_is_asked_again_later(town: Town) -> None:
    a, b = await two(town)
    a.lapse()

    assert await a.outcome(b, "ann") == "later"
    assert a.users == ["ann"]


@pytest.mark.parametrize("entity", [Lazy, Journaled])
@pytest.mark.parametrize("step", ["freeze", "flush", "accepted"])
async def test_i6_the_source_dies_and_any_reader_resolves_the_mark(
    town: Town, entity: type[Counter], step: str
) -> None:
    """Nothing is lost: the state was written before the freeze, or the journal has what was not."""
    a, b = await two(town, entity)
    if entity is Journaled:
        a.host.flusher.save_soon = nothing  # type: ignore[method-assign]
    died = asyncio.Event()

    async def dies(*args: Any, **more: Any) -> Any:
        died.set()
        await asyncio.Event().wait()

    async def dies_after(*args: Any, **more: Any) -> Any:
        await town.bindings.freeze(*args, **more)
        await dies()

    if step == "freeze":
        a.host.bindings = faulty(town.bindings, freeze=dies_after)
    elif step == "flush":
        a.host.flusher.save_in_turn = dies  # type: ignore[method-assign]
    else:
        via(a, lambda peer: dies)
    moving = asyncio.create_task(a.move(b, "ann", markMs=100))
    moving.add_done_callback(lambda done: done.cancelled() or done.exception())
    await died.wait()
    await a.crash()
    await town.bury(a)
    await b.beat()

    gate = Gate(town, b)
    assert await gate.count("ann", 3) == 3
    assert b.users == ["ann"]


@pytest.mark.parametrize("entity", [Lazy, Journaled])
async def test_the_target_dies_after_the_commit_and_another_takes_over(
    town: Town, entity: type[Counter]
) -> None:
    a, b = await two(town, entity)
    assert await a.outcome(b, "ann") == "moved"
    await b.result("ann", sequence=3)
    await b.crash()
    await town.bury(b)

    gate = Gate(town, a)
    assert await gate.count("ann", 4) == (4 if entity is Journaled else 3)


async def test_a_row_that_the_target_claimed_before_it_died_blocks_the_user_until_it_is_buried(
    town: Town,
) -> None:
    """R2's price: the source cannot know whether the target served."""
    a, b = await two(town)
    b.host.bindings = faulty(town.bindings, commit=hangs)

    [[_, outcome, *_]] = await a.move(b, "ann", maxBlockMs=BLOCK_MS)
    assert outcome == "gone"
    await b.crash()
    await town.bury(b)
    gate = Gate(town, a)
    assert await gate.count("ann", 3) == 3


# -- who may ask


@pytest.mark.parametrize("method", [4, 7, 8, 9])
async def test_only_managers_move_survey_and_retire(town: Town, method: int) -> None:
    a = await town.open("501")
    for role in ("gate", "entity", "client"):
        async with peer_of(a, role) as peer:
            answer = await peer.call(ENTITY, method, msgspec.msgpack.encode([TYPE]), budget_ms=5000)
        assert answer.code is Code.UNAUTHENTICATED


@pytest.mark.parametrize("method", [ACCEPT, COMMIT])
async def test_only_entity_servers_hand_users_over(town: Town, method: int) -> None:
    a = await town.open("501")
    for role in ("gate", "manager"):
        async with peer_of(a, role) as peer:
            answer = await peer.call(ENTITY, method, msgspec.msgpack.encode([TYPE]), budget_ms=5000)
        assert answer.code is Code.UNAUTHENTICATED


@asynccontextmanager
async def peer_of(house: House, role: str) -> AsyncIterator[Peer]:
    peer = Peer(*house.address, secret=SECRET, role=role)
    try:
        yield peer
    finally:
        await peer.close()


GOOD = [TYPE, "ann", "m1", 1, 2, 0, b"d" * 16, ["501", "1"], "", {}, 0, False]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (1, "a{n}"),
        (1, ""),
        (2, "m 1"),
        (3, 3),
        (4, 2**60),
        (5, -1),
        (6, b"short"),
        (7, ["501", "x"]),
        (10, -1),
    ],
)
async def test_an_offer_that_cannot_be_right_is_refused(town: Town, at: int, value: Any) -> None:
    a = await town.open("501")
    bad = [*GOOD[:at], value, *GOOD[at + 1 :]]
    async with peer_of(a, "entity") as peer:
        answer = await peer.call(ENTITY, ACCEPT, msgspec.msgpack.encode(bad), budget_ms=5000)
        nonsense = await peer.call(ENTITY, ACCEPT, b"\xc1", budget_ms=5000)
    assert (answer.code, nonsense.code) == (Code.BAD_REQUEST, Code.BAD_REQUEST)
    assert a.users == []


async def test_a_commit_of_nobody_is_refused(town: Town) -> None:
    a = await town.open("501")
    async with peer_of(a, "entity") as peer:
        payload = msgspec.msgpack.encode([TYPE, "ann", "m1", 5])
        assert (await peer.call(ENTITY, COMMIT, payload, budget_ms=5000)).code is Code.REFUSED


async def test_a_frozen_user_is_given_back_by_whoever_asks_after_the_mark(town: Town) -> None:
    a, b = await two(town)
    epoch = a.host.sessions["ann"].epoch
    frozen = await town.bindings.freeze(TYPE, "ann", a.owner, epoch, "m", b.owner, ttl_ms=30)
    assert isinstance(frozen, Frozen)

    gate = Gate(town, a, b)
    assert await gate.count("ann", 3) == 3
    assert a.host.sessions["ann"].epoch > frozen.epoch
