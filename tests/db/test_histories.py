"""Any history of claims, flushes and releases, also of racing ones, is one that a small model allows.

Batches of up to four verbs run at once, through two handles as two processes would; then some order of them
must give the model the same answers and the same row. So epochs only rise, of racing claims one wins, no
flush lands with another epoch than the row's, and a late older revision never lands.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roost.core.owner import Owner
from roost.db.database import Database, open_database
from roost.db.model import Claimed, Flush, Flushed, Row
from roost.testing import MariadbServer, PostgresqlServer

OWNERS = [Owner("501", "a"), Owner("501", "b"), Owner("502", "a")]
USERS = ["anna", "bob"]


class Model(NamedTuple):
    """A row as the rules see it; epoch 0: there is none."""

    owner: Owner | None = None
    epoch: int = 0
    revision: int = 0
    state: bytes | None = None


class Claim(NamedTuple):
    user: str
    owner: Owner
    epoch: int
    judged: int

    def on(self, row: Model) -> tuple[bool, Model]:
        if row.epoch == self.judged and self.judged < self.epoch:
            return True, row._replace(owner=self.owner, epoch=self.epoch)
        return False, row

    async def ask(self, db: Database) -> bool:
        answer = await db.claim("entity", self.user, self.owner, self.epoch, judged=self.judged)
        if isinstance(answer, Claimed):
            assert (answer.row.owner, answer.row.epoch) == (self.owner, self.epoch)
        return isinstance(answer, Claimed)


class Write(NamedTuple):
    user: str
    epoch: int
    revision: int
    state: bytes
    in_a_batch: bool

    def on(self, row: Model) -> tuple[bool, Model]:
        if row.epoch != self.epoch:
            return False, row
        if row.revision < self.revision:
            return True, row._replace(revision=self.revision, state=self.state)
        return (row.revision, row.state) == (self.revision, self.state), row

    async def ask(self, db: Database) -> bool:
        flush = Flush("entity", self.user, self.epoch, self.revision, self.state)
        if not self.in_a_batch:
            return isinstance(await db.flush(flush), Flushed)
        answers = await db.flush_many([flush, Flush("entity", "nobody", 1, 1, b"")])
        return isinstance(answers[0], Flushed)


class Release(NamedTuple):
    user: str
    owner: Owner
    epoch: int

    def on(self, row: Model) -> tuple[bool, Model]:
        if row.epoch == self.epoch and row.owner in (self.owner, None):
            return True, row._replace(owner=None)
        return False, row

    async def ask(self, db: Database) -> bool:
        return await db.release("entity", self.user, self.owner, self.epoch)


Verb = Claim | Write | Release
EPOCHS = st.integers(1, 6)
VERBS: st.SearchStrategy[Verb] = st.one_of(
    st.builds(Claim, st.sampled_from(USERS), st.sampled_from(OWNERS), EPOCHS, st.integers(0, 5)),
    st.builds(Claim, st.sampled_from(USERS), st.sampled_from(OWNERS), EPOCHS, st.just(0)),
    st.builds(
        Write, st.sampled_from(USERS), EPOCHS, st.integers(1, 4), st.sampled_from([b"x", b"y"]), st.booleans()
    ),
    st.builds(Release, st.sampled_from(USERS), st.sampled_from(OWNERS), EPOCHS),
)
HISTORIES = st.lists(st.lists(VERBS, min_size=1, max_size=4), min_size=1, max_size=14)

ON_A_DATABASE = settings(
    deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck)
)


def allowed(before: Model, verbs: Sequence[Verb], answers: Sequence[bool], after: Model) -> bool:
    """Whether some order of the verbs gives these answers and this row."""
    return any(
        _follow(before, order) == after for order in itertools.permutations(zip(verbs, answers, strict=True))
    )


def _follow(row: Model, order: Sequence[tuple[Verb, bool]]) -> Model | None:
    for verb, answer in order:
        found, row = verb.on(row)
        if found != answer:
            return None
    return row


def seen(row: Row | None) -> Model:
    return Model() if row is None else Model(row.owner, row.epoch, row.revision, row.state)


async def check_history(handles: Sequence[Database], history: Sequence[Sequence[Verb]]) -> None:
    rows = {user: seen(await handles[0].read("entity", user)) for user in USERS}
    for batch in history:
        turns = zip(itertools.cycle(handles), batch, strict=False)
        answers = await asyncio.gather(*(verb.ask(handle) for handle, verb in turns))
        for user in USERS:
            mine = [at for at, verb in enumerate(batch) if verb.user == user]
            after = seen(await handles[0].read("entity", user))
            assert after.epoch >= rows[user].epoch
            assert allowed(rows[user], [batch[at] for at in mine], [answers[at] for at in mine], after)
            rows[user] = after


async def check_on(url: str, history: Sequence[Sequence[Verb]]) -> None:
    async with AsyncExitStack() as stack:
        handles = [await stack.enter_async_context(open_database(url)) for _ in range(2)]
        await check_history(handles, history)


def test_on_sqlite(tmp_path: Path) -> None:
    numbers = itertools.count()

    @settings(ON_A_DATABASE, max_examples=60)
    @given(HISTORIES)
    def example(history: list[list[Verb]]) -> None:
        asyncio.run(check_on(f"sqlite:///{tmp_path / str(next(numbers))}?synchronous=normal", history))

    example()


def test_on_postgresql(postgresql: PostgresqlServer) -> None:
    @settings(ON_A_DATABASE, max_examples=15)
    @given(HISTORIES)
    def example(history: list[list[Verb]]) -> None:
        postgresql.empty()
        asyncio.run(check_on(postgresql.url, history))

    example()


def test_on_mariadb(mariadb: MariadbServer) -> None:
    @settings(ON_A_DATABASE, max_examples=15)
    @given(HISTORIES)
    def example(history: list[list[Verb]]) -> None:
        mariadb.empty()
        asyncio.run(check_on(mariadb.url, history))

    example()


def test_the_model_sees_a_second_winner() -> None:
    first, second = Claim("anna", OWNERS[0], 5, 0), Claim("anna", OWNERS[1], 6, 0)
    assert allowed(Model(), [first, second], [True, False], Model(OWNERS[0], 5))
    assert not allowed(Model(), [first, second], [True, True], Model(OWNERS[1], 6))


def test_the_model_sees_an_older_revision_that_lands_late() -> None:
    old, new = Write("anna", 5, 1, b"x", False), Write("anna", 5, 2, b"y", False)
    row = Model(OWNERS[0], 5)
    assert allowed(row, [old, new], [False, True], row._replace(revision=2, state=b"y"))
    assert not allowed(row, [old, new], [True, True], row._replace(revision=1, state=b"x"))
