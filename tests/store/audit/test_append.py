"""`append.lua`: the acts of operators are the feed of their scope, and there is a bound to it."""

from __future__ import annotations

from roost.audit.model import Deed, Wanted, packed
from roost.audit.scripts import Appended, AuditScripts
from roost.audit.service import AuditLog
from roost.audit.settings import AuditSettings
from roost.core.events import START, Entry, Gap
from roost.store.store import Store

T0 = 1_800_000_000_000_000


def deed(target: str) -> Deed:
    return Deed("world.govern", target, "root", "root", ("admin",), "::1", "done", "", "r-1", "http")


async def test_entries_are_numbered_and_heard_of(any_store: Store) -> None:
    scripts = AuditScripts(any_store.library, any_store.keys)
    for number in (1, 2):
        fields = packed(deed(f"t{number}"))
        assert await scripts.append(keep=100, age_ms=0, fields=fields, now=T0) == Appended(number)
    feed, heard = AuditLog(any_store, AuditSettings()).feed, list[Entry]()
    async for entry in feed.follow(START):
        assert not isinstance(entry, Gap)
        heard.append(entry)
        if len(heard) == 2:
            break
    assert [entry.fields["target"] for entry in heard] == ["t1", "t2"]
    assert heard[1].prev_at == heard[0].at


async def test_an_act_that_came_late_has_its_own_time(store: Store) -> None:
    scripts = AuditScripts(store.library, store.keys)
    await scripts.append(keep=100, age_ms=60_000, fields=packed(deed("a")), now=T0)
    (entry,) = (await AuditLog(store, AuditSettings()).entries(Wanted(), 10)).entries
    assert entry.at == "2027-01-15T07:59:00.000Z"


async def test_the_oldest_go_first(store: Store) -> None:
    scripts, log = AuditScripts(store.library, store.keys), AuditLog(store, AuditSettings())
    for number in range(400):
        await scripts.append(keep=100, age_ms=0, fields=packed(deed(f"t{number}")))
    page = await log.entries(Wanted(), 500)
    assert 100 <= len(page.entries) <= 250, "about as many as were asked for"
    assert page.entries[0].target == "t399"
    assert page.next == ""
    assert [entry.target async for entry in log.export(Wanted())][-1] == "t399"


async def test_what_fits_is_found_however_far_back_by_going_on(store: Store) -> None:
    scripts, log = AuditScripts(store.library, store.keys), AuditLog(store, AuditSettings())
    await scripts.append(keep=10_000, age_ms=0, fields=packed(deed("needle")))
    for number in range(2100):
        await scripts.append(keep=10_000, age_ms=0, fields=packed(deed(f"t{number}")))
    wanted = Wanted(target="needle")
    first = await log.entries(wanted, 10)
    assert first.entries == []
    assert first.next, "one question looks at so many, and says where it stopped"
    assert [entry.target for entry in (await log.entries(wanted, 10, first.next)).entries] == ["needle"]


async def test_an_entry_that_is_not_ours_is_passed_over(store: Store) -> None:
    scripts, log = AuditScripts(store.library, store.keys), AuditLog(store, AuditSettings())
    await scripts.append(keep=100, age_ms=0, fields=["what", "is this"])
    await scripts.append(keep=100, age_ms=0, fields=packed(deed("a")))
    assert [entry.target for entry in (await log.entries(Wanted(), 10)).entries] == ["a"]
    assert [entry.target async for entry in log.export(Wanted())] == ["a"]
