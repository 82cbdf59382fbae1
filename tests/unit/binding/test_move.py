"""Every phase of a move by every event: the table of `binding/move.py`, and of `arrival.py`, cell by cell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.binding import arrival as there
from roost.binding import protocol as p
from roost.binding.arrival import Arrival, ArrivalPhase, Offer, arrive, receive
from roost.binding.move import ATTEMPTS, Move, Phase, begin, step
from roost.binding.party import orders
from roost.binding.protocol import End, Terms, Then
from roost.core.owner import Owner

ME, TARGET, OTHER = Owner("501", "1"), Owner("502", "2"), Owner("503", "3")
TERMS = Terms(ME, TARGET, "m1", max_block_s=1.0, quiesce_s=1.0, mark_s=3.0)
E, NE, E2 = 10, 20, 30
EVENTS: dict[str, p.Event] = {
    "preflushed": p.Preflushed(),
    "turn": p.Turn(E),
    "no turn": p.NoTurn("busy"),
    "ended": p.NoTurn("not here", gone=True),
    "willing": p.Willing(),
    "in a party": p.Willing("red"),
    "later": p.Unwilling("later", "", 100),
    "pinned": p.Unwilling("pinned", "a duel"),
    "go": p.Go(),
    "recall": p.Recall("another failed"),
    "frozen": p.Frozen(NE),
    "not frozen": p.NotFrozen("full"),
    "saved": p.Saved(7, b"d"),
    "not saved": p.NotSaved("away"),
    "accepted": p.Accepted(),
    "refused": p.Refused("no"),
    "renewed": p.Renewed(E2),
    "map: target": p.Elsewhere(TARGET, NE),
    "map: target, renewed": p.Elsewhere(TARGET, NE + 5),
    "map: target, of old": p.Elsewhere(TARGET, NE - 5),
    "map: me": p.Elsewhere(ME, NE),
    "map: nobody": p.Elsewhere(None, 0),
    "map: other": p.Elsewhere(OTHER, NE + 5),
    "claimed": p.Claimed(),
    "row: mine": p.RowRefused(ME, E + 1, 7),
    "row: given back": p.RowRefused(None, NE, 7),
    "row: given back, written": p.RowRefused(None, NE, 8),
    "row: released": p.RowRefused(None, NE + 1, 7),
    "row: target": p.RowRefused(TARGET, NE, 7),
    "no answer": p.NoAnswer("lost"),
}
MOVES: dict[Phase, Move] = {
    Phase.PREFLUSH: Move(TERMS),
    Phase.QUIESCE: Move(TERMS, phase=Phase.QUIESCE),
    Phase.ASK: Move(TERMS, E, Phase.ASK, until=1.0),
    Phase.READY: Move(TERMS._replace(hold=True), E, Phase.READY, until=1.0),
    Phase.FREEZE: Move(TERMS, E, Phase.FREEZE, until=1.0, mark_until=3.0),
    Phase.FLUSH: Move(TERMS, E, Phase.FLUSH, until=1.0, mark_until=3.0, next_epoch=NE),
}
MOVES[Phase.ACCEPT] = MOVES[Phase.FLUSH]._replace(phase=Phase.ACCEPT, revision=7, digest=b"d")
MOVES[Phase.HELD] = MOVES[Phase.ACCEPT]._replace(phase=Phase.HELD, terms=TERMS._replace(hold=True))
MOVES[Phase.COMMIT] = MOVES[Phase.HELD]._replace(phase=Phase.COMMIT, has_committed=True)
MOVES[Phase.RECALL] = MOVES[Phase.HELD]._replace(phase=Phase.RECALL, why="another failed")
MOVES[Phase.RENEW] = MOVES[Phase.ACCEPT]._replace(phase=Phase.RENEW, why="lost", judged=E, attempts=1)
MOVES[Phase.CLAIM] = MOVES[Phase.RENEW]._replace(phase=Phase.CLAIM, renewed=E2)
MOVES[Phase.ENDED] = MOVES[Phase.RENEW]._replace(phase=Phase.ENDED, outcome="returned")

Cell = Phase | tuple[str, Then]
BACK, DOUBT = Phase.RENEW, ("returned", Then.DOUBT)
TABLE: dict[Phase, dict[str, Cell]] = {
    Phase.PREFLUSH: {"preflushed": Phase.QUIESCE},
    Phase.QUIESCE: {
        "turn": Phase.ASK,
        "no turn": ("later", Then.STAY),
        "ended": ("gone", Then.STAY),
    },
    Phase.ASK: {
        "willing": Phase.FREEZE,
        "in a party": ("later", Then.STAY),
        "later": ("later", Then.STAY),
        "pinned": ("pinned", Then.STAY),
    },
    Phase.READY: {"go": Phase.FREEZE, "recall": ("later", Then.STAY)},
    Phase.FREEZE: {"frozen": Phase.FLUSH, "not frozen": BACK, "no answer": BACK},
    Phase.FLUSH: {"saved": Phase.ACCEPT, "not saved": BACK},
    Phase.ACCEPT: {"accepted": ("moved", Then.DROP), "refused": BACK, "no answer": BACK},
    Phase.HELD: {"go": Phase.COMMIT, "recall": Phase.RECALL},
    Phase.COMMIT: {"accepted": ("moved", Then.DROP), "refused": BACK, "no answer": Phase.COMMIT},
    Phase.RECALL: {"accepted": BACK, "refused": BACK, "no answer": BACK},
    Phase.RENEW: {
        "renewed": Phase.CLAIM,
        "map: target": ("moved", Then.DROP),
        "map: target, renewed": ("moved", Then.DROP),
        "map: target, of old": ("gone", Then.LEAVE),
        "map: me": DOUBT,
        "map: nobody": DOUBT,
        "map: other": ("gone", Then.LEAVE),
        "no answer": DOUBT,
    },
    Phase.CLAIM: {
        "claimed": ("returned", Then.SERVE),
        "row: mine": BACK,
        "row: given back": Phase.CLAIM,
        "row: given back, written": ("gone", Then.DROP),
        "row: released": ("gone", Then.DROP),
        "row: target": ("gone", Then.DROP),
        "no answer": DOUBT,
    },
    Phase.ENDED: {},
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("phase", Phase)
def test_every_phase_by_every_event(phase: Phase, event: str) -> None:
    expected = TABLE[phase].get(event)
    if expected is None:
        with pytest.raises(ValueError, match="expects no"):
            step(MOVES[phase], EVENTS[event], 0.0)
        return
    move, action = step(MOVES[phase], EVENTS[event], 0.0)
    if isinstance(expected, Phase):
        assert move.phase is expected
        assert not isinstance(action, End)
    else:
        assert isinstance(action, End)
        assert (action.outcome, action.then) == expected
        assert (move.phase, move.outcome) == (Phase.ENDED, expected[0])
    hash(move)
    hash(action)


def test_a_move_from_the_first_step_to_the_last() -> None:
    move, action = begin(TERMS)
    actions = [type(action).__name__]
    for event in ("preflushed", "turn", "willing", "frozen", "saved", "accepted"):
        move, action = step(move, EVENTS[event], 0.0)
        actions.append(type(action).__name__)
    assert actions == ["Preflush", "TakeTurn", "Ask", "Freeze", "Flush", "Accept", "End"]
    assert action == End("moved", "", Then.DROP, NE)


def test_r1_after_an_attempt_to_freeze_it_goes_back_above_all_that_was_promised() -> None:
    _, unknown = step(MOVES[Phase.FREEZE], p.NoAnswer("lost"), 0.0)
    _, refused = step(MOVES[Phase.ACCEPT], p.Refused("no"), 0.0)
    assert isinstance(unknown, p.Renew)
    assert isinstance(refused, p.Renew)
    assert (unknown.above, refused.above) == (E, NE)


def test_r2_the_row_is_claimed_by_the_epoch_from_before_the_move() -> None:
    _, action = step(MOVES[Phase.RENEW], p.Renewed(E2), 0.0)
    assert isinstance(action, p.Claim)
    assert (action.epoch, action.judged) == (E2, E)


def test_a_row_that_the_target_gave_back_is_claimed_by_what_it_was_promised() -> None:
    _, action = step(MOVES[Phase.CLAIM], p.RowRefused(None, NE, 7), 0.0)
    assert isinstance(action, p.Claim)
    assert (action.epoch, action.judged) == (E2, NE)


@pytest.mark.parametrize("phase", [Phase.FREEZE, Phase.FLUSH])
def test_over_its_time_a_move_goes_back(phase: Phase) -> None:
    event = EVENTS["frozen" if phase is Phase.FREEZE else "saved"]
    assert step(MOVES[phase], event, 1.01)[0].phase is Phase.RENEW


def test_nobody_is_frozen_when_no_time_is_left() -> None:
    _, action = step(MOVES[Phase.READY], p.Go(), 0.9)
    assert isinstance(action, End)
    assert (action.outcome, action.then) == ("later", Then.STAY)


def test_every_phase_has_a_budget_within_the_whole() -> None:
    _, freeze = step(MOVES[Phase.ASK], p.Willing(), 0.0)
    _, flush = step(MOVES[Phase.FREEZE], p.Frozen(NE), 0.25)
    _, accept = step(MOVES[Phase.FLUSH], p.Saved(7, b"d"), 0.5)
    assert isinstance(freeze, p.Freeze)
    assert isinstance(flush, p.Flush)
    assert isinstance(accept, p.Accept)
    assert (freeze.within_s, flush.within_s, accept.within_s) == (0.5, 0.5, 0.5)


def test_force_goes_on_whatever_the_class_says() -> None:
    forced = MOVES[Phase.ASK]._replace(terms=TERMS._replace(force=True))
    for said in ("later", "pinned", "in a party"):
        assert step(forced, EVENTS[said], 0.0)[0].phase is Phase.FREEZE


def test_a_commit_is_repeated_until_the_mark_is_over() -> None:
    assert step(MOVES[Phase.COMMIT], p.NoAnswer("lost"), 2.9)[0].phase is Phase.COMMIT
    assert step(MOVES[Phase.COMMIT], p.NoAnswer("lost"), 3.0)[0].phase is Phase.RENEW


def test_going_back_ends_in_doubt_where_the_row_changes_for_ever() -> None:
    move, action = MOVES[Phase.RENEW], p.Renew(0, 0.0)
    for n in range(2 * ATTEMPTS):
        move, action = step(move, p.Renewed(E2 + 10 * n + 5), 0.0)  # type: ignore[assignment]
        move, action = step(move, p.RowRefused(ME, E2 + 10 * n, 7), 0.0)  # type: ignore[assignment]
        if isinstance(action, End):
            break
    assert isinstance(action, End)
    assert action.then is Then.DOUBT


@given(st.lists(st.sampled_from(list(EVENTS)), max_size=60), st.floats(0, 5))
def test_whatever_comes_it_ends_and_never_stays_as_it_was_after_an_attempt_to_freeze(
    names: list[str], now: float
) -> None:
    move, action = begin(TERMS)
    has_tried = False
    for name in names:
        if EVENTS[name] is EVENTS["no answer"] and isinstance(action, End):
            break
        try:
            move, action = step(move, EVENTS[name], now)
        except ValueError:
            continue
        has_tried = has_tried or isinstance(action, p.Freeze)
        assert move.attempts <= ATTEMPTS
    if has_tried and isinstance(action, End):
        assert action.then is not Then.STAY


# -- parties


def held(*phases: Phase) -> list[Move]:
    return [MOVES[phase]._replace(terms=TERMS._replace(hold=True)) for phase in phases]


def told(moves: list[Move], now: float = 0.0) -> list[tuple[int, str]]:
    return [(at, type(order).__name__) for at, order in orders(moves, now)]


def test_a_party_waits_until_everybody_is_so_far() -> None:
    assert told(held(Phase.READY, Phase.QUIESCE)) == []
    assert told(held(Phase.READY, Phase.READY)) == [(0, "Go"), (1, "Go")]
    assert told(held(Phase.HELD, Phase.ACCEPT)) == []
    assert told(held(Phase.HELD, Phase.HELD)) == [(0, "Go")], "one commits first"
    assert told(held(Phase.COMMIT, Phase.HELD)) == []


def test_before_the_first_commit_one_failure_recalls_all() -> None:
    for failed in (Phase.RENEW, Phase.CLAIM, Phase.RECALL, Phase.ENDED):
        assert told(held(Phase.HELD, failed, Phase.READY)) == [(0, "Recall"), (2, "Recall")]
    assert told(held(Phase.HELD, Phase.HELD), 1.5) == [(0, "Recall"), (1, "Recall")]


def test_a_commit_of_which_nobody_knows_holds_the_others_until_it_is_known() -> None:
    undecided = MOVES[Phase.RENEW]._replace(has_committed=True)
    assert told([undecided, *held(Phase.HELD)], 9.0) == []
    moved = undecided._replace(phase=Phase.ENDED, outcome="moved")
    assert told([moved, *held(Phase.HELD, Phase.HELD)], 9.0) == [(1, "Go"), (2, "Go")]
    returned = undecided._replace(phase=Phase.ENDED, outcome="returned")
    assert told([returned, *held(Phase.HELD)]) == [(1, "Recall")]


# -- the target

OFFER = Offer(TARGET, "m1", E, NE, 7, b"d")
CAME: dict[str, there.ArrivalEvent] = {
    "claimed": there.RowClaimed(7, b"d"),
    "claimed, older": there.RowClaimed(6, b"d"),
    "claimed, other": there.RowClaimed(7, b"x"),
    "claimed, unreadable": there.RowClaimed(7, b"d", "too new"),
    "taken": there.RowTaken(),
    "loaded": there.Loaded(),
    "not loaded": there.NotLoaded("raised"),
    "asked": there.CommitAsked(),
    "expired": there.Expired(),
    "committed": there.Committed(),
    "gone": there.Gone(),
    "undone": there.Undone(),
    "no answer": p.NoAnswer("lost"),
}
UNDO = ArrivalPhase.UNDO
ARRIVALS: dict[ArrivalPhase, dict[str, Any]] = {
    ArrivalPhase.CLAIM: {
        "claimed": ArrivalPhase.LOAD,
        "claimed, older": UNDO,
        "claimed, other": UNDO,
        "claimed, unreadable": UNDO,
        "taken": there.Refuse,
        "no answer": UNDO,
    },
    ArrivalPhase.LOAD: {"loaded": ArrivalPhase.COMMIT, "not loaded": UNDO},
    ArrivalPhase.HELD: {"asked": ArrivalPhase.COMMIT, "expired": UNDO},
    ArrivalPhase.COMMIT: {"committed": there.Opened, "gone": UNDO, "no answer": ArrivalPhase.COMMIT},
    ArrivalPhase.UNDO: {"undone": there.Refuse, "no answer": there.Refuse},
    ArrivalPhase.ENDED: {},
}


@pytest.mark.parametrize("event", CAME)
@pytest.mark.parametrize("phase", ArrivalPhase)
def test_every_phase_of_the_target_by_every_event(phase: ArrivalPhase, event: str) -> None:
    arrival = Arrival(OFFER, phase, why="why")
    expected = ARRIVALS[phase].get(event)
    if expected is None:
        with pytest.raises(ValueError, match="expects no"):
            receive(arrival, CAME[event])
        return
    found, action = receive(arrival, CAME[event])
    if isinstance(expected, ArrivalPhase):
        assert found.phase is expected
    else:
        assert isinstance(action, expected)
        assert found.phase is ArrivalPhase.ENDED
    hash(found)


def test_r5_the_target_claims_by_the_epoch_that_the_source_named() -> None:
    assert arrive(OFFER, "")[1] == there.ClaimRow(NE, E)


def test_r6_a_target_without_a_lease_claims_nothing() -> None:
    arrival, action = arrive(OFFER, "its lease is over")
    assert action == there.Refuse("its lease is over")
    assert arrival.phase is ArrivalPhase.ENDED


def test_who_is_held_waits_for_the_word() -> None:
    arrival, action = receive(Arrival(OFFER._replace(hold=True), ArrivalPhase.LOAD), there.Loaded())
    assert (arrival.phase, action) == (ArrivalPhase.HELD, there.Hold())


def test_a_commit_without_an_answer_is_repeated_and_then_undone() -> None:
    arrival, action = receive(Arrival(OFFER, ArrivalPhase.LOAD), there.Loaded())
    tries = 0
    while isinstance(action, there.CommitMap):
        tries += 1
        arrival, action = receive(arrival, p.NoAnswer("lost"))
    assert tries == there.COMMITS
    assert action == there.ReleaseRow(NE)
