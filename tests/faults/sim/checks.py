"""The invariants of a run, looked at while it goes and at its end."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from roost.sdk.entity import Journal, WriteBack
from roost.store.keys.binding import partition_keys

if TYPE_CHECKING:
    from tests.faults.sim.loop import Node
    from tests.faults.sim.processes import EntityNode
    from tests.faults.sim.town import Town

BLOCK_MS = 500 + 2 * 2000
"""What a move may take, and each of the two steps of going back."""


class Checks:
    def __init__(self, town: Town) -> None:
        self._town = town
        self.faults: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.spared: dict[str, set[int]] = {}
        """Numbers by user that may be lost: their server died, or lapsed, before it wrote them."""
        self._at_work: dict[str, Node] = {}

    def fault(self, what: str) -> None:
        self.faults.append(what)
        self._town.tell(f"FAULT: {what}")

    @contextlib.contextmanager
    def executes(self, user: str, node: Node | None, *, replayed: bool) -> Iterator[None]:
        """I1: nobody else does so meanwhile, unless they are dead, or their lease is over."""
        assert node is not None
        self._judge_epoch(user, node)
        self._judge_others(user, node)
        other = self._at_work.get(user)
        if other is not None and other is not node and other.alive and not self._town.has_lapsed(other):
            self.fault(f"I1: {other} and {node} execute for {user} at once")
        self._at_work[user] = node
        try:
            yield
        finally:
            if self._at_work.get(user) is node:
                del self._at_work[user]

    def _judge_epoch(self, user: str, node: Node) -> None:
        """I1, the other way round: whom the row has given to another, under a later epoch, nobody serves."""
        row, session = self._town.database.rows.get(user), self._town.session(user, node)
        if row is None or session is None or row.owner in (None, session.owner):
            return
        if row.epoch > session.epoch and self._town.is_up(row.owner):
            self.fault(
                f"I1: {node} executes for {user} under {session.epoch}, the row is {row.owner}@{row.epoch}"
            )

    def _judge_others(self, user: str, node: Node) -> None:
        """I1: nobody else would execute a message now without asking anybody."""
        for other in self._town.entities.values():
            if other is not node and other.alive and other.would_serve(user):
                self.fault(f"I1: {node} executes for {user}, and {other} would")

    def spare(self, node: EntityNode) -> None:
        """It dies, or lapses: what it has not written may be lost, as the class says."""
        durability = self._town.entity.durability
        may_lose = isinstance(durability, WriteBack) or (
            isinstance(durability, Journal) and self._town.failovers_planned
        )
        for user, numbers in node.unwritten().items() if may_lose else ():
            self.spared.setdefault(user, set()).update(numbers)

    def moved(self, outcome: str, phases: dict[str, float]) -> None:
        self.outcomes[outcome] += 1
        if phases.get("total", 0.0) > BLOCK_MS and not self._town.was_paused:
            self.fault(f"I9: a user was blocked for {phases['total']:.0f} ms")

    def leaves(self, node: EntityNode) -> None:
        """I10: nobody is here, and nothing is under way."""
        if node.host.sessions or node.host.mover.under_way:
            self.fault(f"I10: {node} leaves with {len(node.host.sessions)} users")

    # -- at the end

    def judge(self) -> list[str]:
        self.faults += self._town.database.faults
        for player in self._town.players:
            if player.unanswered:
                self.fault(f"I8: {player.user} has no answer to {sorted(player.unanswered)}")
            self._judge_list(player.user, player.results)
        self._judge_gates()
        self._judge_map()
        return self.faults

    def _judge_list(self, user: str, results: dict[int, int]) -> None:
        """I4, I5: each acknowledged one once, in order."""
        row = self._town.database.rows.get(user)
        kept = msgspec.msgpack.decode(row.state) if row is not None and row.state is not None else []
        spared = self.spared.get(user, set())
        if len(set(kept)) < len(kept):
            self.fault(f"I4: {user}: something was executed twice: {kept}")
        if kept != sorted(kept):
            self.fault(f"I5: {user}: out of order: {kept}")
        if lost := set(results) - set(kept) - spared:
            self.fault(f"I4: {user}: {sorted(lost)} acknowledged and lost; kept {kept}")
        if not spared and [results[number] for number in sorted(results)] != sorted(results):
            self.fault(f"I5: {user}: results {results}")

    def _judge_gates(self) -> None:
        """I8: what was taken was answered."""
        for gate in self._town.gates:
            open_ = sum(len(player.carrier.lane) for player in gate.clients.values())
            counts = gate.counts
            if gate.alive and counts.taken != counts.answered + sum(counts.refused.values()) + open_:
                self.fault(f"I8: {gate} took {counts.taken} and answered {counts.answered}")

    def _judge_map(self) -> None:
        """I6, I7: nobody is on the move; seats are those of the records."""
        ask, seats = self._town.valkey.command, Counter[str]()
        for key in ask("KEYS", "bind:binders:*"):
            for user in ask("ZRANGE", key, 0, -1):
                seats[f"{user.decode()} at {key.rpartition(b'}')[2].decode()}"] += 1
        held: Counter[str] = Counter()
        for player in self._town.players:
            record = self._record(player.user)
            if record.get(b"st") == b"M":
                self.fault(f"I6: {player.user} is on the move for ever: {record}")
            if record.get(b"s"):
                where = f"{record[b's'].decode()}:{record[b'l'].decode()}"
                held[f"{player.user} at {where}"] += 1
        if len(seats) != len(held) or not all(any(_fits(seat, one) for one in held) for seat in seats):
            self.fault(f"I7: seats {dict(seats)}, bindings {dict(held)}")

    def _record(self, user: str) -> dict[bytes, Any]:
        ask = self._town.valkey.command
        scope = self._town.bindings().partitions[0].scope
        key = partition_keys(self._town.store.keys, scope)["users"] + f"entity:{user}".encode()
        flat = ask("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2], strict=True))


def _fits(seat: str, held: str) -> bool:
    user, _, key = seat.partition(" at ")
    who, _, where = held.partition(" at ")
    return user == who and key.endswith(where)
