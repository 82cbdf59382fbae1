"""Acts on their way to the store: in order, bounded, and never a fault of the act."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from roost.audit import writing
from roost.audit.model import Deed
from roost.audit.scripts import Appended, AuditScripts
from roost.audit.writing import AuditWriter
from roost.core.errors import StoreUnavailable
from roost.core.loops import Loops
from roost.testing import eventually


class Scripts:
    """A store that takes entries while it is there."""

    def __init__(self) -> None:
        self.away = False
        self.taken: list[str] = []
        self.ages: list[int] = []

    async def append(self, *, keep: int, age_ms: int, fields: list[str]) -> Appended:
        if self.away:
            raise StoreUnavailable("away")
        self.taken.append(dict(zip(fields[::2], fields[1::2], strict=True))["target"])
        self.ages.append(age_ms)
        return Appended(len(self.taken))


def deed(target: str) -> Deed:
    return Deed("world.govern", target, "root", "root", ("admin",), "::1", "done", "", "r-1", "http")


def writer_on(scripts: Scripts, **options: Any) -> AuditWriter:
    return AuditWriter(cast(AuditScripts, scripts), 100, Loops(), **options)


async def test_whoever_acted_finds_it_at_once() -> None:
    scripts = Scripts()
    writer = writer_on(scripts)
    await writer.record(deed("a"))
    assert (scripts.taken, writer.waiting, writer.counts["written"]) == (["a"], 0, 1)


async def test_what_the_store_did_not_take_comes_later_in_order_and_with_its_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "WAIT_S", 0.01)
    now, scripts = [10.0], Scripts()
    writer = writer_on(scripts, clock=lambda: now[0])
    scripts.away = True
    for target in ("a", "b", "c"):
        await writer.record(deed(target))
    assert (scripts.taken, writer.waiting) == ([], 3)
    now[0] += 60.0
    scripts.away = False
    await eventually(lambda: writer.waiting == 0, "the store to take them")
    assert scripts.taken == ["a", "b", "c"]
    assert scripts.ages == [60_000] * 3


async def test_what_waits_is_bounded_and_what_is_lost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_SPOOLED", 2)
    monkeypatch.setattr(writing, "WAIT_S", 0.01)
    scripts = Scripts()
    scripts.away = True
    writer = writer_on(scripts)
    for target in ("a", "b", "c", "d"):
        await writer.record(deed(target))
    assert (writer.waiting, writer.counts["lost"]) == (2, 2)
    await writer.close()
    assert writer.counts["lost"] == 4, "what is not written at the end is lost too"


async def test_an_act_waits_no_longer_than_a_moment_for_a_store_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "WAIT_S", 0.01)
    hangs = Scripts()

    async def append(**_: object) -> Appended:
        await asyncio.Event().wait()
        raise AssertionError

    hangs.append = append  # type: ignore[method-assign]
    writer = writer_on(hangs)
    async with asyncio.timeout(5):
        await writer.record(deed("a"))
    assert writer.waiting == 1
    await writer.close()
