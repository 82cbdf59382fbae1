"""Discovery's scripts against a small model: any order of calls, with the clock going anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    invariant,
    precondition,
    rule,
)

from roost.api.discovery import Override
from roost.core.lease import MAX_STEP_MS
from roost.discovery import scripts as answers
from roost.discovery.model import encode, instances_of
from roost.discovery.reaper import BUDGET_PERCENT, BUDGET_WINDOW_MS
from roost.discovery.service import CHECKER_TTL_MS
from roost.testing import RunningServer
from tests.store.discovery.fleet import (
    SECOND,
    T0,
    Fleet,
    Indexed,
    invariants,
)
from tests.store.examples import StoreMachine, run_machine

IDS = st.sampled_from(["a", "b", "c", "d"])
WHICH_LIFE = st.sampled_from(["none", "present", "present", "former", "later"])
STATUSES = st.sampled_from(["initializing", "ready", "draining"])
STEPS_US = st.sampled_from([0, 1_500, SECOND, SECOND, SECOND, 5 * SECOND, 3600 * SECOND, -7 * SECOND])


@dataclass
class Living:
    """What the model knows of a live instance."""

    service: str
    name: str
    capacity: int
    ttl_ms: int
    life: int
    nonce: str
    status: str
    load: int
    told: int
    due: float
    """Lease time at which it becomes suspect, or dead if it is."""
    silent: bool = False
    unhealthy: bool = False
    """By the votes of the checkers."""
    votes: dict[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> str:
        return "suspect" if self.silent or self.unhealthy else self.status


class Model:
    """The rules of the scripts once more, in the plainest way, without a store."""

    def __init__(self) -> None:
        self.now = T0
        self.clock_ms = 0
        self.ended_at: list[int] = []
        """Lease seconds of those that a sweep ended."""
        self.last_advance_us = T0
        self.last_life = 0
        self.live: dict[str, Living] = {}
        self.gone: dict[str, tuple[str, int]] = {}
        self.drained: set[str] = set()
        self.lives: dict[str, list[int]] = {}
        self.counts_until: dict[str, int] = {}
        self.told: list[tuple[str, str, int, str]] = []

    def tell(self, event: str, id_: str, status: str) -> None:
        self.told.append((event, id_, self.live[id_].life, status))

    def register(self, id_: str, fresh: Living, former: int | None) -> Any:
        known = self.live.get(id_)
        if former is not None:
            fresh.nonce = f"after {former}"
        if known and known.nonce == fresh.nonce:
            return answers.Registered(known.life)
        if former is not None:
            if known and known.life > former:
                return answers.Fenced(known.life)
            cause, life = self.gone.get(id_, ("no-response", 0))
            if cause != "no-response" and life >= former:
                return answers.Removed(cause)
        for other_id, other in self.live.items():
            if fresh.name and other.name == fresh.name and other_id != id_:
                ends = other.due + (0 if other.silent else other.ttl_ms / 2)
                return answers.Taken(other_id, max(0, -int(-(ends - self.clock_ms) // 1)))
        if known and (known.service, known.name, known.capacity) != (
            fresh.service,
            fresh.name,
            fresh.capacity,
        ):
            self.tell("removed", id_, "terminated")
        fresh.life = self.last_life = max(self.now, self.last_life + 1)
        fresh.due = self.clock_ms + fresh.ttl_ms / 2
        self.live[id_] = fresh
        self.gone.pop(id_, None)
        self.lives.setdefault(id_, []).append(fresh.life)
        self.tell("added", id_, fresh.status)
        return answers.Registered(fresh.life)

    @staticmethod
    def is_fenced(known: Living, life: int | None) -> bool:
        """Not of the life that registered again as the known one: it may not have heard the answer."""
        return life is not None and life < known.life and known.nonce != f"after {life}"

    def beat(self, id_: str, life: int | None, status: str | None, load: int | None, hangs: bool) -> Any:
        known = self.live.get(id_)
        if known is None:
            cause, ended = self.gone.get(id_, ("no-response", 0))
            if cause != "no-response" and (life is None or life <= ended):
                return answers.Removed(cause)
            return answers.Unknown()
        if self.is_fenced(known, life):
            return answers.Fenced(known.life)
        if life is not None and life != known.life:
            return answers.Unknown()
        if hangs:
            self.suspect(id_)
        else:
            self.renew(id_, known, status or known.status, known.load if load is None else load)
        return answers.Drain() if (known.name or id_) in self.drained else answers.Ok()

    def renew(self, id_: str, known: Living, status: str, load: int) -> None:
        fresh_due = self.clock_ms + known.ttl_ms / 2
        known.due = fresh_due if known.silent else max(known.due, fresh_due)
        step = max(1, (known.capacity or known.told) / 20)
        ends_suspicion = known.silent and not known.unhealthy
        filled = known.capacity and (load >= known.capacity) != (known.told >= known.capacity)
        news = ends_suspicion or status != known.status or filled or abs(load - known.told) >= step
        known.silent, known.status, known.load = False, status, load
        if news:
            known.told = load
            self.tell("changed", id_, known.seen)

    def suspect(self, id_: str) -> bool:
        known = self.live[id_]
        if known.silent:
            return False
        known.silent = True
        known.due += known.ttl_ms / 2
        if not known.unhealthy:
            self.tell("changed", id_, "suspect")
        return True

    def end(self, id_: str, cause: str) -> None:
        self.tell("removed", id_, cause)
        self.gone[id_] = (cause, self.live.pop(id_).life)

    def remove(self, id_: str, life: int | None, cause: str) -> Any:
        if id_ not in self.live:
            was, _ = self.gone.get(id_, ("no-response", 0))
            is_unknown = was == "no-response" and (cause != was or id_ not in self.gone)
            return answers.Unknown() if is_unknown else answers.Left()
        if self.is_fenced(self.live[id_], life):
            return answers.Fenced(self.live[id_].life)
        self.end(id_, cause)
        return answers.Left()

    def end_silent(self, id_: str, life: int) -> Any:
        known = self.live.get(id_)
        if known is None or known.life != life or not known.silent:
            return answers.Alive()
        self.end(id_, "no-response")
        return answers.Ended()

    def sweep(self, found: answers.Swept) -> None:
        """Time, suspicion and the number of deaths are the model's; who of the many dies is the script's."""
        step_ms = (self.now - self.last_advance_us) // 1000
        if 0 <= step_ms <= MAX_STEP_MS:
            self.last_advance_us += step_ms * 1000
        else:
            self.last_advance_us = self.now
        self.clock_ms += max(0, min(step_ms, MAX_STEP_MS))
        due = sorted(
            (known.due, id_.encode(), id_) for id_, known in self.live.items() if known.due <= self.clock_ms
        )
        counts_from = self.clock_ms - BUDGET_WINDOW_MS - 1000
        spent = sum(second * 1000 > counts_from for second in self.ended_at)
        budget = max(1, (len(self.live) + spent) * BUDGET_PERCENT // 100) - spent
        suspected = [id_ for *_, id_ in due if not self.live[id_].silent]
        over = {id_ for *_, id_ in due} - set(suspected)
        assert found.clock_ms == self.clock_ms
        assert found.suspected == suspected
        assert len(found.ended) == min(len(over), max(0, budget))
        self.ended_at += [self.clock_ms // 1000] * len(found.ended)
        assert sorted(found.ended + found.held) == sorted(over)
        for id_ in suspected:
            self.suspect(id_)
        for id_ in found.ended:
            self.end(id_, "no-response")
        for id_ in found.held:
            self.live[id_].due = self.clock_ms + self.live[id_].ttl_ms

    def vote(
        self, checker: str, named: set[tuple[str, int]], finding: str, leaves: bool
    ) -> tuple[list[str], set[str]]:
        """Live checkers, and those of whom the script tells a turn, in whatever order."""
        self.counts_until[checker] = -1 if leaves else self.clock_ms + CHECKER_TTL_MS
        for silent in [c for c, until in self.counts_until.items() if until < self.clock_ms]:
            del self.counts_until[silent]
        live, turned = sorted(self.counts_until), set()
        for id_, life in () if leaves else named:
            if self.lives_as(id_, life):
                known, before = self.live[id_], self.live[id_].seen
                known.votes = {who: found for who, found in known.votes.items() if who in live}
                known.votes |= {checker: finding}
                for side in ("unhealthy", "healthy"):
                    if sum(known.votes.get(who) == side for who in live) * 2 > len(live):
                        known.unhealthy = side == "unhealthy"
                if known.seen != before:
                    turned.add(id_)
        return live, turned

    def lives_as(self, id_: str, life: int) -> bool:
        return id_ in self.live and self.live[id_].life == life

    def which(self, id_: str, which: str) -> int | None:
        """A life as a caller may name it."""
        lives = self.lives.get(id_, [T0 - 1])
        if which == "none":
            return None
        if which == "former":
            return lives[-2] if len(lives) > 1 else lives[-1] - 1
        return lives[-1] + (which == "later")


class Discovered(StoreMachine):
    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        self.fleet = Fleet(self.store)
        self.model = Model()
        self.nonces = 0
        self.last: tuple[str, dict[str, Any]] | None = None
        self.model.sweep(self.do(self.fleet.sweep()))

    @rule(
        id_=IDS,
        type_=st.sampled_from(["game", "gate"]),
        group=st.sampled_from(["eu", "us"]),
        server_id=st.sampled_from(["", "501", "502"]),
        status=STATUSES,
        load=st.integers(0, 60),
        capacity=st.sampled_from([0, 40]),
        ttl_s=st.sampled_from([3, 10]),
        former=WHICH_LIFE,
    )
    def register(
        self,
        id_: str,
        type_: str,
        group: str,
        server_id: str,
        status: str,
        load: int,
        capacity: int,
        ttl_s: int,
        former: str,
    ) -> None:
        self.nonces += 1
        self.last = (
            id_,
            {
                "type": type_,
                "group": group,
                "server_id": server_id,
                "status": status,
                "load": load,
                "capacity": capacity,
                "ttl_s": ttl_s,
                "nonce": f"m{self.nonces}",
                "former_life": self.model.which(id_, former),
            },
        )
        self.register_once_more()

    @precondition(lambda self: self.last is not None)
    @rule()
    def register_once_more(self) -> None:
        """The reply was lost, and the same attempt comes again."""
        assert self.last is not None
        id_, given = self.last
        former = given["former_life"]
        name = f"{given['type']}:{given['server_id']}" if given["server_id"] else ""
        fresh = Living(
            f"{given['type']}:{given['group']}",
            name,
            given["capacity"],
            given["ttl_s"] * 1000,
            0,
            given["nonce"],
            given["status"],
            given["load"],
            given["load"],
            0.0,
        )
        expected = self.model.register(id_, fresh, former)
        answer = self.do(
            self.fleet.register(id_, **{**given, "former_life": "" if former is None else former})
        )
        assert answer == expected

    @rule(
        id_=IDS,
        which=WHICH_LIFE,
        status=st.none() | STATUSES,
        load=st.none() | st.integers(0, 60),
        hangs=st.sampled_from([False, False, False, True]),
    )
    def beat(self, id_: str, which: str, status: str | None, load: int | None, hangs: bool) -> None:
        life = self.model.which(id_, which)
        expected = self.model.beat(id_, life, status, load, hangs)
        answer = self.do(
            self.fleet.beat(
                id_,
                "" if life is None else life,
                status=status or "",
                load="" if load is None else load,
                tick_age_ms=10_000 if hangs else 0,
            )
        )
        assert answer == expected

    @rule(id_=IDS, which=WHICH_LIFE, cause=st.sampled_from(["terminated", "removed"]))
    def remove(self, id_: str, which: str, cause: str) -> None:
        life = self.model.which(id_, which)
        expected = self.model.remove(id_, life, cause)
        answer = self.do(self.fleet.remove(id_, "" if life is None else life, cause=cause))
        assert answer == expected

    @rule(id_=IDS, which=WHICH_LIFE)
    def end_silent(self, id_: str, which: str) -> None:
        life = self.model.which(id_, which) or 1
        expected = self.model.end_silent(id_, life)
        assert self.do(self.fleet.end_silent(id_, life)) == expected

    @rule(
        checker=st.sampled_from(["x", "y", "z"]),
        ids=st.sets(st.tuples(IDS, st.sampled_from(["present", "present", "former", "later"]))),
        finding=st.sampled_from(["unhealthy", "unhealthy", "healthy", "none"]),
        leaves=st.sampled_from([False, False, False, True]),
    )
    def vote(self, checker: str, ids: set[tuple[str, str]], finding: str, leaves: bool) -> None:
        named = {(id_, self.model.which(id_, which) or 1) for id_, which in ids}
        live, turned = self.model.vote(checker, named, finding, leaves)
        ttl_ms = 0 if leaves else CHECKER_TTL_MS
        votes = () if leaves else sorted(named)
        assert self.do(self.fleet.vote(checker, *votes, finding=finding, ttl_ms=ttl_ms)) == live
        told = self.do(self.fleet.told())[len(self.model.told) :]
        assert sorted(id_ for _, id_, _ in told) == sorted(turned)
        for _, id_, _ in told:
            self.model.tell("changed", id_, self.model.live[id_].seen)

    @rule(id_=IDS, drain=st.booleans())
    def order(self, id_: str, drain: bool) -> None:
        known = self.model.live.get(id_)
        word = "drain" if drain else "lifted"
        answer = self.do(self.fleet.override(id_, encode(Override(drain=True)) if drain else b"", word))
        if known is None:
            assert answer == answers.Unknown()
            return
        name = known.name or id_
        (self.model.drained.add if drain else self.model.drained.discard)(name)
        self.model.tell("changed", id_, word)
        assert answer == answers.Overridden(name)

    @rule(step_us=STEPS_US, sweeps=st.integers(1, 4))
    def time_passes(self, step_us: int, sweeps: int) -> None:
        for _ in range(sweeps):
            self.model.now += step_us
            self.fleet.now = self.model.now
            self.model.sweep(self.do(self.fleet.sweep()))

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        self.do(self.compare())

    async def compare(self) -> None:
        model = self.model
        state = await invariants(self.store)
        assert state.index == {
            id_: Indexed(known.service, known.life, known.name, known.ttl_ms, known.capacity)
            for id_, known in model.live.items()
        }
        assert state.leases == {id_: known.due for id_, known in model.live.items()}
        tombs = {id_: tomb.split("\t")[:2] for id_, tomb in state.gone.items()}
        assert tombs == {id_: [cause, str(life)] for id_, (cause, life) in model.gone.items()}
        told = [
            (e.fields["event"], e.fields["id"], int(e.fields["life"]), e.fields["status"])
            for e in state.feed
            if e.fields["event"] != "panic"
        ]
        assert told == model.told
        snapshot = await self.fleet.snapshot()
        assert snapshot.rev == len(state.feed)
        seen = {
            i.instance_id: (
                f"{i.type}:{i.group}",
                int(i.life),
                i.status,
                i.unhealthy,
                i.load,
                i.override is not None,
            )
            for i in instances_of(snapshot)
        }
        assert seen == {
            id_: (
                known.service,
                known.life,
                known.seen,
                known.unhealthy,
                known.load,
                (known.name or id_) in model.drained,
            )
            for id_, known in model.live.items()
        }


@pytest.mark.timeout(400)
def test_whatever_happens_in_whatever_order_the_store_is_as_the_model_says(server: RunningServer) -> None:
    run_machine(Discovered, server)
