"""Many examples on one real server: drawn values, or machines whose steps come in any order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningServer, open_store

Drawn = TypeVar("Drawn")
Result = TypeVar("Result")

ON_A_SERVER = settings(
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # to shrink a failure takes minutes
    suppress_health_check=list(HealthCheck),
)

SEEDS = st.integers(0, 2**32).map(random.Random)
"""A history made of random steps: it is repeated by its seed, and cannot be made shorter."""


def for_each(
    server: RunningServer,
    drawn: SearchStrategy[Drawn],
    check: Callable[[Store, Drawn], Awaitable[None]],
    *,
    examples: int,
) -> None:
    """Run the check with so many drawn values, each on an empty store."""

    async def on_a_store(value: Drawn) -> None:
        server.flush()
        async with open_store(server.url) as store:
            await check(store, value)

    @settings(ON_A_SERVER, max_examples=examples)
    @given(drawn)
    def example(value: Drawn) -> None:
        asyncio.run(on_a_store(value))

    example()


class StoreMachine(RuleBasedStateMachine):
    """A state machine beside a store that was empty when it began."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__()
        server.flush()
        self.runner = asyncio.Runner()
        self.store = self.do(Store.open(parse_store_url(server.url)))

    def do(self, what: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(what)

    def teardown(self) -> None:
        self.do(self.store.close())
        self.runner.close()


def run_machine(machine: type[StoreMachine], server: RunningServer, *, examples: int = 40) -> None:
    """Forty steps in any order, so many times."""

    class OnThisServer(machine):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            super().__init__(server)

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(ON_A_SERVER, max_examples=examples, stateful_step_count=40),
    )
