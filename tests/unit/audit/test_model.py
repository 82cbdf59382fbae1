"""What is kept of an act: bounded, and never a secret."""

from __future__ import annotations

import pytest

from roost.audit.model import MAX_STATE_BYTES, MAX_TEXT_CHARS, Deed, Wanted, entry_of, packed, redacted
from roost.core.events import Entry

DEED = Deed("drain.start", "job/1", "ann", "ab", ("admin", "read"), "10.0.0.5", "done", "", "r-1", "cli")


def kept(deed: Deed) -> Entry:
    flat = packed(deed)
    return Entry(7, 5, 4, {"when": "1800000000000000", **dict(zip(flat[::2], flat[1::2], strict=True))})


def test_what_is_kept_can_be_shown() -> None:
    shown = entry_of(kept(DEED._replace(before={"state": "running"}, after=None)))
    assert (shown.id, shown.name, shown.scopes, shown.source) == ("7", "ann", ["admin", "read"], "10.0.0.5")
    assert shown.before == {"state": "running"}
    assert shown.after is None
    assert shown.at == "2027-01-15T08:00:00.000Z"


def test_no_act_takes_more_than_it_may() -> None:
    huge = DEED._replace(
        target="x" * 10_000, name="n" * 10_000, before={"a": "b" * 100_000}, after=["c"] * 9999
    )
    flat = packed(huge)
    assert max(map(len, flat)) <= max(MAX_STATE_BYTES, MAX_TEXT_CHARS)
    assert entry_of(kept(huge)).before == {"tooLarge": 100_008}


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "apiToken",
        "X-API-Token",
        "secret",
        "wireSecret",
        "password",
        "proof",
        "signature",
        "ticketId",
    ],
)
def test_a_secret_is_not_kept_whatever_a_route_tells(name: str) -> None:
    assert redacted({"a": [{name: "s3cret"}]}) == {"a": [{name: "***"}]}


def test_what_is_no_secret_stays() -> None:
    told = {"tokenId": "ab", "name": "ann", "scopes": ["read"], "count": 3, "message": "the key is red"}
    assert redacted(told) == told


def test_what_is_asked_for() -> None:
    entry = entry_of(kept(DEED))
    assert all(
        wanted.fits(entry)
        for wanted in (Wanted(), Wanted("ann"), Wanted(action="drain"), Wanted(target="job"))
    )
    assert not any(
        wanted.fits(entry) for wanted in (Wanted("an"), Wanted(action="start"), Wanted(target="world"))
    )
