"""G12: a blip does not cost the place, the position never rises, an expired ticket returns to the front."""

from __future__ import annotations

import heapq
import random

import pytest

from roost.core.passes import MOVED_BACK
from roost.store.store import Store
from roost.testing import RunningServer
from roost.waitingroom.scripts import Admitted, NoPlace, Offered, ServerFull, ServerUnknown, Waiting
from tests.store.examples import SEEDS, for_each
from tests.store.waitingroom.world import (
    GONE_MS,
    LATE_MS,
    MS,
    REBUILD_MS,
    SECOND,
    T0,
    TICKET_MS,
    World,
    invariants,
)

POLL_MS = 2000
HOUR = 3600 * SECOND


# -- tickets that end


async def test_g12_an_expired_ticket_returns_its_holder_to_the_front(any_world: World) -> None:
    world = any_world
    await world.waits("ann")
    await world.waits("bob")
    await world.report(cap=1)
    await world.tick()
    await world.pass_ms(TICKET_MS - 1000, polling=["ann", "bob"])

    [ticked] = await world.pass_ms(1000, polling=["ann", "bob"])

    assert ticked.expired == 1
    assert await world.line_of() == ["ann", "bob"]
    assert await world.rank("ann") == 1
    await invariants(world)


@pytest.mark.parametrize("age_ms", [0, GONE_MS * 2])
async def test_g12_who_never_stood_in_the_line_has_a_place_after_the_ticket(
    world: World, age_ms: int
) -> None:
    """They got the ticket at once and never asked; the age of the world is no silence of theirs."""
    await world.pass_ms(age_ms, step_ms=2000)
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.waits("bob")

    await world.pass_ms(TICKET_MS, polling=["bob"])

    assert await world.line_of("away") == ["ann"]
    back = await world.status("ann")
    assert isinstance(back, Waiting)
    assert (back.seq, back.rank) == (ticket.seq, 1)


async def test_g12_who_let_a_ticket_end_is_gone_only_after_a_silence_of_its_own(world: World) -> None:
    world.ticket_ms = GONE_MS + 10_000
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.pass_ms(world.ticket_ms, step_ms=2000)
    ticked = await world.pass_ms(GONE_MS, step_ms=2000)
    assert sum(tick.gone for tick in ticked) == 0
    [last] = await world.pass_ms(1)
    assert last.gone == 1


async def test_g12_a_no_show_is_not_given_the_next_ticket_before_they_are_there_again(world: World) -> None:
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.waits("bob")
    await world.pass_ms(TICKET_MS, issue=1, polling=["bob"])
    assert await world.promoted() == ["ann", "bob"]


async def test_g12_a_full_server_makes_no_no_show(world: World) -> None:
    world.forfeit = 1
    await world.report("s1", cap=1, n=1)
    await world.report("s2", cap=1)
    ticket = await world.gets_ticket("ann")
    assert await world.consume("ann", ticket.tid, "s1") == ServerFull()

    await world.pass_ms(TICKET_MS)

    assert isinstance(await world.status("ann"), Waiting)
    assert (await invariants(world)).number("no_shows") == 0


async def test_g12_a_server_that_is_not_known_makes_no_no_show(world: World) -> None:
    world.forfeit = 1
    await world.report("s1", cap=1)
    ticket = await world.gets_ticket("ann")
    await world.drop("s1")
    assert await world.consume("ann", ticket.tid, "s1") == ServerUnknown()
    await world.pass_ms(TICKET_MS)
    assert isinstance(await world.status("ann"), Waiting)


async def test_g12_a_hand_off_that_failed_makes_no_no_show(world: World) -> None:
    world.forfeit = 1
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    await world.waits("bob")
    await world.goes_in("ann")
    await world.release("ann", "failed")
    await world.report(cap=1, n=0, k=1)
    assert (await world.tick(1)).issued == 1
    found = await world.status("ann")
    assert isinstance(found, Offered)
    assert found.seq == ticket.seq
    assert (await invariants(world)).number("no_shows") == 0


async def test_g12_the_second_no_show_costs_the_place_where_it_is_so_decided(world: World) -> None:
    world.forfeit = 2
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS, polling=["ann"])
    assert isinstance(await world.status("ann"), Waiting)
    await world.tick(1)
    await world.pass_ms(TICKET_MS, polling=["ann"])
    assert await world.status("ann") == NoPlace("no-show")
    assert (await invariants(world)).number("no_shows") == 2


async def test_g12_whoever_got_in_begins_anew_with_no_shows(world: World) -> None:
    world.forfeit = 2
    await world.report(cap=1)
    await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS, polling=["ann"])
    await world.tick(1)
    await world.goes_in("ann")
    await world.release("ann", "dropped")
    await world.gets_ticket("ann")
    await world.pass_ms(TICKET_MS, polling=["ann"])
    assert isinstance(await world.status("ann"), Waiting)


async def test_g12_without_a_rule_no_number_of_no_shows_costs_the_place(world: World) -> None:
    await world.report(cap=1)
    ticket = await world.gets_ticket("ann")
    for _ in range(5):
        await world.pass_ms(TICKET_MS, polling=["ann"], step_ms=2000)
        await world.tick(1)
    found = await world.status("ann")
    assert isinstance(found, Offered)
    assert found.seq == ticket.seq


# -- silence


async def test_g12_who_asks_when_told_is_never_away(world: World) -> None:
    users = await world.crowd(130)
    await world.report(cap=1000)
    due = [(world.now, user) for user in users]
    told: set[int] = set()
    for _ in range(45):
        tick_at = world.now + SECOND
        while due and due[0][0] <= tick_at:
            world.now, user = heapq.heappop(due)
            found = await world.status(user)
            if isinstance(found, Waiting):
                assert found.was_away == 0
                told.add(found.poll_ms)
                heapq.heappush(due, (world.now + found.poll_ms * MS, user))
        world.now = tick_at
        await world.tick(1)
        assert await world.line_of("away") == []
    assert len(told) > 2
    assert await world.promoted() == users[:45]


async def test_g12_a_little_late_is_there_and_a_little_later_is_away(world: World) -> None:
    await world.waits("ann")
    await world.pass_ms(POLL_MS + LATE_MS)
    assert await world.line_of() == ["ann"]
    await world.pass_ms(1)
    assert (await world.line_of(), await world.line_of("away")) == ([], ["ann"])


async def test_g12_a_long_silence_keeps_the_place_and_a_longer_one_loses_it(world: World) -> None:
    place = await world.waits("ann")
    await world.waits("bob")
    await world.pass_ms(POLL_MS + GONE_MS, step_ms=2000)
    back = await world.status("ann")
    assert isinstance(back, Waiting)
    assert (back.seq, back.was_away) == (place.seq, 1)
    await world.pass_ms(1)
    assert await world.status("bob") == NoPlace("gone")
    await invariants(world)


async def test_g12_a_ghost_that_returns_stands_at_the_front_once(world: World) -> None:
    await world.crowd(4)
    await world.pass_ms(3000 + LATE_MS, polling=["u00002", "u00003"])
    await world.report(cap=1)
    await world.tick(1)
    assert await world.promoted() == ["u00002"]

    for _ in range(3):
        assert await world.rank("u00001") == 1
        await world.enter("u00001")
        await world.touch("u00001")

    assert await world.line_of() == ["u00001", "u00003"]
    await world.report(cap=3)
    await world.tick(2)
    assert await world.promoted() == ["u00002", "u00001", "u00003"]
    await invariants(world)


async def test_g12_five_thousand_ghosts_hide_nobody_and_no_tick_looks_at_all_of_them(world: World) -> None:
    await world.crowd(5000)
    await world.waits("ann")
    await world.pass_ms(31_000 + LATE_MS, polling=["ann"], scan_limit=1)
    await world.report(cap=1)
    ghosts = len(await world.line_of()) - 1
    assert ghosts > 4900

    ticks = 0
    while True:
        ticks += 1
        ticked = await world.tick(1, scan_limit=1000)
        left = len(await world.line_of())
        assert ghosts - left <= 1000 + 250 + 1
        ghosts = left
        if not ticked.more:
            break

    assert ticks <= 6
    assert await world.promoted() == ["ann"]
    await invariants(world)


# -- order


async def test_g12_the_base_line_goes_on_while_the_other_is_endless(two_lines: World) -> None:
    world = two_lines
    base = await world.crowd(200, "b")
    for at in range(20):
        await world.crowd(20, f"v{at}-", line=":vip")
        await world.touch(*base, poll_ms=60_000)
        await world.report(cap=10 * (at + 1), number=at + 1)
        world.now += SECOND
        assert (await world.tick(10)).issued == 10
    served = await world.promoted()
    assert abs(sum(user.startswith("b") for user in served) - 150) <= 2
    assert [user for user in served if user.startswith("b")] == base[: len(served) * 3 // 4]


class Line:
    """People who come, ask, fall silent and leave, and what they were told."""

    USERS = tuple(f"u{number:02}" for number in range(12))

    def __init__(self, store: Store) -> None:
        self.world = World(store, weights={":vip": 1, "": 2}, ticket_ms=10_000)
        self.shown: dict[tuple[str, int], int] = {}
        self.inside: set[str] = set()

    def told(self, user: str, found: object) -> None:
        if isinstance(found, Waiting):
            assert found.rank <= self.shown.get((user, found.seq), found.rank), f"{user} moved back"
            self.shown[user, found.seq] = found.rank

    async def enter(self, rng: random.Random) -> None:
        user = rng.choice(self.USERS)
        before = await invariants(self.world)
        found = await self.world.enter(user, line=rng.choice(["", ":vip"]))
        self.told(user, found)
        if isinstance(found, Offered) and user not in before.offers.keys() | before.grace.keys():
            assert not any(before.waiting.values()), f"{user} passed a line"

    async def ask(self, rng: random.Random) -> None:
        for user in rng.sample(self.USERS, 4):
            self.told(user, await self.world.status(user))

    async def leave(self, rng: random.Random) -> None:
        await self.world.leave(rng.choice(self.USERS))

    async def go_in(self, rng: random.Random) -> None:
        state = await invariants(self.world)
        if state.offers:
            user = rng.choice(sorted(state.offers))
            if isinstance(await self.world.consume(user, state.people[user]["tid"]), Admitted):
                self.inside.add(user)

    async def come_out(self, rng: random.Random) -> None:
        if self.inside:
            user = rng.choice(sorted(self.inside))
            self.inside.remove(user)
            await self.world.release(user, rng.choice(["clean", "dropped", "failed"]), grace_ms=5_000)

    async def report(self, rng: random.Random) -> None:
        """A server without a gap, on which there is sometimes room."""
        row = (await invariants(self.world)).servers.get("s1")
        people = len(self.inside)
        await self.world.report(cap=people + rng.randint(0, 4), n=people, k=row.consumed if row else 0)

    async def tick(self, rng: random.Random) -> None:
        for _ in range(rng.randint(1, 4)):
            self.world.now += rng.choice([0, 1, 2]) * SECOND
            before = await invariants(self.world)
            await self.world.tick(rng.choice([1, 3]), scan_limit=rng.choice([5, 40]))
            after = await invariants(self.world)
            for line, waiting in after.waiting.items():
                fresh = [
                    int(after.people[user]["seq"])
                    for user in after.offers.keys() - before.offers.keys()
                    if after.people[user].get("line", "") == line
                ]
                assert not fresh or max(fresh) < min(waiting.values(), default=max(fresh) + 1), (
                    "somebody who was there was overtaken"
                )


HOW_OFTEN = {
    Line.enter: 5,
    Line.ask: 5,
    Line.leave: 1,
    Line.go_in: 2,
    Line.come_out: 2,
    Line.report: 2,
    Line.tick: 5,
}
STEPS = [step for step, times in HOW_OFTEN.items() for _ in range(times)]


def test_g12_nobody_who_is_there_is_overtaken_and_no_position_rises(server: RunningServer) -> None:
    async def live_through(store: Store, rng: random.Random) -> None:
        line = Line(store)
        await line.world.tick(0)
        for _ in range(60):
            await rng.choice(STEPS)(line, rng)
        await invariants(line.world)

    for_each(server, SEEDS, live_through, examples=25)


async def test_g12_the_position_does_not_rise_when_those_before_come_back(world: World) -> None:
    await world.crowd(10)
    await world.pass_ms(3000 + LATE_MS, polling=["u00009"])
    assert await world.rank("u00009") == 1
    for number in range(9):
        await world.status(f"u{number:05}")
    assert await world.rank("u00009") == 1
    assert (await world.line_of()).index("u00009") == 9


async def test_g12_the_position_does_not_rise_after_a_hand_off_that_failed(world: World) -> None:
    users = await world.crowd(3)
    await world.report(cap=2)
    await world.tick()
    assert await world.rank(users[2]) == 1
    await world.report(cap=3)
    await world.tick()
    await world.goes_in(users[2])
    await world.pass_ms(TICKET_MS, polling=users[:2])
    assert await world.line_of() == users[:2]

    await world.release(users[2], "failed")

    assert await world.rank(users[2]) == 1
    assert await world.line_of() == users


# -- time


@pytest.mark.parametrize("jump_us", [HOUR, -HOUR])
async def test_g12_a_clock_that_jumps_costs_nobody_anything(world: World, jump_us: int) -> None:
    await world.report(cap=3)
    ticket = await world.gets_ticket("ann")
    await world.gets_ticket("bob")
    await world.goes_in("bob")
    await world.release("bob", "dropped")
    await world.mode("queue-all")
    place = await world.waits("cid")

    for _ in range(2):
        world.now += jump_us
        await world.tick(0)

    assert isinstance(await world.status("ann"), Offered)
    assert isinstance(await world.enter("bob"), Offered)
    found = await world.status("cid")
    assert isinstance(found, Waiting)
    assert (found.seq, found.was_away) == (place.seq, 0)
    assert (await world.waits("dan")).seq > place.seq
    await world.goes_in("ann")
    assert (await invariants(world)).number("expired") == 0
    assert ticket.seq < place.seq


async def test_g12_a_store_that_was_away_costs_nobody_anything(world: World) -> None:
    users = await world.crowd(5)
    world.now += 24 * HOUR
    await world.tick(0)
    assert await world.line_of() == users


# -- receipts


async def test_g12_after_a_wipe_the_receipts_restore_the_order(any_world: World) -> None:
    world = any_world
    born = await world.number("born")
    seqs = {user: (await world.waits(user)).seq for user in ("ann", "bob", "cid")}
    await world.wiped()
    world.now += 10 * SECOND
    await world.tick(0)

    assert (await world.waits("new")).seq > max(seqs.values())
    for user in ("cid", "ann", "bob"):
        restored = await world.waits(user, receipt=(seqs[user], born))
        assert restored.seq == seqs[user] - MOVED_BACK

    assert await world.line_of() == ["ann", "bob", "cid", "new"]
    await invariants(world)


async def test_g12_after_a_wipe_nobody_is_admitted_before_others_could_show_their_receipts(
    world: World,
) -> None:
    born = await world.number("born")
    first, second = await world.waits("ann"), await world.waits("bob")
    await world.wiped()
    world.now += SECOND
    await world.report(cap=1)
    await world.tick(0)
    await world.waits("bob", receipt=(second.seq, born))
    assert (await world.tick()).issued == 0
    await world.waits("ann", receipt=(first.seq, born))

    await world.pass_ms(REBUILD_MS // 4, polling=["ann", "bob"], issue=1)

    assert await world.promoted() == ["ann"]


async def test_g12_a_receipt_of_the_world_before_is_honoured_only_while_this_one_is_young(
    world: World,
) -> None:
    born = await world.number("born")
    place = await world.waits("ann")
    await world.wiped()
    world.now += SECOND
    await world.tick(0)
    await world.pass_ms(REBUILD_MS, step_ms=2000)
    assert (await world.waits("ann", receipt=(place.seq, born))).seq > place.seq


@pytest.mark.parametrize(
    ("confirmed_before_birth_ms", "is_restored"), [(1_200_000, True), (3_700_000, False)]
)
async def test_g12_after_a_wipe_a_place_counts_that_was_confirmed_within_an_hour_before_the_birth(
    world: World, confirmed_before_birth_ms: int, is_restored: bool
) -> None:
    """Three hours far back, an outage of 20 minutes, a wipe: the order is kept. An older receipt is none."""
    born = await world.number("born")
    place = await world.waits("ann")
    await world.wiped()
    world.now += 3 * 3600 * SECOND
    await world.tick(0)
    world.now += 30 * SECOND
    newer = await world.waits("new")

    age_ms = confirmed_before_birth_ms + 30_000
    again = await world.waits("ann", receipt=(place.seq, born), receipt_age_ms=age_ms)

    assert (again.seq < newer.seq) is is_restored


async def test_g12_a_draw_and_a_wipe_keep_the_drawn_order(world: World) -> None:
    """Lots lie up to an hour ahead of the clock: also then they stand before whoever comes new."""
    born = await world.number("born")
    await world.mode(opens_at=str(world.now + 60 * SECOND), seed="s")
    users = [f"u{number}" for number in range(20)]
    drawn = {user: (await world.waits(user)).seq for user in users}
    await world.wiped()
    world.now += 90 * SECOND
    await world.tick(0)
    await world.waits("new")

    for user in users:
        await world.waits(user, receipt=(drawn[user], born))

    assert await world.line_of() == [*sorted(users, key=drawn.__getitem__), "new"]


async def test_g12_the_order_outlasts_several_wipes_whoever_was_heard_between_them(world: World) -> None:
    first_born = await world.number("born")
    places = {user: await world.waits(user) for user in ("ann", "bob")}
    await world.wiped()
    world.now += SECOND
    await world.tick(0)
    second_born = await world.number("born")
    restored = await world.waits("bob", receipt=(places["bob"].seq, first_born))
    cids = await world.waits("cid")
    await world.wiped()
    world.now += SECOND
    await world.tick(0)

    await world.waits("bob", receipt=(restored.seq, second_born))
    await world.waits("cid", receipt=(cids.seq, second_born))
    await world.waits("ann", receipt=(places["ann"].seq, first_born))

    assert await world.line_of() == ["ann", "bob", "cid"]


async def test_g12_a_silence_of_gateways_does_not_shorten_the_wait_for_receipts(world: World) -> None:
    born = await world.number("born")
    place = await world.waits("ann")
    await world.wiped()
    world.now += SECOND
    await world.report(cap=5)
    await world.tick(0)
    world.now += 11 * SECOND
    await world.tick(0)  # the gateways are back: people have a moment to be heard again
    await world.pass_ms(LATE_MS + 3000)
    await world.waits("ann", receipt=(place.seq, born), receipt_age_ms=30_000)
    assert (await world.tick()).issued == 0
    await world.pass_ms(REBUILD_MS // 4, polling=["ann"], issue=1)
    assert await world.promoted() == ["ann"]


async def test_g12_a_store_whose_clock_was_set_back_after_the_wipe_still_takes_receipts(world: World) -> None:
    born = await world.number("born")
    place = await world.waits("ann")
    await world.wiped()
    world.now += SECOND
    await world.tick(0)
    world.now -= 7200 * SECOND
    newer = await world.waits("new")
    assert (await world.waits("ann", receipt=(place.seq, born), receipt_age_ms=60_000)).seq < newer.seq


async def test_g12_a_receipt_does_not_bring_back_who_left(world: World) -> None:
    born = await world.number("born")
    place = await world.waits("ann")
    await world.waits("bob")
    await world.leave("ann")
    again = await world.waits("ann", receipt=(place.seq, born))
    assert (again.seq > place.seq, again.rank) == (True, 2)


async def test_g12_a_receipt_of_the_world_before_does_not_bring_back_who_left_this_one(world: World) -> None:
    born = await world.number("born")
    place = await world.waits("ann")
    await world.wiped()
    world.now += SECOND
    await world.tick(0)
    await world.waits("ann", receipt=(place.seq, born))
    await world.leave("ann")
    assert (await world.waits("ann", receipt=(place.seq, born))).seq > place.seq


async def test_g12_a_receipt_of_a_world_to_come_is_worth_nothing(world: World) -> None:
    born = await world.number("born")
    assert (await world.waits("ann", receipt=(5, born + 1))).seq == born + 1
    assert (await world.waits("bob", receipt=(born + 500, born + 7))).seq == born + 2


async def test_g12_a_receipt_above_all_that_the_store_knows_lifts_its_sequence(world: World) -> None:
    born = await world.number("born")
    restored = await world.waits("ann", receipt=(born + 50, born))
    assert restored.seq == born + 50
    assert (await world.waits("bob")).seq == born + 51


async def test_g12_places_that_the_store_forgot_come_back_in_whatever_order(world: World) -> None:
    born = await world.number("born")
    users = await world.crowd(6)
    seqs = {user: int((await world.person(user))["seq"]) for user in users}
    await world.forgets(*users[3:])
    await world.loses("seq", seqs[users[2]])

    for user in (users[5], users[3], users[4]):
        assert (await world.waits(user, receipt=(seqs[user], born))).seq == seqs[user]

    assert await world.line_of() == users
    assert (await world.waits("new")).seq == seqs[users[5]] + 1
    await invariants(world)


async def test_g12_whom_a_crash_threw_out_stands_before_who_came_later(world: World) -> None:
    await world.report("s1", cap=2)
    for user in ("ann", "bob"):
        await world.gets_ticket(user)
        await world.goes_in(user)
    await world.waits("cid")
    await world.drop("s1", count=1)

    await world.waits("bob")
    await world.waits("ann")

    assert await world.line_of() == ["ann", "bob", "cid"]
    await world.drop("s1")
    await invariants(world)


async def forget(world: World, *users: str) -> None:
    """What a failover does to the last writes: their entries never happened, later ones did."""
    for user in users:
        await world.store.call("DEL", world.key("people") + user.encode())
        await world.store.call("ZREM", world.key("waiting"), user)


async def test_g12_whom_the_store_forgot_their_receipt_brings_back_though_others_came_since(
    world: World,
) -> None:
    first = await world.waits("ann")
    second = await world.waits("bob")
    born = int((await world.numbers())["born"])
    await forget(world, "ann", "bob")
    world.now += SECOND
    await world.waits("carl")
    world.now += SECOND
    assert (await world.waits("bob", receipt=(second.seq, born))).seq == second.seq
    assert (await world.waits("ann", receipt=(first.seq, born))).seq == first.seq
    assert await world.store.call("ZRANGE", world.key("waiting"), 0, -1) == [b"ann", b"bob", b"carl"]


async def test_an_old_receipt_brings_nobody_back_who_has_left(world: World) -> None:
    place = await world.waits("ann")
    born = int((await world.numbers())["born"])
    await forget(world, "ann")  # as if the ten minutes for which they are known had passed
    world.now += 600 * SECOND
    again = await world.waits("ann", receipt=(place.seq, born), receipt_age_ms=600_000)
    assert again.seq > place.seq


async def test_numbers_follow_the_clock_and_never_go_back(world: World) -> None:
    seqs = []
    for user, step in (("a", 0), ("b", 5 * SECOND), ("c", -3600 * SECOND), ("d", 1)):
        world.now += step
        seqs.append((await world.waits(user)).seq)
    assert seqs == sorted(set(seqs))
    assert seqs[1] == T0 + 5 * SECOND
