"""A whole order server against what may befall it, drawn by Hypothesis: the nine invariants of ordered work.

Owners crash before and after an append, sleep past their lease and write on, answers of the store are lost or
hang, machines fail, queues fill, clocks step, symbols move and workers change in number. One client sends
commands, again where it was told nothing, and keeps every answer.

1. per lane the executed numbers are those of the log, dense and rising
2. no cancel is executed before its order; no book is touched by two lanes
3. accepted + rejected = sent
4. what was answered is in the log; a replay comes to the state that was live
5. ids are unique and rise in each lane, over restarts and owners
6. after a takeover one epoch can append
7. one number of an account never gives two orders
8. a failure stops no lane and changes no order of others
9. an id leads to its lane under any number of workers

Each fault of a naive order server, put back, turns this red (`NAIVE` in tests/mutants/test_mutants.py).
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from roost.lanes.commands import (
    Amend,
    Cancel,
    Method,
    MoveIn,
    MoveOut,
    New,
    Outcome,
    Reason,
    Side,
    State,
    Turn,
    decode_command,
    decode_outcome,
)
from roost.lanes.ids import extract_lane, extract_shard
from roost.lanes.log import Logged
from roost.lanes.placement import Place
from roost.lanes.placing import Placements
from roost.lanes.selector import Spot
from roost.servers.orders import keeping
from roost.servers.orders.engine import Engine
from roost.servers.orders.relocation import Relocation
from roost.servers.orders.trading import Result
from roost.testing import RunningServer, open_store
from roost.wire.answer import Answer
from roost.wire.codes import Code
from roost.wire.pool import Pool
from tests.store.lanes.hall import Fault, Hall, HallPlacements

SYMBOLS = ("AAPL", "TSLA", "EURUSD", "7203")
ACCOUNTS = ("ann", "bob")
FAILING_PRICE = 13
TARGETS = (1, 2, 9)
FOREIGN = (10_000_000, 1_790_000_000_000, 1_790_000_000_000_000_000)
"""Ids of others: a counter, unix milliseconds, unix nanoseconds. Read as ours they name shards 6, 4 and 9."""
VECTORS = Path(__file__).parents[3] / "docs/lane-vectors.json"
Found = TypeVar("Found")


class FailingEngine(Engine):
    """Fails at orders of one price, live and in each replay."""

    def apply(self, turn: Turn, seq: int, method: int, lane: int, order_id: int, command: Any) -> Result:
        if method == Method.NEW and command.price == FAILING_PRICE:
            raise RuntimeError("for the test")
        return super().apply(turn, seq, method, lane, order_id, command)


def golden_spots() -> dict[str, Spot]:
    """Where the symbols are served until somebody moves them, as other languages read it."""
    places = {row["symbol"]: row["mixed"] for row in json.loads(VECTORS.read_text())["places"]}
    return {symbol: Spot(*map(int, places[symbol].split(":"))) for symbol in SYMBOLS}


class Sent(NamedTuple):
    method: int
    command: New | Cancel | Amend
    symbol: str


class OrderMachine(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.hall = self.run(self._open())
        self.shards = {cast(Place, self.hall.table.of(symbol)).shard for symbol in SYMBOLS} | set(TARGETS)
        self.count = 0
        self.number = 0
        self.moves = 0
        self.sent: dict[tuple[str, int], Sent] = {}
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.unknown: list[tuple[str, int]] = []
        """Commands whose outcome nobody has told."""
        self.server = self.run(self.hall.started("s0", wanted=self.shards, queue_limit=10))

    async def _open(self) -> Hall:
        store = await self.stack.enter_async_context(open_store(self.url))
        await store.call("FLUSHALL")
        return Hall(store)

    def run(self, work: Coroutine[Any, Any, Found]) -> Found:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    # -- the client

    def make(self, symbol: str, account: str, side: int, price: int, quantity: int) -> tuple[str, int]:
        self.number += 1
        command = New(account, self.number, 0, symbol, side, price, quantity)
        self.sent[account, self.number] = Sent(Method.NEW, command, symbol)
        return account, self.number

    async def ask(self, key: tuple[str, int]) -> Answer:
        sent = self.sent[key]
        answer = await self.server.ask(sent.method, sent.command)
        self.hear(key, answer)
        return answer

    def hear(self, key: tuple[str, int], answer: Answer) -> None:
        """Whatever is said of a command must agree with what was said before."""
        if answer.code == Code.DEADLINE:
            self.unknown.append(key)
        if answer.code:
            assert key not in self.outcomes or answer.code != Code.REFUSED, answer.message
            return
        outcome = decode_outcome(answer.payload)
        sent = self.sent[key]
        if outcome.reason in (Reason.FAILED, Reason.MOVED):
            fails = isinstance(sent.command, New) and sent.command.price == FAILING_PRICE
            assert fails or outcome.reason == Reason.MOVED, "it failed because of another one (8)"
            return  # not kept: it may be sent again
        assert self.outcomes.setdefault(key, outcome) == outcome, "another answer to the same number (7)"
        if sent.method == Method.NEW and outcome.state != State.REFUSED:
            at = (extract_shard(outcome.order_id), extract_lane(outcome.order_id))
            assert at == (outcome.shard, outcome.lane), "the id does not say its lane (9)"
        assert outcome.reason != Reason.UNKNOWN_ORDER, "a cancel overtook its order (2)"

    def orders(self) -> list[tuple[tuple[str, int], Outcome]]:
        return [
            (key, outcome)
            for key, outcome in self.outcomes.items()
            if self.sent[key].method == Method.NEW and outcome.order_id
        ]

    # -- rules

    @rule(
        symbol=st.sampled_from(SYMBOLS),
        account=st.sampled_from(ACCOUNTS),
        side=st.sampled_from([Side.BUY, Side.SELL]),
        price=st.sampled_from([9, 10, 11, FAILING_PRICE]),
        quantity=st.integers(1, 3),
    )
    def new(self, symbol: str, account: str, side: Side, price: int, quantity: int) -> None:
        answer = self.run(self.ask(self.make(symbol, account, side, price, quantity)))
        assert not answer.code or self.hall.time.skew_ms < 0, f"nothing is against it: {answer.message}"

    @precondition(lambda self: self.orders())
    @rule(data=st.data(), by_symbol=st.booleans(), amends=st.booleans())
    def change(self, data: st.DataObject, by_symbol: bool, amends: bool) -> None:
        (account, number), order = data.draw(st.sampled_from(self.orders()))
        symbol = self.sent[account, number].symbol
        self.number += 1
        named = (account, self.number, 0, order.order_id, symbol if by_symbol else "")
        if amends:
            sent = Sent(Method.AMEND, Amend(*named, data.draw(st.integers(9, 11)), 2), symbol)
        else:
            sent = Sent(Method.CANCEL, Cancel(*named), symbol)
        self.sent[account, self.number] = sent
        answer = self.run(self.ask((account, self.number)))
        assert not answer.code, f"it does not find its order: {answer.message} (9)"

    @rule(account=st.sampled_from(ACCOUNTS), order_id=st.sampled_from(FOREIGN))
    def cancel_of_another_system(self, account: str, order_id: int) -> None:
        self.number += 1
        bits = self.server.dispatch.counts["bits"]
        answer = self.run(self.server.ask(Method.CANCEL, Cancel(account, self.number, 0, order_id)))
        assert answer.code is Code.REFUSED, "the bits of a foreign id were believed (9)"
        assert self.server.dispatch.counts["bits"] == bits

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        self.run(self.ask(data.draw(st.sampled_from(sorted(self.sent)))))

    @rule(
        symbols=st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=2, unique=True),
        count=st.sampled_from([2, 7, 12, 24]),
        plan=st.lists(st.sampled_from(["new", "new", "new", "cancel", "fail"]), min_size=1, max_size=8),
        by_symbol=st.booleans(),
        hangs=st.booleans(),
    )
    def burst(self, symbols: list[str], count: int, plan: list[str], by_symbol: bool, hangs: bool) -> None:
        """More than a queue takes: each is answered, and those that are taken run in the order of sending.

        Some fail, and others cancel orders from before; the log may hang meanwhile.
        """
        steps = zip(range(count), cycle(plan), cycle(symbols), strict=False)
        keys = [self._planned(step, symbol, by_symbol) for _, step, symbol in steps]
        answers = self.run(self._all_at_once(keys, hangs))
        seqs: defaultdict[str, list[int]] = defaultdict(list)
        for key, answer in zip(keys, answers, strict=True):
            self.hear(key, answer)
            if not answer.code:
                seqs[self.sent[key].symbol].append(decode_outcome(answer.payload).seq)
        for taken in seqs.values():
            assert taken == sorted(set(taken)), "executed in another order than sent (1)"

    def _planned(self, step: str, symbol: str, by_symbol: bool) -> tuple[str, int]:
        of_symbol = [one for one in self.orders() if self.sent[one[0]].symbol == symbol]
        if step != "cancel" or not of_symbol:
            return self.make(symbol, "ann", Side.BUY, FAILING_PRICE if step == "fail" else 9, 1)
        (account, _), order = of_symbol[-1]
        self.number += 1
        command = Cancel(account, self.number, 0, order.order_id, symbol if by_symbol else "")
        self.sent[account, self.number] = Sent(Method.CANCEL, command, symbol)
        return account, self.number

    async def _all_at_once(self, keys: list[tuple[str, int]], hangs: bool) -> list[Answer]:
        server = self.server
        await server.quiet()
        if hangs:
            server.faults.appendleft("request waits")
        requests = [server.send(self.sent[key].method, self.sent[key].command) for key in keys]
        told = server.trader.answers
        if hangs:
            await self._a_while()
            early = [answer for request in requests for answer in told[request] if not answer.code]
            assert not early, "answered before it was in the log (4)"
            server.logs.appends.go_on()
        await server.quiet()
        assert all(len(told[request]) == 1 for request in requests), "sent is not accepted + rejected (3)"
        return [told[request][0] for request in requests]

    @rule(fault=st.sampled_from(["request lost", "answer lost"]))
    def lose_a_call(self, fault: Fault) -> None:
        self.server.faults.append(fault)

    @rule(milliseconds=st.sampled_from([-10_000, -1_000, -1, 0, 1_000, 4_000]))
    def step_the_clock(self, milliseconds: int) -> None:
        self.hall.time.skew_ms = milliseconds

    @rule()
    def renew(self) -> None:
        self.run(self.hall.pass_s(1))
        self.run(self.server.ownership.step())

    @rule()
    def snapshot(self) -> None:
        self.run(self.server.quiet())
        self.run(self.server.snapshot())

    @rule()
    def check_the_state(self) -> None:
        """Into every log: each replay from now on compares itself there."""
        for shard in self.server.host.routes.shards.values():
            shard.check()
            shard.commits.send()

    @rule(
        workers=st.integers(1, 5),
        point=st.sampled_from(["idle", "request hangs", "answer hangs"]),
        symbol=st.sampled_from(SYMBOLS),
    )
    def crash(self, workers: int, point: str, symbol: str) -> None:
        """kill -9, at rest or with an entry before or after its append; then another owner."""
        key = self.make(symbol, "bob", Side.SELL, 11, 1)
        digests = self.digests()
        if point != "idle":
            self.server.faults.clear()
            self.server.faults.append(cast(Fault, point))
            self.run(self._send_into_the_void(key))
        self.server.kill()
        self.take_over(workers)
        if point == "idle":
            assert self.digests() == digests, "a replay came to another state (4)"
        self.run(self.ask(key))

    async def _send_into_the_void(self, key: tuple[str, int]) -> None:
        sent = self.sent[key]
        request = self.server.send(sent.method, sent.command)
        await self._a_while()
        for answer in self.server.trader.answers[request]:
            self.hear(key, answer)

    async def _a_while(self) -> None:
        """What needs no more than the store is done."""
        for _ in range(20):
            await asyncio.sleep(0)
        await self.hall.store.call("PING")

    @rule(workers=st.integers(1, 5), symbol=st.sampled_from(SYMBOLS))
    def sleep_past_the_lease(self, workers: int, symbol: str) -> None:
        """The former owner wakes up and writes on: nothing of it gets into the log."""
        zombie = self.server
        self.take_over(workers)
        key = self.make(symbol, "ann", Side.BUY, 10, 1)
        before = self.run(self._logs())

        answer = self.run(zombie.ask(Method.NEW, self.sent[key].command))

        assert answer.code, "a zombie accepted a command (6)"
        assert self.run(self._logs()) == before, "a zombie appended (6)"
        zombie.kill()
        self.hear(key, answer)

    @rule(symbol=st.sampled_from(SYMBOLS), shard=st.sampled_from(TARGETS), lane=st.sampled_from([0, 7, 63]))
    def move(self, symbol: str, shard: int, lane: int) -> None:
        placements = HallPlacements(self.hall)
        spot = Spot(shard, lane)
        if self.hall.table.of(symbol)[0] == shard:
            return
        source = Spot(*self.hall.table.of(symbol)[:2])
        self.moves += 1
        table = self.hall.table.with_pin(symbol, source).with_move(symbol, spot, f"m{self.moves}")
        placements.use(table)
        ownership = self.server.ownership
        pool = cast(Pool, None)
        relocation = Relocation(self.server.host, ownership, cast(Placements, placements), pool)
        self.run(relocation.step())
        assert self.hall.table.of(symbol)[:2] == (shard, lane)

    # -- what must hold

    def take_over(self, workers: int) -> None:
        self.hall.time.skew_ms = 0
        self.count += 1
        for server in self.hall.servers.values():
            server.faults.clear()
        taking = self.hall.takes_over(f"s{self.count}", wanted=self.shards, workers=workers, queue_limit=10)
        self.server = self.run(taking)
        assert set(self.server.ownership.owned) == self.shards
        kept = self.server.keeping
        assert (kept.lost_commands, kept.mismatches) == (0, 0)
        self.run(self.hall.pass_s(6))
        self.run(self.server.ownership.step())

    def digests(self) -> dict[int, bytes]:
        self.run(self.server.quiet())
        return {n: shard.machine.digest() for n, shard in self.server.host.routes.shards.items()}

    async def _logs(self) -> dict[int, list[Any]]:
        return {number: await self.hall.entries(number) for number in self.shards}

    def check(self) -> None:
        logged = self.run(self._logs())
        commands: dict[tuple[int, int], tuple[int, Any]] = {}
        for number, entries in logged.items():
            assert [e.epoch for e in entries] == sorted(e.epoch for e in entries)
            self.check_shard(number, entries, commands)
        for key, outcome in self.outcomes.items():
            sent = self.sent[key]
            said = sent.method, msgspec.structs.replace(sent.command, symbol=sent.symbol)
            assert commands.get((outcome.shard, outcome.seq)) == said, (
                "what was answered is not in the log (4)"
            )

    def check_shard(
        self, number: int, entries: list[Logged], commands: dict[tuple[int, int], tuple[int, Any]]
    ) -> None:
        last: defaultdict[int, int] = defaultdict(int)
        here = {symbol: spot.lane for symbol, spot in golden_spots().items() if spot.shard == number}
        seq = 0
        for entry in entries:
            assert entry.seq == seq + 1, "a hole in the log (1)"
            for seq, (method, lane, order_id, payload) in enumerate(entry.batch.commands, entry.seq):
                command = decode_command(method, payload)
                commands[number, seq] = method, command
                if isinstance(command, MoveIn):
                    here[command.symbol] = lane
                elif not isinstance(command, bytes):
                    assert here.get(command.symbol) == lane, "a book was touched by another lane (2)"
                if isinstance(command, MoveOut):
                    del here[command.symbol]
                if order_id:
                    assert order_id > last[lane], "ids of a lane do not rise (5)"
                    last[lane] = order_id

    def check_orders(self) -> None:
        """Those that the shards know are those that somebody was told of, each of one command."""
        accepted = [outcome.order_id for _, outcome in self.orders()]
        assert len(set(accepted)) == len(accepted), "one id for two orders (5)"
        for shard in self.server.host.routes.shards.values():
            known = {row.order_id for row in shard.machine.rows_since(0)}
            assert known <= set(accepted), "a number gave two orders (7)"

    def teardown(self) -> None:
        try:
            self.run(self.server.quiet())
            self.hall.time.skew_ms = 0
            for key in set(self.unknown):
                self.run(self.ask(key))
            self.check()
            self.check_orders()
            for requests in self.server.trader.answers.values():
                assert len(requests) == 1, "sent is not accepted + rejected (3)"
            received, became = self.server.balance()
            assert received == became, "sent is not accepted + rejected, by the metrics (3)"
            assert not any(shard.tally.violations for shard in self.server.host.routes.shards.values())
        finally:
            self.server.kill()
            self.run(self.stack.aclose())
            self.loop.close()


def run_machine(server: RunningServer, monkeypatch: pytest.MonkeyPatch, examples: int, steps: int) -> None:
    monkeypatch.setattr(keeping, "Engine", FailingEngine)
    monkeypatch.setattr(OrderMachine, "url", server.url)
    run_state_machine_as_test(
        OrderMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=[Phase.reuse, Phase.generate],  # to shorten an example takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_orders_under_drawn_faults(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run_machine(server, monkeypatch, examples=50, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_orders_under_many_drawn_faults(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run_machine(server, monkeypatch, examples=150, steps=40)
